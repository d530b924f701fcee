#include "tree_copy.hpp"

#include "ring_or_pool.hpp"

#include <array>
#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace coil::fs::detail {

namespace {

constexpr std::size_t buffer_size = 16384; // some hundred entries
constexpr int more_to_come = 1;
constexpr int has_given_way = 2;

bool is_scarce(int error) noexcept { return error == -EMFILE || error == -ENFILE; }

} // namespace

tree_copy::tree_copy(const path& from, const path& to, copy_tree_options options,
                     bool as_the_standard)
    : options_(std::move(options)), as_the_standard_(as_the_standard), from_(from), to_(to) {}

tree_copy::~tree_copy() = default;

void tree_copy::after_slice() {
    if (options_.progress) {
        options_.progress(progress());
    }
}

bool tree_copy::work(const slice& time) {
    if (!has_begun_.exchange(true, std::memory_order_relaxed)) {
        begin();
    }
    while (error() == 0) {
        bool stays = true;
        open_file_ptr file;
        owned<copied> directory = own<copied>(nullptr);
        if (files_.take(file)) {
            stays = go_on_with(std::move(file), time);
        } else if (waiting_.take(directory)) {
            stays = copy_some(std::move(directory), time);
        } else {
            return false;
        }
        if (!stays || time.is_over() || wants_help()) {
            return stays;
        }
    }
    return false;
}

/// Records the error for an entry of a directory, or for the top.
void tree_copy::fail_at(int error, const copied* in, const char* entry) {
    if (fail(error)) {
        failed_at_ = in == nullptr ? std::pair(from_.native(), to_.native())
                                   : std::pair(in->path_of(entry), in->target->path_of(entry));
    }
}

/// If a parent directory cannot be opened, copy_one() uses the whole path and reports the error.
void tree_copy::begin() {
    static_cast<void>(top_from_.open(from_.native()));
    static_cast<void>(top_to_.open(to_.native()));
    const std::string from = top_from_.leaf + (top_from_.had_slash ? "/" : "");
    const std::string to = top_to_.leaf + (top_to_.had_slash ? "/" : "");
    const place top{top_from_.at(), from.c_str(), DT_UNKNOWN, top_to_.at(), to.c_str(), nullptr};
    directories more;
    const int result = copy_one(top, nullptr, more);
    if (result < 0) {
        fail_at(result, nullptr);
    }
    waiting_.put(std::move(more));
    // The table keeps the tops open.
    top_from_.directory = owned_descriptor();
    top_to_.directory = owned_descriptor();
}

/// Returns false if this job should end.
bool tree_copy::go_on_with(open_file_ptr file, const slice& time) {
    const int result = go_on(*file, &time);
    if (result == more_to_come) {
        files_.put(std::move(file));
    } else if (result < 0) {
        fail_at(result, file->directory.get(), file->name.c_str());
    } else if (owned<copied> in = std::move(file->directory)) {
        file.reset();
        return let_go(std::move(in));
    }
    return true;
}

/// Returns false if this job should end.
bool tree_copy::copy_some(owned<copied> directory, const slice& time) {
    directories more;
    int result = copy_entries(*directory, time, more);
    if (is_scarce(result) && gives_way()) {
        result = has_given_way;
    }
    if (result == more_to_come || result == has_given_way) {
        waiting_.put(std::move(directory), std::move(more));
        return result == more_to_come;
    }
    if (result == 0) {
        return let_go(std::move(directory));
    }
    fail_at(result, directory.get());
    return true;
}

/// 0: read to the end; more_to_come; has_given_way; -errno.
int tree_copy::copy_entries(copied& directory, const slice& time, directories& more) {
    const pinned_directory from(table_, directory);
    if (from.fd() < 0) {
        return from.fd();
    }
    if (!directory.has_begun) {
        if (const int r = begin_directory(directory, from.fd()); r < 0) {
            return r;
        }
    }
    const pinned_directory to(table_, *directory.target);
    if (to.fd() < 0) {
        return to.fd();
    }
    if (directory.has_read) { // the descriptor may be new, or was read too far
        sys::lseek(from.fd(), directory.position, SEEK_SET);
    }
    directory.has_read = true;
    return read_on(directory, from.fd(), to.fd(), time, more);
}

int tree_copy::read_on(copied& directory, int from, int to, const slice& time, directories& more) {
    for (;;) {
        alignas(8) std::array<std::byte, buffer_size> buffer;
        const int n = read_entries(from, buffer.data(), buffer.size());
        if (n <= 0) {
            return n;
        }
        raw_entries entries(buffer.data(), static_cast<std::size_t>(n));
        for (; !entries.empty(); entries.pop()) {
            const raw_entry entry = entries.front();
            const place p{from, entry.name(), entry.type(), to, entry.name(), &directory};
            const int result = copy_one(p, &time, more);
            if (is_scarce(result) && gives_way()) {
                return has_given_way;
            }
            if (result < 0) {
                fail_at(result, &directory, entry.name());
                return result;
            }
            directory.position = entry.position_behind();
            if (time.is_over()) {
                return more_to_come;
            }
        }
        if (!more.empty()) {
            return more_to_come;
        }
    }
}

/// Takes the identity and the attributes of the copy from the opened directory.
int tree_copy::begin_directory(copied& directory, int from) {
    if (const int r = sys::fstat(from, &directory.status); r < 0) {
        return r;
    }
    const struct ::stat& status = directory.status;
    copied* const above = directory.above();
    if (above != nullptr) {
        if (has_target_ && target_.device == status.st_dev && target_.inode == status.st_ino) {
            return -EINVAL; // a copy into itself
        }
        if (!takes_links_as_such() && table_.is_at_or_above(*above, status.st_dev, status.st_ino)) {
            return -ELOOP;
        }
    }
    if (!directory.has_target) {
        // Creating entries in it requires write permission; the mode is restored at the end.
        const ::mode_t mode = status.st_mode & 07777;
        const ::mode_t made = as_the_standard_ ? mode : mode | 0700;
        int result = 0;
        if (above == nullptr) {
            result = sys::mkdirat(top_to_.at(), top_to_.leaf.c_str(), made);
        } else {
            const pinned_directory parent(table_, *above->target);
            result = parent.fd() < 0
                         ? parent.fd()
                         : sys::mkdirat(parent.fd(), directory.target->name().c_str(), made);
        }
        if (result < 0) {
            return result;
        }
        directory.is_new = true;
    }
    directory.has_begun = true;
    entries_.fetch_add(1, std::memory_order_relaxed);
    return 0;
}

/// Drops one reference; the last one completes the directory. Returns false if this job should end.
bool tree_copy::let_go(owned<copied> directory) {
    while (directory && directory->left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const int result = finish_directory(*directory);
        if (is_scarce(result) && gives_way()) {
            directory->left.store(1, std::memory_order_relaxed);
            waiting_.put(std::move(directory)); // has been read to its end
            return false;
        }
        if (result < 0) {
            fail_at(result, directory.get());
            return true;
        }
        copied* const above = directory->above();
        if (above != nullptr) {
            table_.reach_parent(*directory);
            table_.reach_parent(*directory->target);
            directory_table::share(*above);
        }
        directory = own(above);
    }
    return true;
}

int tree_copy::finish_directory(copied& directory) {
    const bool keeps = options_.times || options_.owner;
    const ::mode_t mode = directory.status.st_mode & 07777;
    if (as_the_standard_ || (!keeps && (!directory.is_new || (mode & 0700) == 0700))) {
        return 0;
    }
    const pinned_directory target(table_, *directory.target);
    if (target.fd() < 0) {
        return target.fd();
    }
    int result = 0;
    if (keeps) {
        result = set_owner_and_mode(target.fd(), directory.status);
    } else { // the other bits are subject to the umask
        struct ::stat made{};
        result = sys::fstat(target.fd(), &made);
        if (result == 0) {
            result = sys::fchmod(target.fd(), made.st_mode & mode);
        }
    }
    if (result == 0 && options_.times) {
        const ::timespec times[2] = {directory.status.st_atim, directory.status.st_mtim};
        result = sys::futimens(target.fd(), times);
    }
    return result;
}

} // namespace coil::fs::detail
