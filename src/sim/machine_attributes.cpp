// Calls on the attributes of files: status, permissions, owners, times.

#include "machine.hpp"
#include "open_file.hpp"
#include "pipe.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace coil::sim::detail {

namespace {

::statx_timestamp time_of(const ::timespec& time) noexcept {
    ::statx_timestamp t{};
    t.tv_sec = time.tv_sec;
    t.tv_nsec = static_cast<std::uint32_t>(time.tv_nsec);
    return t;
}

resolution way_of(int flags) noexcept {
    return {(flags & AT_SYMLINK_NOFOLLOW) == 0 ? last_link::followed : last_link::kept};
}

} // namespace

int machine::statx(const uring::sqe& entry) {
    const auto flags = static_cast<int>(entry.statx_flags);
    auto* const out = reinterpret_cast<struct ::statx*>(entry.off);
    constexpr int known =
        AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE;
    if ((flags & ~known) != 0 || (flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE ||
        (entry.len & STATX__RESERVED) != 0) {
        return -EINVAL;
    }
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
        const place p =
            find(entry.fd, text(entry.addr), way_of(flags), (flags & AT_EMPTY_PATH) != 0);
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
    s.stx_uid = node->owner;
    s.stx_gid = node->group;
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

int machine::read_link(const uring::sqe& entry) {
    const char* const path = text(entry.addr);
    const place p = find(entry.fd, path, {last_link::kept}, get(entry.fd) != nullptr);
    if (p.error != 0 || !p.target) {
        return p.error != 0 ? p.error : -ENOENT;
    }
    if (entry.len == 0) {
        return -EINVAL;
    }
    if (!p.target->is_link()) {
        return path[0] == '\0' ? -ENOENT : -EINVAL;
    }
    p.target->note_access();
    const std::size_t count = std::min<std::size_t>(entry.len, p.target->target.size());
    std::memcpy(pointer<char>(entry.addr2), p.target->target.data(), count);
    return static_cast<int>(count);
}

/// Programs of a host run as root and may read and write everything.
int machine::access(const uring::sqe& entry) {
    const auto flags = static_cast<int>(entry.hardlink_flags);
    const place p = find(entry.fd, text(entry.addr), way_of(flags), (flags & AT_EMPTY_PATH) != 0);
    if (p.error != 0 || !p.target) {
        return p.error != 0 ? p.error : -ENOENT;
    }
    return (entry.len & X_OK) != 0 && !p.target->is_directory() && (p.target->mode & 0111) == 0
               ? -EACCES
               : 0;
}

place machine::find_subject(const uring::sqe& entry) {
    place p;
    if (entry.addr != 0) {
        const auto flags = static_cast<int>(entry.hardlink_flags);
        p = find(entry.fd, text(entry.addr), way_of(flags), (flags & AT_EMPTY_PATH) != 0);
    } else {
        const auto* const opened = dynamic_cast<open_file*>(get(entry.fd));
        const bool is_statvfs =
            entry.opcode == static_cast<std::uint8_t>(uring::call_opcode::statvfs);
        if (opened != nullptr && (!opened->is_path() || is_statvfs)) {
            p.target = opened->node;
        } else {
            // Attributes of pipes and sockets are not simulated.
            p.error = opened == nullptr && get(entry.fd) != nullptr ? -EOPNOTSUPP : -EBADF;
        }
    }
    if (p.error == 0 && !p.target) {
        p.error = -ENOENT;
    }
    return p;
}

int machine::set_attributes(const uring::sqe& entry) {
    using uring::call_opcode;
    if (!up || world.fault(world.options.faults.io_error, "EIO")) {
        return -EIO;
    }
    const place p = find_subject(entry);
    if (p.error != 0) {
        return p.error;
    }
    switch (static_cast<call_opcode>(entry.opcode)) {
    case call_opcode::fchmod:
    case call_opcode::fchmodat:
        if (p.target->is_link()) {
            return -EOPNOTSUPP;
        }
        p.target->set_permissions(entry.len);
        return 0;
    case call_opcode::fchownat:
        p.target->set_owner(entry.len, static_cast<::gid_t>(entry.addr2));
        return 0;
    default:
        return set_times(entry, *p.target);
    }
}

int machine::set_times(const uring::sqe& entry, inode& node) {
    const ::timespec now = files.clock();
    const auto* const times = pointer<const ::timespec>(entry.addr2);
    const auto is_valid = [](const ::timespec& t) {
        return t.tv_nsec == UTIME_NOW || t.tv_nsec == UTIME_OMIT ||
               (t.tv_nsec >= 0 && t.tv_nsec < 1'000'000'000);
    };
    const auto set = [&](::timespec& which, const ::timespec& to) {
        if (to.tv_nsec != UTIME_OMIT) {
            which = to.tv_nsec == UTIME_NOW ? now : to;
        }
    };
    if (times == nullptr) {
        node.accessed = node.modified = now;
    } else if (!is_valid(times[0]) || !is_valid(times[1])) {
        return -EINVAL;
    } else if (times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT) {
        return 0;
    } else {
        set(node.accessed, times[0]);
        set(node.modified, times[1]);
    }
    node.changed = now;
    return 0;
}

int machine::space(const uring::sqe& entry) {
    constexpr std::uint64_t block = 4096;
    const place p = find_subject(entry);
    if (p.error != 0) {
        return p.error;
    }
    struct ::statvfs found{};
    found.f_bsize = found.f_frsize = block;
    found.f_blocks = files.capacity() / block;
    found.f_bfree = found.f_bavail = (files.capacity() - files.used()) / block;
    found.f_namemax = 255;
    found.f_fsid = index;
    std::memcpy(pointer<char>(entry.addr2), &found, sizeof found);
    return 0;
}

} // namespace coil::sim::detail
