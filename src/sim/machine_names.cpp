// Calls of a machine on names of files.

#include "machine.hpp"
#include "open_file.hpp"
#include "pipe.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
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

const char* text(std::uint64_t address) noexcept {
    return reinterpret_cast<const char*>(static_cast<std::uintptr_t>(address));
}

::statx_timestamp time_of(std::int64_t ns) noexcept {
    ::statx_timestamp t{};
    t.tv_sec = (epoch_ns + ns) / 1'000'000'000;
    t.tv_nsec = static_cast<std::uint32_t>((epoch_ns + ns) % 1'000'000'000);
    return t;
}

} // namespace

/// Where a path leads that is relative to a directory's descriptor.
place machine::find(int dirfd, const char* path, bool follow, bool may_be_empty) {
    place p;
    if (path == nullptr) {
        p.error = -EFAULT;
        return p;
    }
    constexpr std::string_view own_descriptors = "/proc/self/fd/";
    const std::string_view whole(path);
    if (follow && whole.starts_with(own_descriptors)) {
        int fd = -1;
        const std::string_view number = whole.substr(own_descriptors.size());
        std::from_chars(number.data(), number.data() + number.size(), fd);
        const auto* const opened = dynamic_cast<open_file*>(get(fd));
        p.target = opened != nullptr ? opened->node : ref<inode>();
        p.error = opened == nullptr ? -ENOENT : 0;
        return p;
    }
    if (dirfd == AT_FDCWD || whole.starts_with('/')) {
        if (whole.empty() && may_be_empty) {
            p.target = ref<inode>(&files.root());
            return p;
        }
        return files.find(files.root(), whole, follow);
    }
    file* const f = get(dirfd);
    auto* const opened = dynamic_cast<open_file*>(f);
    if (f == nullptr) {
        p.error = -EBADF;
    } else if (whole.empty()) {
        p.error = !may_be_empty ? -ENOENT : opened == nullptr ? -EBADF : 0;
        p.target = opened != nullptr ? opened->node : ref<inode>();
    } else if (opened == nullptr || !opened->node->is_directory()) {
        p.error = -ENOTDIR;
    } else {
        return files.find(*opened->node, whole, follow);
    }
    return p;
}

int machine::attempt_names(op& call) {
    const uring::sqe& entry = call.entry;
    if (world.fault(world.options.faults.io_error, "EIO")) {
        return -EIO;
    }
    switch (call.code()) {
    case opcode::openat:
        return open_path(entry.fd, text(entry.addr), static_cast<int>(entry.open_flags), entry.len);
    case opcode::openat2: {
        ::open_how how{};
        std::memcpy(&how, text(entry.off), std::min<std::size_t>(entry.len, sizeof how));
        if ((how.resolve & ~std::uint64_t{RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV}) != 0) {
            return -EOPNOTSUPP;
        }
        return open_path(entry.fd, text(entry.addr), static_cast<int>(how.flags),
                         static_cast<::mode_t>(how.mode));
    }
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

int machine::open_path(int dirfd, const char* path, int flags, ::mode_t mode) {
    const bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
    place p = find(dirfd, path, (flags & O_NOFOLLOW) == 0 && !exclusive, false);
    if (p.error != 0) {
        return p.error;
    }
    if (const int error = descriptor_fault(); error != 0) {
        return error;
    }
    const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    if (nameless) {
        if (!p.target || !p.target->is_directory()) {
            return p.target ? -ENOTDIR : -ENOENT;
        }
        if ((flags & O_ACCMODE) == O_RDONLY) {
            return -EINVAL;
        }
        p.target = files.create(S_IFREG | (mode & 07777));
    } else if (!p.target) {
        if ((flags & O_CREAT) == 0) {
            return -ENOENT;
        }
        if (p.wants_directory) {
            return -EISDIR;
        }
        p.target = files.create(S_IFREG | (mode & 07777));
        files.put(*p.directory, p.name, *p.target);
    } else if (exclusive) {
        return -EEXIST;
    }
    inode& node = *p.target;
    if (node.is_link() && (flags & O_PATH) == 0) {
        return -ELOOP;
    }
    if ((flags & O_DIRECTORY) != 0 && !nameless && !node.is_directory()) {
        return -ENOTDIR;
    }
    if (node.is_directory() && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0) &&
        (flags & O_PATH) == 0) {
        return -EISDIR;
    }
    if (S_ISSOCK(node.mode) && (flags & O_PATH) == 0) {
        return -ENXIO;
    }
    if ((flags & O_TRUNC) != 0 && node.is_regular() && (flags & O_PATH) == 0 && node.size() > 0) {
        node.resize(0);
    }
    auto opened = make<open_file>(*this, p.target, flags);
    return open(ref<file>(opened));
}

int machine::statx(const uring::sqe& entry) {
    const auto flags = static_cast<int>(entry.statx_flags);
    auto* const out = reinterpret_cast<struct ::statx*>(entry.off);
    ref<inode> node;
    std::uint64_t number = 0;
    if (file* const f = get(entry.fd); f != nullptr && (flags & AT_EMPTY_PATH) != 0 &&
                                       text(entry.addr)[0] == '\0' &&
                                       dynamic_cast<open_file*>(f) == nullptr) {
        node =
            files.create(dynamic_cast<pipe_end*>(f) != nullptr ? S_IFIFO | 0600 : S_IFSOCK | 0777);
        node->links = 1;
        number = f->number;
    } else {
        const place p = find(entry.fd, text(entry.addr), (flags & AT_SYMLINK_NOFOLLOW) == 0,
                             (flags & AT_EMPTY_PATH) != 0);
        if (p.error != 0) {
            return p.error;
        }
        node = p.target;
    }
    if (!node) {
        return -ENOENT;
    }
    struct ::statx s{};
    s.stx_mask = STATX_BASIC_STATS | STATX_BTIME;
    s.stx_blksize = 4096;
    s.stx_nlink = node->links;
    s.stx_mode = static_cast<std::uint16_t>(node->mode);
    s.stx_ino = number != 0 ? number : node->number;
    s.stx_size = node->is_link() ? node->target.size() : node->is_directory() ? 4096 : node->size();
    s.stx_blocks = node->blocks();
    s.stx_atime = time_of(node->accessed);
    s.stx_btime = time_of(node->born);
    s.stx_ctime = time_of(node->changed);
    s.stx_mtime = time_of(node->modified);
    s.stx_rdev_major = ::gnu_dev_major(node->device);
    s.stx_rdev_minor = ::gnu_dev_minor(node->device);
    s.stx_dev_major = 253;
    s.stx_dev_minor = index;
    std::memcpy(out, &s, sizeof s);
    return 0;
}

int machine::mkdir(const uring::sqe& entry) {
    const place p = find(entry.fd, text(entry.addr), false, false);
    if (p.error != 0) {
        return p.error;
    }
    if (p.target || p.name.empty()) {
        return -EEXIST;
    }
    if (p.directory->links == 0) {
        return -ENOENT;
    }
    files.put(*p.directory, p.name, *files.create(S_IFDIR | (entry.len & 07777)));
    return 0;
}

int machine::unlink(const uring::sqe& entry) {
    const place p = find(entry.fd, text(entry.addr), false, false);
    if (p.error != 0) {
        return p.error;
    }
    const bool wants_directory = (entry.unlink_flags & AT_REMOVEDIR) != 0;
    if (!p.target) {
        return -ENOENT;
    }
    if (p.name.empty()) {
        return wants_directory ? (p.target.get() == &files.root() ? -EBUSY : -EINVAL) : -EISDIR;
    }
    if (wants_directory && !p.target->is_directory()) {
        return -ENOTDIR;
    }
    if (!wants_directory && p.target->is_directory()) {
        return -EISDIR;
    }
    if (wants_directory && !p.target->entries.empty()) {
        return -ENOTEMPTY;
    }
    files.remove(*p.directory, p.name);
    return 0;
}

int machine::rename(const uring::sqe& entry) {
    const place from = find(entry.fd, text(entry.addr), false, false);
    const place to = find(static_cast<int>(entry.len), text(entry.addr2), false, false);
    const bool keep = (entry.rename_flags & RENAME_NOREPLACE) != 0;
    const bool exchange = (entry.rename_flags & RENAME_EXCHANGE) != 0;
    if ((entry.rename_flags & ~unsigned{RENAME_NOREPLACE | RENAME_EXCHANGE}) != 0 ||
        (keep && exchange)) {
        return -EINVAL;
    }
    if (from.error != 0 || to.error != 0) {
        return from.error != 0 ? from.error : to.error;
    }
    if (!from.target) {
        return -ENOENT;
    }
    if (from.name.empty() || to.name.empty()) {
        return -EBUSY;
    }
    if (exchange && !to.target) {
        return -ENOENT;
    }
    if (to.target && keep) {
        return -EEXIST;
    }
    const bool is_directory = from.target->is_directory();
    if (to.wants_directory && !to.target && !is_directory) {
        return -ENOTDIR;
    }
    for (const inode* above = to.directory.get(); is_directory; above = above->parent) {
        if (above == from.target.get()) {
            return -EINVAL;
        }
        if (above->parent == above) {
            break;
        }
    }
    if (to.target && !exchange) {
        if (to.target == from.target) {
            return 0;
        }
        if (is_directory && !to.target->is_directory()) {
            return -ENOTDIR;
        }
        if (!is_directory && to.target->is_directory()) {
            return -EISDIR;
        }
        if (is_directory && !to.target->entries.empty()) {
            return -ENOTEMPTY;
        }
    }
    files.move(*from.directory, from.name, *to.directory, to.name, exchange);
    return 0;
}

int machine::symlink(const uring::sqe& entry) {
    const place p = find(entry.fd, text(entry.addr2), false, false);
    if (p.error != 0) {
        return p.error;
    }
    if (p.target || p.name.empty()) {
        return -EEXIST;
    }
    const std::string_view target(text(entry.addr));
    if (target.empty()) {
        return -ENOENT;
    }
    const ref<inode> made = files.create(S_IFLNK | 0777);
    made->target = target;
    files.put(*p.directory, p.name, *made);
    return 0;
}

int machine::link(const uring::sqe& entry) {
    const auto flags = static_cast<int>(entry.hardlink_flags);
    const place from = find(entry.fd, text(entry.addr), (flags & AT_SYMLINK_FOLLOW) != 0,
                            (flags & AT_EMPTY_PATH) != 0);
    if (from.error != 0) {
        return from.error;
    }
    if (!from.target) {
        return -ENOENT;
    }
    const place to = find(static_cast<int>(entry.len), text(entry.addr2), false, false);
    if (to.error != 0) {
        return to.error;
    }
    if (to.target || to.name.empty()) {
        return -EEXIST;
    }
    if (from.target->is_directory()) {
        return -EPERM;
    }
    files.put(*to.directory, to.name, *from.target);
    return 0;
}

int machine::read_link(const uring::sqe& entry) {
    const place p = find(entry.fd, text(entry.addr), false, true);
    if (p.error != 0 || !p.target) {
        return p.error != 0 ? p.error : -ENOENT;
    }
    if (!p.target->is_link()) {
        return -EINVAL;
    }
    const std::size_t count = std::min<std::size_t>(entry.len, p.target->target.size());
    std::memcpy(reinterpret_cast<char*>(entry.addr2), p.target->target.data(), count);
    return static_cast<int>(count);
}

int machine::access(const uring::sqe& entry) {
    const auto flags = static_cast<int>(entry.hardlink_flags);
    const place p = find(entry.fd, text(entry.addr), (flags & AT_SYMLINK_NOFOLLOW) == 0,
                         (flags & AT_EMPTY_PATH) != 0);
    if (p.error != 0 || !p.target) {
        return p.error != 0 ? p.error : -ENOENT;
    }
    return (entry.len & X_OK) != 0 && !p.target->is_directory() && (p.target->mode & 0111) == 0
               ? -EACCES
               : 0;
}

} // namespace coil::sim::detail
