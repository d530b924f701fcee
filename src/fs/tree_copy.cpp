#include "tree_copy.hpp"

#include "open_regular.hpp"
#include "ring_or_pool.hpp"
#include "stat.hpp"

#include <array>
#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace coil::fs::detail {

namespace {

constexpr std::size_t buffer_size = 16384; // a few hundred entries

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
    if (!has_begun_.exchange(true, std::memory_order_relaxed) && !begin(time)) {
        has_begun_.store(false, std::memory_order_relaxed);
        return true;
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

/// Opens the parents of both paths. If the target's parent does not exist, copy_one() finds neither
/// the target nor a place to create it.
int tree_copy::open_places() {
    if (const int r = top_from_.open(from_.native()); r < 0) {
        return r;
    }
    const int r = top_to_.open(to_.native());
    if (r == 0) {
        return 0;
    }
    struct ::stat from{}; // its error has precedence over the target's
    const int flags = takes_links_as_such() ? AT_SYMLINK_NOFOLLOW : 0;
    const int found = sys::fstatat(top_from_.at(), top_from_.name().c_str(), &from, flags);
    return found < 0 ? found : is_not_found(r) ? 0 : r;
}

/// Called after a failed attempt. Returns has_given_way or more_to_come if the attempt is to be
/// repeated, otherwise `result` or -EAGAIN.
int tree_copy::give_way(int result, const slice& time) noexcept {
    if (result == leased) {
        return waits_for_lease(time) ? more_to_come : -EAGAIN;
    }
    return is_scarce(result) && gives_way() ? has_given_way : result;
}

/// Returns false if the call has to be repeated because a file is leased.
bool tree_copy::begin(const slice& time) {
    int result = top_from_.directory < 0 ? open_places() : 0;
    const std::string from = top_from_.name();
    const std::string to = top_to_.name();
    const place top{top_from_.at(), from.c_str(), DT_UNKNOWN, top_to_.at(), to.c_str(), nullptr};
    directories more;
    result = result < 0 ? result : top_to_.error_of(copy_one(top, time, more));
    if (result == leased && waits_for_lease(time)) {
        return false;
    }
    if (result == leased) {
        result = -EAGAIN;
    }
    if (result < 0) {
        fail_at(result, nullptr);
    }
    waiting_.put(std::move(more));
    // The table keeps the tops open.
    top_from_.directory = owned_descriptor();
    top_to_.directory = owned_descriptor();
    return true;
}

/// Returns false if this job should end.
bool tree_copy::go_on_with(open_file_ptr file, const slice& time) {
    const int result = go_on(*file, time);
    if (result == more_to_come) {
        files_.put(std::move(file));
    } else if (result < 0) {
        fail_at(result, file->directory.get(), file->name.c_str());
    } else if (owned<copied> in = std::move(file->directory)) {
        file.reset();
        return let_go(std::move(in), time);
    }
    return true;
}

/// Returns false if this job should end.
bool tree_copy::copy_some(owned<copied> directory, const slice& time) {
    directories more;
    const int result = give_way(copy_entries(*directory, time, more), time);
    if (result == more_to_come || result == has_given_way) {
        waiting_.put(std::move(directory), std::move(more));
        return result == more_to_come;
    }
    waiting_.put(std::move(more));
    if (result == 0) {
        return let_go(std::move(directory), time);
    }
    fail_at(result, directory.get());
    return true;
}

/// 0: read to the end; more_to_come; has_given_way; -errno.
int tree_copy::copy_entries(copied& directory, const slice& time, directories& more) {
    if (directory.is_read) { // only its end is left
        return 0;
    }
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
    if (!directory.has_read && directory.has_target) {
        directory.target_is_private = is_private(to.fd());
    }
    directory.has_read = true;
    const int result = read_on(directory, from.fd(), to.fd(), time, more);
    directory.is_read = result == 0;
    return result;
}

int tree_copy::read_on(copied& directory, int from, int to, const slice& time, directories& more) {
    const bool from_is_private = is_private(directory.original.status());
    for (;;) {
        const bool is_late = time.is_over();
        alignas(8) std::array<std::byte, buffer_size> buffer;
        const int n = read_entries(from, buffer.data(), buffer.size());
        if (n <= 0) {
            return n;
        }
        raw_entries entries(buffer.data(), static_cast<std::size_t>(n));
        while (!entries.empty()) {
            const raw_entry entry = entries.front();
            const place p{from,         entry.name(), entry.type(),    to,
                          entry.name(), &directory,   from_is_private, directory.target_is_private};
            const int result = give_way(copy_one(p, time, more), time);
            if (result == has_given_way || result == more_to_come) {
                return result;
            }
            if (result < 0) {
                fail_at(result, &directory, entry.name());
                return result;
            }
            directory.position = entry.position_behind();
            entries.pop();
            if (!entries.empty() && time.is_over()) {
                return more_to_come;
            }
        }
        if (more.size() >= enough_directories || leaves_rest(n, buffer_size, is_late, time)) {
            return more_to_come;
        }
    }
}

/// Takes the identity and the attributes of the copy from the opened directory.
int tree_copy::begin_directory(copied& directory, int from) {
    struct ::stat status{};
    if (const int r = sys::fstat(from, &status); r < 0) {
        return r;
    }
    directory.original = attributes(from, status);
    copied* const above = directory.above();
    if (above != nullptr) {
        if (has_target_ && target_.device == status.st_dev && target_.inode == status.st_ino) {
            return -EINVAL; // a copy into itself
        }
        if (directory.may_be_by_link() &&
            table_.is_at_or_above(*above, status.st_dev, status.st_ino)) {
            return -ELOOP;
        }
    }
    if (!directory.has_target) {
        // Creating entries in it requires write permission; the mode is restored at the end. If the
        // owner is copied, group and others get their rights together with it.
        const ::mode_t mode = directory.original.mode();
        const ::mode_t made = as_the_standard_ ? mode : options_.owner ? S_IRWXU : mode | S_IRWXU;
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

/// Decrements the directory's `left` and, if nothing is left, completes the directory and continues
/// with its parent, until the slice ends. Returns false if this job should end.
bool tree_copy::let_go(owned<copied> directory, const slice& time) {
    bool is_first = true;
    while (directory && directory->left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const bool is_late = !std::exchange(is_first, false) && time.is_over();
        const int result = is_late ? 0 : finish_directory(*directory);
        const bool gives = is_scarce(result) && gives_way();
        if (is_late || gives) {
            directory->left.store(1, std::memory_order_relaxed);
            waiting_.put(std::move(directory)); // has been read to its end
            return !gives;
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
    const attributes& original = directory.original;
    const ::mode_t mode = original.mode();
    if (as_the_standard_ || (!keeps && (!directory.is_new || (mode & 0700) == 0700))) {
        return 0;
    }
    const pinned_directory target(table_, *directory.target);
    if (target.fd() < 0) {
        return target.fd();
    }
    int result = 0;
    if (options_.owner) {
        result = original.give_all(target.fd());
        result = result < 0 ? result : original.give_id_bits(target.fd());
    } else { // the set-group-ID bit is inherited; other bits may be subject to the umask
        struct ::stat made{};
        result = sys::fstat(target.fd(), &made);
        const ::mode_t bits = keeps ? mode | (made.st_mode & set_id_bits)
                                    : made.st_mode & 07777U & (mode | set_id_bits);
        result = result < 0 ? result : sys::fchmod(target.fd(), bits);
    }
    if (result == 0 && options_.times) {
        const ::timespec times[2] = {original.status().st_atim, original.status().st_mtim};
        result = sys::futimens(target.fd(), times);
    }
    return result;
}

} // namespace coil::fs::detail
