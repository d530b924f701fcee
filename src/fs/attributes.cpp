#include "attributes.hpp"

#include "syscalls.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/statvfs.h>

namespace coil::fs::detail {

namespace {

constexpr int max_tries = 8; // while the list is being changed

bool means_no_list(int error) noexcept { return error == -ENODATA || error == -EOPNOTSUPP; }

/// Whether a seccomp filter forbids the call: no file system returns these errors for a list.
bool is_filtered(int error) noexcept { return error == -EPERM || error == -ENOSYS; }

/// Reads the access control list of a file as in its extended attribute, empty if it has none.
/// Returns 0 or -errno.
int read_list(int fd, std::string& list) {
    for (int tries = 0; tries < max_tries; ++tries) {
        int n = sys::get_access_list(fd, nullptr, 0);
        if (n > 0) {
            list.resize(static_cast<std::size_t>(n));
            n = sys::get_access_list(fd, list.data(), list.size());
        }
        if (n >= 0) {
            list.resize(static_cast<std::size_t>(n));
            return 0;
        }
        if (n != -ERANGE) {
            list.clear();
            return means_no_list(n) ? 0 : n;
        }
    }
    return -ERANGE;
}

/// The rights that all entries of a list except the owner's have in common; 0 for a malformed list.
::mode_t rights_of_everyone(std::string_view list) noexcept {
    ::posix_acl_xattr_header header{};
    ::posix_acl_xattr_entry entry{};
    if (list.size() < sizeof header || (list.size() - sizeof header) % sizeof entry != 0) {
        return 0;
    }
    std::memcpy(&header, list.data(), sizeof header);
    if (le32toh(header.a_version) != POSIX_ACL_XATTR_VERSION) {
        return 0;
    }
    ::mode_t rights = S_IRWXO;
    for (list.remove_prefix(sizeof header); !list.empty(); list.remove_prefix(sizeof entry)) {
        std::memcpy(&entry, list.data(), sizeof entry);
        if (le16toh(entry.e_tag) != ACL_USER_OBJ) {
            rights &= le16toh(entry.e_perm);
        }
    }
    return rights;
}

/// Removes a list that `to` may have inherited from its directory; returns whether it has none
/// then. Reading first costs less than removing a list that does not exist.
bool ends_without_list(int to) noexcept {
    const int n = sys::get_access_list(to, nullptr, 0);
    return n == 0 || means_no_list(n) || sys::remove_access_list(to) == 0;
}

/// Whether the owner or the group cannot be set: by this user, in this user namespace, on this file
/// system.
bool is_not_permitted(int error) noexcept {
    return error == -EPERM || error == -EINVAL || error == -EOPNOTSUPP;
}

bool is_same_time(const ::timespec& a, const ::timespec& b) noexcept {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

} // namespace

attributes::attributes(int fd, const struct ::stat& status) : status_(status) {
    const int result = read_list(fd, list_);
    is_list_known_ = result == 0;
    if (!is_list_known_) { // the group bits may be the mask of a list
        everyone_ = is_filtered(result) ? status.st_mode & S_IRWXO : 0U;
    } else if (!list_.empty()) {
        everyone_ = rights_of_everyone(list_);
    }
}

::mode_t attributes::mode() const noexcept {
    return status_.st_mode & 07777U & ~set_id_bits & (07700U | everyone_ << 3U | everyone_);
}

int attributes::give_all(int to) const {
    struct ::stat made{};
    if (const int r = sys::fstat(to, &made); r < 0) {
        return r;
    }
    if (made.st_uid != status_.st_uid || made.st_gid != status_.st_gid) {
        int r = sys::fchown(to, status_.st_uid, status_.st_gid);
        if (is_not_permitted(r)) { // changing only the group may be permitted
            r = sys::fchown(to, static_cast<::uid_t>(-1), status_.st_gid);
        }
        r = r < 0 && !is_not_permitted(r) ? r : sys::fstat(to, &made);
        if (r < 0) {
            return r;
        }
    }
    const bool has_group = made.st_gid == status_.st_gid;
    if (has_group && made.st_uid == status_.st_uid && give_list(to)) {
        return sys::fchmod(to, status_.st_mode & 07777U & ~set_id_bits);
    }
    const ::mode_t limited = mode();
    // The group bits are the mask of a remaining list: it may grant what all others have.
    const ::mode_t as_others = (limited & S_IRWXO) << 3U;
    const bool keeps_group = ends_without_list(to) && has_group;
    return sys::fchmod(to, keeps_group ? limited : limited & (07707U | as_others));
}

/// Gives `to` this file's list, or none if this file has none. Returns whether that succeeded.
bool attributes::give_list(int to) const {
    if (!is_list_known_) {
        return false;
    }
    if (!list_.empty()) {
        return sys::set_access_list(to, list_.data(), list_.size()) == 0;
    }
    return ends_without_list(to);
}

int attributes::give_id_bits(int to) const noexcept {
    return add_id_bits(to, status_.st_mode & set_id_bits);
}

int attributes::give_id_bits_of_data(int to, int from) const noexcept {
    struct ::stat current{};
    struct ::statvfs mount{};
    if ((status_.st_mode & set_id_bits) == 0 || sys::fstat(from, &current) < 0 ||
        !is_same_time(current.st_ctim, status_.st_ctim) || sys::fstatvfs(from, &mount) < 0 ||
        (mount.f_flag & ST_NOSUID) != 0) {
        return 0;
    }
    return add_id_bits(to, status_.st_mode & current.st_mode & set_id_bits);
}

int attributes::add_id_bits(int to, ::mode_t bits) const noexcept {
    struct ::stat made{};
    if (bits == 0) {
        return 0;
    }
    if (const int r = sys::fstat(to, &made); r < 0) {
        return r;
    }
    bits &= (made.st_uid == status_.st_uid ? S_ISUID : 0U) |
            (made.st_gid == status_.st_gid ? S_ISGID : 0U);
    return bits == 0 ? 0 : sys::fchmod(to, (made.st_mode & 07777U) | bits);
}

} // namespace coil::fs::detail
