#include "tree_copy.hpp"

#include "call.hpp"
#include "stat.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace coil::fs::detail {

namespace {

constexpr std::size_t buffer_size = 16384; // some hundred entries
constexpr std::uint64_t piece = 1U << 20;  // of a file: a few hundred microseconds
constexpr int more_to_come = 1;

bool is_same(const struct ::stat& a, const struct ::stat& b) noexcept {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_other(const struct ::stat& s) noexcept {
    return !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode) && !S_ISLNK(s.st_mode);
}

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
        std::vector<item> more;
        begin(more);
        waiting_.put(std::move(more));
    }
    item next{own<copied>(nullptr), nullptr};
    while (error() == 0 && waiting_.take(next)) {
        if (next.file != nullptr) {
            const int result = go_on(*next.file, &time);
            if (result == more_to_come) {
                waiting_.put(std::move(next));
            } else if (result < 0) {
                fail_at(result, next.file->directory.get(), next.file->name.c_str());
            } else if (owned<copied> in = std::move(next.file->directory)) {
                let_go(std::move(in));
            }
            next = {};
        } else {
            copy_some(std::move(next.directory), time);
        }
        if (time.is_over() || wants_help()) {
            return true;
        }
    }
    return false;
}

/// In a directory, of one of its entries, or at the top.
void tree_copy::fail_at(int error, const copied* in, const char* entry) {
    if (fail(error)) {
        failed_at_ = in == nullptr ? std::pair(from_.native(), to_.native())
                                   : std::pair(in->path_of(entry), in->target->path_of(entry));
    }
}

void tree_copy::begin(std::vector<item>& more) {
    const place top{AT_FDCWD, from_.c_str(), DT_UNKNOWN, AT_FDCWD, to_.c_str(), nullptr};
    const int result = copy_one(top, nullptr, more);
    if (result < 0) {
        fail_at(result, nullptr);
    }
}

void tree_copy::copy_some(owned<copied> directory, const slice& time) {
    std::vector<item> more;
    const int result = copy_entries(*directory, time, more);
    if (result == more_to_come) {
        waiting_.put({std::move(directory), nullptr}, std::move(more));
    } else if (result == 0) {
        let_go(std::move(directory));
    } else {
        fail_at(result, directory.get());
    }
}

/// 0: to the end; more_to_come; −errno.
int tree_copy::copy_entries(copied& directory, const slice& time, std::vector<item>& more) {
    const pinned_directory from(table_, directory);
    if (from.fd() < 0) {
        return from.fd();
    }
    const pinned_directory to(table_, *directory.target);
    if (to.fd() < 0) {
        return to.fd();
    }
    if (directory.position != 0) { // it may have been closed meanwhile
        sys::lseek(from.fd(), directory.position, SEEK_SET);
    }
    for (;;) {
        alignas(8) std::array<std::byte, buffer_size> buffer;
        const int n = read_entries(from.fd(), buffer.data(), buffer.size());
        if (n <= 0) {
            return n;
        }
        raw_entries entries(buffer.data(), static_cast<std::size_t>(n));
        for (; !entries.empty(); entries.pop()) {
            const raw_entry entry = entries.front();
            const place p{from.fd(), entry.name(), entry.type(), to.fd(), entry.name(), &directory};
            const int result = copy_one(p, &time, more);
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

/// As std::filesystem::copy does it for one file or directory; a directory's entries come later.
int tree_copy::copy_one(const place& p, const slice* time, std::vector<item>& more) {
    if (p.in != nullptr && p.in->is_new && p.type == DT_REG && !looks_at_links() &&
        !has(copy_options::directories_only) && !has(copy_options::create_hard_links)) {
        const int result = copy_new(p, time, more); // nothing can be in its way
        if (result != -EEXIST && result != -ELOOP) {
            return result;
        }
    }
    struct ::stat from{};
    const bool lstat = looks_at_links() || has(copy_options::copy_symlinks);
    const int result = sys::fstatat(p.from_at, p.from, &from, lstat ? AT_SYMLINK_NOFOLLOW : 0);
    return result < 0 ? result : copy_known(p, from, time, more);
}

int tree_copy::copy_known(const place& p, struct ::stat& from, const slice* time,
                          std::vector<item>& more) {
    struct ::stat to_status{};
    struct ::stat* to = &to_status;
    const int result = sys::fstatat(p.to_at, p.to, to, looks_at_links() ? AT_SYMLINK_NOFOLLOW : 0);
    if (result < 0) {
        if (result != -ENOENT && result != -ENOTDIR) {
            return result;
        }
        to = nullptr;
    }
    if (to != nullptr && !is_other(*to) && !is_other(from) && is_same(from, *to)) {
        return -EEXIST;
    }
    if (is_other(from) || (to != nullptr && is_other(*to))) {
        return -EINVAL;
    }
    if (S_ISDIR(from.st_mode) && to != nullptr && S_ISREG(to->st_mode)) {
        return -EISDIR;
    }
    if (S_ISLNK(from.st_mode)) {
        if (has(copy_options::skip_symlinks)) {
            return 0;
        }
        return to == nullptr && has(copy_options::copy_symlinks) ? copy_link(p, from) : -EINVAL;
    }
    if (S_ISREG(from.st_mode)) {
        if (has(copy_options::directories_only)) {
            return 0;
        }
        if (has(copy_options::create_symlinks)) {
            entries_.fetch_add(1, std::memory_order_relaxed);
            const std::string text = p.in != nullptr ? p.in->path_of(p.from) : from_.native();
            return sys::symlinkat(text.c_str(), p.to_at, p.to);
        }
        if (has(copy_options::create_hard_links)) {
            entries_.fetch_add(1, std::memory_order_relaxed);
            return sys::linkat(p.from_at, p.from, p.to_at, p.to, 0);
        }
        if (to == nullptr || !S_ISDIR(to->st_mode)) {
            return copy_regular(p, p.to, from, to, time, more);
        }
        const std::string inside = (path(p.to) / path(p.from).filename()).native();
        struct ::stat there{};
        const int found = sys::fstatat(p.to_at, inside.c_str(), &there, 0);
        if (found < 0 && found != -ENOENT && found != -ENOTDIR) {
            return found;
        }
        return copy_regular(p, inside.c_str(), from, found < 0 ? nullptr : &there, time, more);
    }
    if (has(copy_options::create_symlinks)) {
        return -EISDIR;
    }
    if (has(copy_options::recursive) ||
        (p.in == nullptr && options_.options == copy_options::none)) {
        return copy_directory(p, from, to, more);
    }
    return 0;
}

int tree_copy::copy_link(const place& p, const struct ::stat& from) {
    std::string text;
    std::size_t size = from.st_size > 0 ? static_cast<std::size_t>(from.st_size) + 1 : 256;
    for (;; size *= 2) {
        text.resize(size);
        const int n = sys::readlinkat(p.from_at, p.from, text.data(), size);
        if (n < 0) {
            return n;
        }
        if (static_cast<std::size_t>(n) < size) {
            text.resize(static_cast<std::size_t>(n));
            break;
        }
    }
    entries_.fetch_add(1, std::memory_order_relaxed);
    const int result = sys::symlinkat(text.c_str(), p.to_at, p.to);
    if (result < 0) {
        return result;
    }
    if (options_.owner) {
        static_cast<void>(
            sys::fchownat(p.to_at, p.to, from.st_uid, from.st_gid, AT_SYMLINK_NOFOLLOW) == 0);
    }
    if (options_.times) {
        const ::timespec times[2] = {from.st_atim, from.st_mtim};
        return sys::utimensat(p.to_at, p.to, times, AT_SYMLINK_NOFOLLOW);
    }
    return 0;
}

int tree_copy::copy_directory(const place& p, const struct ::stat& from, const struct ::stat* to,
                              std::vector<item>& more) {
    if (p.in != nullptr) {
        if (has_target_ && target_.device == from.st_dev && target_.inode == from.st_ino) {
            return -EINVAL; // into itself
        }
        if (p.type != DT_DIR && table_.is_at_or_above(*p.in, from.st_dev, from.st_ino)) {
            return -ELOOP;
        }
    }
    if (to == nullptr) {
        // What is put into it later needs the permission to.
        const ::mode_t mode = from.st_mode & 07777;
        const int made = sys::mkdirat(p.to_at, p.to, as_the_standard_ ? mode : mode | 0700);
        if (made < 0) {
            return made;
        }
    }
    entries_.fetch_add(1, std::memory_order_relaxed);
    const bool by_link = p.in == nullptr || p.type != DT_DIR;
    owned<copied> directory = own(new copied(p.in, p.from, by_link, from));
    directory->is_new = to == nullptr;
    directory->target = own(
        new directory_node(p.in != nullptr ? p.in->target.get() : nullptr, p.to, to != nullptr));
    if (p.in == nullptr) {
        const pinned_directory target(table_, *directory->target);
        struct ::stat status{};
        const int found = target.fd() < 0 ? target.fd() : sys::fstat(target.fd(), &status);
        if (found < 0) {
            return found;
        }
        target_ = {status.st_dev, status.st_ino};
        has_target_ = true;
    } else {
        p.in->left.fetch_add(1, std::memory_order_relaxed);
    }
    more.push_back({std::move(directory), nullptr});
    return 0;
}

/// As copy_file() does it.
int tree_copy::copy_regular(const place& p, const char* to_name, const struct ::stat& from,
                            const struct ::stat* to, const slice* time, std::vector<item>& more) {
    const bool replaces =
        has(copy_options::overwrite_existing) || has(copy_options::update_existing);
    if (to != nullptr) {
        if (!S_ISREG(to->st_mode)) {
            return -EINVAL;
        }
        if (is_same(from, *to)) {
            return -EEXIST;
        }
        if (has(copy_options::skip_existing)) {
            return 0;
        }
        if (has(copy_options::update_existing)) {
            if (!is_newer(from.st_mtim, to->st_mtim)) {
                return 0;
            }
        } else if (!replaces) {
            return -EEXIST;
        }
    }
    owned_descriptor in(table_.open_file(p.from_at, p.from, O_RDONLY | O_NONBLOCK, 0));
    if (in < 0) {
        return in;
    }
    const int flags = O_WRONLY | O_CREAT | (replaces ? O_TRUNC : O_EXCL);
    owned_descriptor out(table_.open_file(p.to_at, to_name, flags, S_IWUSR));
    if (out == -EEXIST && has(copy_options::skip_existing)) {
        return 0;
    }
    if (out < 0) {
        return out;
    }
    return begin_file(p, std::move(in), std::move(out), from, time, more);
}

/// A regular file into a directory in which there is nothing but what was copied: without asking
/// before. EEXIST, ELOOP: it is not like that.
int tree_copy::copy_new(const place& p, const slice* time, std::vector<item>& more) {
    owned_descriptor in(table_.open_file(p.from_at, p.from, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0));
    if (in < 0) {
        return in;
    }
    struct ::stat from{};
    if (const int r = sys::fstat(in, &from); r < 0) {
        return r;
    }
    if (!S_ISREG(from.st_mode)) {
        return -ELOOP;
    }
    owned_descriptor out(table_.open_file(p.to_at, p.to, O_WRONLY | O_CREAT | O_EXCL, S_IWUSR));
    if (out < 0) {
        return out;
    }
    return begin_file(p, std::move(in), std::move(out), from, time, more);
}

int tree_copy::begin_file(const place& p, owned_descriptor in, owned_descriptor out,
                          const struct ::stat& from, const slice* time, std::vector<item>& more) {
    entries_.fetch_add(1, std::memory_order_relaxed);
    const int result = set_owner_and_mode(out, from);
    if (result < 0) {
        return result;
    }
    const data_copy data(in, out, from);
    open_file file{std::move(in), std::move(out), from, data, own<copied>(nullptr), {}};
    const int copied_so_far = go_on(file, time);
    if (copied_so_far != more_to_come) {
        return copied_so_far;
    }
    if (p.in != nullptr) {
        directory_table::share(*p.in);
        file.directory = own(p.in);
        p.in->left.fetch_add(1, std::memory_order_relaxed);
        file.name = p.from;
    }
    more.push_back({own<copied>(nullptr), std::make_unique<open_file>(std::move(file))});
    return 0;
}

/// 0: it is complete; more_to_come, after a piece where there is no `time`; −errno.
int tree_copy::go_on(open_file& file, const slice* time) {
    int result = more_to_come;
    do {
        const std::uint64_t before = file.data.done();
        result = file.data.go_on(piece);
        bytes_.fetch_add(file.data.done() - before, std::memory_order_relaxed);
    } while (result == more_to_come && time != nullptr && !time->is_over());
    if (result != 0) {
        return result;
    }
    if (options_.times) {
        const ::timespec times[2] = {file.status.st_atim, file.status.st_mtim};
        result = sys::futimens(file.out, times);
    }
    const int closed = file.out.close();
    return result < 0 ? result : closed;
}

int tree_copy::set_owner_and_mode(int fd, const struct ::stat& from) const noexcept {
    if (options_.owner) { // before the mode, of which it may clear bits
        const int result = sys::fchown(fd, from.st_uid, from.st_gid);
        if (result == -EPERM) {
            static_cast<void>(sys::fchown(fd, static_cast<::uid_t>(-1), from.st_gid) == 0);
        } else if (result < 0) {
            return result;
        }
    }
    return sys::fchmod(fd, from.st_mode & 07777);
}

/// One of those who work on it is done with it; the last one completes it.
void tree_copy::let_go(owned<copied> directory) {
    while (directory && directory->left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const int result = finish_directory(*directory);
        if (result < 0) {
            fail_at(result, directory.get());
            return;
        }
        copied* const above = directory->above();
        if (above != nullptr) {
            table_.reach_parent(*directory);
            table_.reach_parent(*directory->target);
            directory_table::share(*above);
        }
        directory = own(above);
    }
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
    } else { // as the umask has left the rest
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
