#include "directory_table.hpp"

#include "opening.hpp"
#include "syscalls.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace coil::fs::detail {

namespace {

unsigned well_below_the_limit() noexcept {
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 8;
    }
    return static_cast<unsigned>(std::clamp<::rlim_t>(limit.rlim_cur / 4, 6, 64));
}

/// Whether a directory's creation time is constant. On overlayfs it is that of the lower directory
/// until the directory is copied up, then that of the copy; device and inode number do not change.
bool keeps_creation_time(int fd) noexcept {
    struct ::statfs system{};
    return sys::is_in_world() ||
           (::fstatfs(fd, &system) == 0 && system.f_type != OVERLAYFS_SUPER_MAGIC);
}

/// Reads the identity of an open directory. Returns false on error.
bool identify(int fd, directory_identity& identity) noexcept {
    struct ::statx found{};
    if (sys::statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &found) < 0) {
        struct ::stat status{}; // a seccomp filter may refuse statx(2)
        const bool is_found = sys::fstat(fd, &status) == 0;
        identity = {.device = status.st_dev, .inode = status.st_ino};
        return is_found;
    }
    identity = {.device = makedev(found.stx_dev_major, found.stx_dev_minor),
                .inode = found.stx_ino};
    if ((found.stx_mask & STATX_BTIME) != 0 && keeps_creation_time(fd)) {
        identity.created_seconds = found.stx_btime.tv_sec;
        identity.created_nanoseconds = found.stx_btime.tv_nsec;
    }
    return true;
}

bool is_the_same(int fd, const directory_identity& expected) noexcept {
    directory_identity found;
    return identify(fd, found) && found == expected;
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
    return pin_locked(node);
}

int directory_table::pin_locked(directory_node& node) noexcept {
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
        if (n->known_ && n->identity_.device == device && n->identity_.inode == inode) {
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
    const int fd = retried([child] { return sys::open_parent(child, O_RDONLY); });
    if (fd >= 0 && is_the_same(fd, node.identity_)) {
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

/// Reopens `node` from its nearest open ancestor, many levels with each call where possible.
int directory_table::walk_down(directory_node& node) {
    std::vector<directory_node*> closed;
    directory_node* above = &node;
    int fd = -1;
    {
        const std::scoped_lock lock(mutex_);
        for (; above != nullptr && above->fd_ < 0; above = above->parent_) {
            closed.push_back(above);
        }
        fd = above == nullptr ? -1 : pin_locked(*above);
    }
    bool by_chunks = true;
    while (!closed.empty()) {
        // Even the top may be closed: after close_all().
        std::size_t levels = 1;
        const std::string names = above == nullptr ? "" : first_levels(closed, levels, by_chunks);
        const int below = above == nullptr
                              ? open_top(*closed.back())
                              : open(fd, names.c_str(), levels == 1 && closed.back()->follow_);
        if (below == -ELOOP && levels > 1) { // without openat2(2), or one of them is a link
            by_chunks = false;
            continue;
        }
        if (above != nullptr) {
            unpin(*above);
        }
        if (below < 0) {
            return below;
        }
        closed.resize(closed.size() - (levels - 1));
        above = closed.back();
        closed.pop_back();
        // If the last one is the expected directory, it does not matter which ones led to it.
        if (!is_the_same(below, above->identity_)) {
            sys::close(below);
            return -ENOENT;
        }
        adopt(*above, below);
        fd = below;
    }
    return fd;
}

/// The path of as many levels as one call can open, beginning at the end of `closed`; of one level
/// if `by_chunks` is false. A link to be followed is opened separately.
std::string directory_table::first_levels(const std::vector<directory_node*>& closed,
                                          std::size_t& levels, bool by_chunks) {
    std::string names = closed.back()->name_;
    levels = 1;
    while (by_chunks && levels < closed.size()) {
        const directory_node& next = *closed[closed.size() - 1 - levels];
        if (closed.back()->follow_ || next.follow_ ||
            names.size() + 1 + next.name_.size() >= PATH_MAX) {
            break;
        }
        (names += '/') += next.name_;
        ++levels;
    }
    return names;
}

int directory_table::open(int at, const char* name, bool follow) {
    return open_file(at, name, O_RDONLY | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW), 0);
}

int directory_table::open_file(int at, const char* name, int flags, ::mode_t mode) {
    return retried([=] { return sys::open_entry(at, name, flags, mode); });
}

template <class Open>
int directory_table::retried(Open open) {
    constexpr int often = 100;
    for (int waited = 0;;) {
        const int fd = open();
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
                max_open_ = std::min(max_open_.load(), std::max(open_, 1U));
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
    static_cast<void>(identify(fd, node.identity_));
    node.known_ = true; // after an error the directory cannot be reopened, and the work fails
}

} // namespace coil::fs::detail
