// Calls on names of files.

#include "machine.hpp"
#include "open_file.hpp"
#include "pipe.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace coil::sim::detail {

namespace {

using uring::opcode;

} // namespace

/// Resolves a path relative to a directory descriptor.
place machine::find(int dirfd, const char* path, resolution way, bool may_be_empty) {
    place p;
    if (path == nullptr) {
        p.error = -EFAULT;
        return p;
    }
    constexpr std::string_view own_descriptors = "/proc/self/fd/";
    const std::string_view whole(path);
    if (way.link == last_link::followed && whole.starts_with(own_descriptors)) {
        int fd = -1;
        const std::string_view number = whole.substr(own_descriptors.size());
        std::from_chars(number.data(), number.data() + number.size(), fd);
        const auto* const opened = dynamic_cast<open_file*>(get(fd));
        p.target = opened != nullptr ? opened->node : ref<inode>();
        p.error = opened == nullptr ? -ENOENT : 0;
        return p;
    }
    file* const f = dirfd == AT_FDCWD ? nullptr : get(dirfd);
    auto* const opened = dynamic_cast<open_file*>(f);
    if (whole.empty() && may_be_empty && (dirfd == AT_FDCWD || opened != nullptr)) {
        p.target = opened != nullptr ? opened->node : ref<inode>(&files.root());
        return p;
    }
    const bool needs_start = (way.how & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0;
    if (dirfd == AT_FDCWD || (whole.starts_with('/') && !needs_start)) {
        return files.find(files.root(), whole, way);
    }
    if (whole.empty()) {
        p.error = !may_be_empty ? -ENOENT : -EBADF;
    } else if (f == nullptr) {
        p.error = -EBADF;
    } else if (opened == nullptr || !opened->node->is_directory()) {
        p.error = -ENOTDIR;
    } else {
        return files.find(*opened->node, whole, way);
    }
    return p;
}

int machine::check_new(const place& p, bool is_directory) {
    if (p.error != 0) {
        return p.error;
    }
    if (p.target || p.last != last_name::ordinary) {
        return -EEXIST;
    }
    return (p.wants_directory && !is_directory) || p.directory->links == 0 ? -ENOENT : 0;
}

ref<inode> machine::create_in(const inode& directory, ::mode_t mode) {
    constexpr ::mode_t umask = 022;
    if (!S_ISLNK(mode)) {
        mode &= ~umask;
    }
    const bool group_of_directory = (directory.mode & S_ISGID) != 0;
    if (group_of_directory && S_ISDIR(mode)) {
        mode |= S_ISGID;
    }
    ref<inode> made = files.create(mode);
    if (group_of_directory) {
        made->group = directory.group;
    }
    return made;
}

int machine::attempt_names(op& call) {
    const uring::sqe& entry = call.entry;
    if (world.fault(world.options.faults.io_error, "EIO")) {
        return -EIO;
    }
    switch (call.code()) {
    case opcode::openat:
        return open_path(entry.fd, text(entry.addr), entry.open_flags, entry.len, 0);
    case opcode::openat2:
        return open_as_told(entry);
    case opcode::statx:
        return statx(entry);
    case opcode::mkdirat:
        return mkdir(entry);
    case opcode::unlinkat:
        return unlink(entry);
    case opcode::renameat:
        return rename(entry);
    case opcode::symlinkat:
        return symlink(entry);
    case opcode::linkat:
        return link(entry);
    default:
        return -EINVAL;
    }
}

/// Unlike openat(2), openat2(2) refuses unknown flags.
int machine::open_as_told(const uring::sqe& entry) {
    ::open_how how{};
    if (entry.len < sizeof how) {
        return -EINVAL;
    }
    std::memcpy(&how, pointer<char>(entry.off), sizeof how);
    constexpr std::uint64_t known_flags = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC |
                                          O_APPEND | O_NONBLOCK | O_DSYNC | O_SYNC | O_ASYNC |
                                          O_DIRECT | O_LARGEFILE | 0100000 | O_NOFOLLOW |
                                          O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE;
    constexpr std::uint64_t known_ways = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS |
                                         RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_IN_ROOT |
                                         RESOLVE_CACHED;
    constexpr std::uint64_t both = RESOLVE_BENEATH | RESOLVE_IN_ROOT;
    constexpr std::uint64_t path_flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const bool makes = (how.flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0;
    if ((how.flags & ~known_flags) != 0 || (how.resolve & ~known_ways) != 0 ||
        (how.resolve & both) == both || (how.mode & ~std::uint64_t{07777}) != 0 ||
        (how.mode != 0 && !makes) ||
        ((how.flags & O_PATH) != 0 && (how.flags & ~path_flags) != 0)) {
        return -EINVAL;
    }
    if ((how.resolve & RESOLVE_CACHED) != 0) {
        return -EAGAIN; // as if nothing were cached
    }
    return open_path(entry.fd, text(entry.addr), how.flags, static_cast<::mode_t>(how.mode),
                     how.resolve);
}

int machine::open_path(int dirfd, const char* path, std::uint64_t flags, ::mode_t mode,
                       std::uint64_t resolve) {
    const bool only_path = (flags & O_PATH) != 0;
    if (only_path) {
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    }
    const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    const bool creates = (flags & O_CREAT) != 0;
    const bool exclusive = creates && (flags & O_EXCL) != 0;
    const bool reads_only = (flags & O_ACCMODE) == O_RDONLY;
    if ((creates && (flags & O_DIRECTORY) != 0) || (nameless && reads_only)) {
        return -EINVAL;
    }
    const last_link link = (flags & O_NOFOLLOW) == 0 && !exclusive ? last_link::followed
                           : creates                               ? last_link::named
                                                                   : last_link::kept;
    place p = find(dirfd, path, {link, resolve, creates}, false);
    if (p.error != 0) {
        return p.error;
    }
    if (const int error = descriptor_fault(); error != 0) {
        return error;
    }
    if (nameless) {
        if (!p.target || !p.target->is_directory()) {
            return p.target ? -ENOTDIR : -ENOENT;
        }
        p.target = create_in(*p.target, S_IFREG | (mode & 07777));
        p.target->may_be_linked = (flags & O_EXCL) == 0;
    } else if (!p.target) {
        if (const int error = create_file(p, flags, mode); error != 0) {
            return error;
        }
    } else if (exclusive) {
        return -EEXIST;
    }
    inode& node = *p.target;
    if (node.is_directory() && creates) {
        return -EISDIR;
    }
    if ((flags & O_DIRECTORY) != 0 && !nameless && !node.is_directory()) {
        return -ENOTDIR;
    }
    if (node.is_link() && !only_path) {
        return -ELOOP;
    }
    if (node.is_directory() && !only_path && (!reads_only || (flags & O_TRUNC) != 0)) {
        return -EISDIR;
    }
    if (S_ISSOCK(node.mode) && !only_path) {
        return -ENXIO;
    }
    if ((flags & O_DIRECT) != 0 && !node.is_regular()) {
        return -EINVAL; // with O_PATH, O_DIRECT is no longer in `flags`
    }
    if ((flags & O_TRUNC) != 0 && node.is_regular() && node.size() > 0) {
        node.resize(0);
    }
    return open(ref<file>(make<open_file>(*this, p.target, static_cast<int>(flags))));
}

int machine::create_file(place& p, std::uint64_t flags, ::mode_t mode) {
    if ((flags & O_CREAT) == 0) {
        return -ENOENT;
    }
    if (const int error = check_new(p, false); error != 0) {
        return error;
    }
    p.target = create_in(*p.directory, S_IFREG | (mode & 07777));
    files.put(*p.directory, p.name, *p.target);
    return 0;
}

int machine::mkdir(const uring::sqe& entry) {
    const place p = find(entry.fd, text(entry.addr), {last_link::named}, false);
    if (const int error = check_new(p, true); error != 0) {
        return error;
    }
    files.put(*p.directory, p.name, *create_in(*p.directory, S_IFDIR | (entry.len & 01777)));
    return 0;
}

int machine::unlink(const uring::sqe& entry) {
    const place p = find(entry.fd, text(entry.addr), {last_link::named}, false);
    if (p.error != 0) {
        return p.error;
    }
    if ((entry.unlink_flags & ~unsigned{AT_REMOVEDIR}) != 0) {
        return -EINVAL;
    }
    const bool wants_directory = (entry.unlink_flags & AT_REMOVEDIR) != 0;
    if (p.last != last_name::ordinary) {
        return !wants_directory               ? -EISDIR
               : p.last == last_name::root    ? -EBUSY
               : p.last == last_name::dot_dot ? -ENOTEMPTY
                                              : -EINVAL;
    }
    if (!p.target) {
        return -ENOENT;
    }
    if (!wants_directory && p.target->is_directory()) {
        return -EISDIR;
    }
    if ((wants_directory || p.wants_directory) && !p.target->is_directory()) {
        return -ENOTDIR;
    }
    if (wants_directory && !p.target->entries.empty()) {
        return -ENOTEMPTY;
    }
    files.remove(*p.directory, p.name);
    return 0;
}

namespace {

/// Whether `what` is `directory` or an ancestor of it.
bool is_above(const inode& what, const inode& directory) noexcept {
    const inode* at = &directory;
    while (at != &what && at->parent != at) {
        at = at->parent;
    }
    return at == &what;
}

/// Checks the file that a rename would replace: 0 or -errno.
int check_replaced(const inode& moved, const inode& replaced) noexcept {
    if (moved.is_directory() != replaced.is_directory()) {
        return moved.is_directory() ? -ENOTDIR : -EISDIR;
    }
    return moved.is_directory() && !replaced.entries.empty() ? -ENOTEMPTY : 0;
}

} // namespace

int machine::rename(const uring::sqe& entry) {
    const bool keep = (entry.rename_flags & RENAME_NOREPLACE) != 0;
    const bool exchange = (entry.rename_flags & RENAME_EXCHANGE) != 0;
    if ((entry.rename_flags & ~unsigned{RENAME_NOREPLACE | RENAME_EXCHANGE}) != 0 ||
        (keep && exchange)) {
        return -EINVAL;
    }
    const place from = find(entry.fd, text(entry.addr), {last_link::named}, false);
    const place to =
        find(static_cast<int>(entry.len), text(entry.addr2), {last_link::named}, false);
    if (from.error != 0 || to.error != 0) {
        return from.error != 0 ? from.error : to.error;
    }
    if (from.last != last_name::ordinary) {
        return -EBUSY;
    }
    if (to.last != last_name::ordinary) {
        return keep ? -EEXIST : -EBUSY;
    }
    if (!from.target || (exchange && !to.target)) {
        return -ENOENT;
    }
    if (to.target && keep) {
        return -EEXIST;
    }
    const bool is_directory = from.target->is_directory();
    if ((!is_directory && (from.wants_directory || (!exchange && to.wants_directory))) ||
        (exchange && to.wants_directory && !to.target->is_directory())) {
        return -ENOTDIR;
    }
    if (from.directory != to.directory) {
        if (is_above(*from.target, *to.directory)) {
            return -EINVAL;
        }
        if (to.target && is_above(*to.target, *from.directory)) {
            return exchange ? -EINVAL : -ENOTEMPTY;
        }
    }
    if (to.target == from.target) {
        return 0;
    }
    if (!to.target && to.directory->links == 0) {
        return -ENOENT;
    }
    if (to.target && !exchange) {
        if (const int error = check_replaced(*from.target, *to.target); error != 0) {
            return error;
        }
    }
    files.move(*from.directory, from.name, *to.directory, to.name, exchange);
    return 0;
}

int machine::symlink(const uring::sqe& entry) {
    const std::string_view target(text(entry.addr));
    if (target.empty() || target.size() >= PATH_MAX) {
        return target.empty() ? -ENOENT : -ENAMETOOLONG;
    }
    const place p = find(entry.fd, text(entry.addr2), {last_link::named}, false);
    if (const int error = check_new(p, false); error != 0) {
        return error;
    }
    const ref<inode> made = create_in(*p.directory, S_IFLNK | 0777);
    made->target = target;
    files.put(*p.directory, p.name, *made);
    return 0;
}

int machine::link(const uring::sqe& entry) {
    const auto flags = static_cast<int>(entry.hardlink_flags);
    if ((flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) != 0) {
        return -EINVAL;
    }
    const last_link way = (flags & AT_SYMLINK_FOLLOW) != 0 ? last_link::followed : last_link::kept;
    const place from = find(entry.fd, text(entry.addr), {way}, (flags & AT_EMPTY_PATH) != 0);
    if (from.error != 0 || !from.target) {
        return from.error != 0 ? from.error : -ENOENT;
    }
    const place to =
        find(static_cast<int>(entry.len), text(entry.addr2), {last_link::named}, false);
    if (const int error = check_new(to, false); error != 0) {
        return error;
    }
    if (from.target->is_directory()) {
        return -EPERM;
    }
    if (from.target->links == 0 && !from.target->may_be_linked) { // removed, or O_TMPFILE | O_EXCL
        return -ENOENT;
    }
    from.target->may_be_linked = false;
    files.put(*to.directory, to.name, *from.target);
    return 0;
}

} // namespace coil::sim::detail
