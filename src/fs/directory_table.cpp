#include "directory_table.hpp"

#include "syscalls.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace coil::fs::detail {

directory_node::directory_node(directory_node* parent, std::string name, bool follow) noexcept
    : parent_(parent), name_(std::move(name)), depth_(parent == nullptr ? 0 : parent->depth_ + 1),
      follow_(follow) {
    if (parent != nullptr) {
        directory_table::share(*parent);
    }
}

directory_node::~directory_node() = default;

std::string directory_node::path() const { return path_of(nullptr); }

std::string directory_node::path_of(const char* entry) const {
    const std::size_t last = entry == nullptr ? 0 : std::char_traits<char>::length(entry);
    std::size_t length = last + 1;
    for (const directory_node* n = this; n != nullptr; n = n->parent_) {
        length += n->name_.size() + 1;
    }
    std::string whole;
    whole.resize(length);
    std::size_t at = length; // filled from the end
    const auto put = [&](const char* text, std::size_t size) {
        at -= size;
        std::copy_n(text, size, whole.data() + at);
    };
    if (entry != nullptr) {
        put(entry, last);
    }
    for (const directory_node* n = this; n != nullptr; n = n->parent_) {
        if (at != length && !n->name_.ends_with('/')) {
            put("/", 1);
        }
        put(n->name_.data(), n->name_.size());
    }
    whole.erase(0, at);
    return whole;
}

namespace {

unsigned well_below_the_limit() noexcept {
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 8;
    }
    return static_cast<unsigned>(std::clamp<::rlim_t>(limit.rlim_cur / 4, 6, 64));
}

} // namespace

directory_table::directory_table() noexcept : directory_table(well_below_the_limit()) {}

int directory_table::pin(directory_node& node, int child) {
    if (const int fd = pin_if_open(node); fd >= 0) {
        return fd;
    }
    bool known = false;
    {
        const std::scoped_lock lock(mutex_);
        known = node.known_;
    }
    if (known) {
        return reopen(node, child);
    }
    // Never opened before: only the thread that found the directory refers to it.
    if (node.parent_ == nullptr) {
        const int fd = open_top(node);
        if (fd >= 0) {
            adopt(node, fd);
        }
        return fd;
    }
    const pinned_directory parent(*this, *node.parent_);
    if (parent.fd() < 0) {
        return parent.fd();
    }
    return open_below(parent.fd(), node, node.name_.c_str());
}

int directory_table::pin_if_open(directory_node& node) noexcept {
    const std::scoped_lock lock(mutex_);
    if (node.fd_ >= 0 && node.pins_++ == 0 && node.parent_ != nullptr) {
        forget(node);
    }
    return node.fd_;
}

void directory_table::reach_parent(directory_node& node) {
    if (const int fd = pin_if_open(node); fd >= 0) {
        static_cast<void>(pinned_directory(*this, *node.parent_, fd));
        unpin(node);
    }
}

void directory_table::unpin(directory_node& node) noexcept {
    const std::scoped_lock lock(mutex_);
    if (--node.pins_ > 0) {
        return;
    }
    if (node.parent_ == nullptr) {
        if (max_open_ == 0) {
            close(node);
        }
        return;
    }
    node.newer_ = nullptr;
    node.older_ = newest_;
    (newest_ == nullptr ? oldest_ : newest_->newer_) = &node;
    newest_ = &node;
    while (open_ > max_open_ && close_oldest()) {
    }
}

void directory_table::adopt(directory_node& node, int fd) noexcept {
    const std::scoped_lock lock(mutex_);
    node.fd_ = fd;
    node.pins_ = 1;
    ++open_;
}

void directory_table::release(directory_node* node) noexcept {
    while (node != nullptr && node->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        directory_node* const parent = node->parent_;
        int fd = -1;
        {
            const std::scoped_lock lock(mutex_);
            fd = node->fd_;
            if (fd >= 0) {
                if (node->pins_ == 0 && parent != nullptr) {
                    forget(*node);
                }
                --open_;
            }
        }
        if (fd >= 0) {
            sys::close(fd);
        }
        delete node;
        node = parent;
    }
}

bool directory_table::is_at_or_above(directory_node& node, ::dev_t device, ::ino_t inode) {
    const std::scoped_lock lock(mutex_);
    for (directory_node* n = &node; n != nullptr; n = n->parent_) {
        if (!n->known_ && n->fd_ >= 0) {
            learn(*n, n->fd_);
        }
        if (n->known_ && n->device_ == device && n->inode_ == inode) {
            return true;
        }
    }
    return false;
}

void directory_table::place_top(const directory_node& node, int at, std::string leaf) {
    const std::scoped_lock lock(mutex_);
    tops_.push_back({&node, at, std::move(leaf)});
}

/// A top has no parent node: it is opened where place_top() says, or by its path.
int directory_table::open_top(directory_node& node) {
    int at = AT_FDCWD;
    const char* name = node.name_.c_str();
    {
        const std::scoped_lock lock(mutex_);
        for (const placed_top& top : tops_) {
            if (top.node == &node) {
                at = top.at;
                name = top.leaf.c_str(); // not changed after it has been opened
            }
        }
    }
    return open(at, name, node.follow_);
}

int directory_table::open_below(int parent, directory_node& node, const char* name) {
    const int fd = open(parent, name, node.follow_);
    if (fd >= 0) {
        adopt(node, fd);
    }
    return fd;
}

int directory_table::reopen(directory_node& node, int child) {
    const std::scoped_lock one(reopening_);
    if (const int fd = pin_if_open(node); fd >= 0) {
        return fd;
    }
    if (child >= 0) {
        if (const int fd = climb(node, child); fd >= 0) {
            return fd;
        }
    }
    // A worker that moves up the tree has just used a subdirectory of the node.
    if (directory_node* const below = pin_child_of(node)) {
        const int fd = climb(node, below->fd_);
        unpin(*below);
        release(below);
        if (fd >= 0) {
            return fd;
        }
    }
    return walk_down(node);
}

/// Opens the directory by ".." of a child, and verifies it: a child that was found through a link,
/// or was moved, has another parent.
int directory_table::climb(directory_node& node, int child) {
    const int fd = open(child, "..", false);
    struct ::stat status{};
    if (fd >= 0 && sys::fstat(fd, &status) == 0 && status.st_dev == node.device_ &&
        status.st_ino == node.inode_) {
        adopt(node, fd);
        return fd;
    }
    if (fd >= 0) {
        sys::close(fd);
    }
    return -ENOENT;
}

directory_node* directory_table::pin_child_of(directory_node& node) noexcept {
    const std::scoped_lock lock(mutex_);
    for (directory_node* n = newest_; n != nullptr; n = n->older_) {
        if (n->parent_ != &node) {
            continue;
        }
        // At 0 another thread has dropped the last reference and waits for the lock.
        unsigned references = n->references_.load(std::memory_order_relaxed);
        while (references > 0 && !n->references_.compare_exchange_weak(references, references + 1,
                                                                       std::memory_order_acq_rel)) {
        }
        if (references > 0) {
            forget(*n);
            n->pins_ = 1;
            return n;
        }
    }
    return nullptr;
}

/// Reopens the directories between the nearest open ancestor and `node`. They stay open as long as
/// there is space, as neighbouring ones are often needed next.
int directory_table::walk_down(directory_node& node) {
    std::vector<directory_node*> closed;
    directory_node* above = &node;
    int fd = -1;
    while (above != nullptr && (fd = pin_if_open(*above)) < 0) {
        closed.push_back(above);
        above = above->parent_;
    }
    for (; !closed.empty(); closed.pop_back()) {
        directory_node& next = *closed.back();
        // Even the top may be closed: after close_all().
        const int below =
            above == nullptr ? open_top(next) : open(fd, next.name_.c_str(), next.follow_);
        if (above != nullptr) {
            unpin(*above);
        }
        if (below < 0) {
            return below;
        }
        struct ::stat status{};
        if (sys::fstat(below, &status) != 0 || status.st_dev != next.device_ ||
            status.st_ino != next.inode_) {
            sys::close(below);
            return -ENOENT;
        }
        adopt(next, below);
        above = &next;
        fd = below;
    }
    return fd;
}

int directory_table::open(int at, const char* name, bool follow) {
    return open_file(at, name, O_RDONLY | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW), 0);
}

int directory_table::open_file(int at, const char* name, int flags, ::mode_t mode) {
    constexpr int often = 100;
    for (int waited = 0;;) {
        const int fd = sys::openat(at, name, flags | O_CLOEXEC, mode);
        if (fd >= 0) {
            return fd;
        }
        const int error = -fd;
        if (error == EINTR) {
            continue;
        }
        if (error == EMFILE || error == ENFILE) {
            std::unique_lock lock(mutex_);
            if (close_oldest()) {
                max_open_ = std::min(max_open_, std::max(open_, 1U));
                continue;
            }
            // Other jobs use the directories that are open, and close them soon.
            if (open_ > 1 && ++waited <= often && !sys::is_in_world()) {
                lock.unlock();
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                continue;
            }
        }
        return -error;
    }
}

bool directory_table::close_oldest() noexcept {
    if (oldest_ == nullptr) {
        return false;
    }
    directory_node& node = *oldest_;
    forget(node);
    close(node);
    return true;
}

void directory_table::close(directory_node& node) noexcept {
    if (!node.known_) {
        learn(node, node.fd_);
    }
    sys::close(std::exchange(node.fd_, -1));
    --open_;
}

void directory_table::close_all(directory_node& top) noexcept {
    const std::scoped_lock lock(mutex_);
    max_open_ = 0;
    while (close_oldest()) {
    }
    if (top.fd_ >= 0 && top.pins_ == 0) {
        close(top);
    }
}

void directory_table::forget(directory_node& node) noexcept {
    (node.older_ == nullptr ? oldest_ : node.older_->newer_) = node.newer_;
    (node.newer_ == nullptr ? newest_ : node.newer_->older_) = node.older_;
    node.older_ = node.newer_ = nullptr;
}

void directory_table::learn(directory_node& node, int fd) noexcept {
    struct ::stat status{};
    if (sys::fstat(fd, &status) == 0) {
        node.device_ = status.st_dev;
        node.inode_ = status.st_ino;
    }
    node.known_ = true; // after an error the directory cannot be reopened, and the work fails
}

} // namespace coil::fs::detail
