#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>
#include <sys/types.h>
#include <sys/xattr.h>

// Access control lists (acl(5)) without a library.

namespace fs_test {

inline constexpr std::uint16_t of_owner = ACL_USER_OBJ;
inline constexpr std::uint16_t of_user = ACL_USER;
inline constexpr std::uint16_t of_group = ACL_GROUP_OBJ;
inline constexpr std::uint16_t of_mask = ACL_MASK;
inline constexpr std::uint16_t of_others = ACL_OTHER;

struct access_entry {
    std::uint16_t tag;
    std::uint16_t rights;
    ::uid_t id = static_cast<::uid_t>(ACL_UNDEFINED_ID);
};
using access_list = std::vector<access_entry>;

/// Sets the access list of a file, or the default list of a directory (`inherited`). Returns false
/// if that is not possible.
inline bool set_access_list(const std::filesystem::path& p, const access_list& list,
                            bool inherited = false) {
    const ::posix_acl_xattr_header header{htole32(POSIX_ACL_XATTR_VERSION)};
    std::string value(reinterpret_cast<const char*>(&header), sizeof header);
    for (const access_entry& e : list) {
        const ::posix_acl_xattr_entry entry{htole16(e.tag), htole16(e.rights), htole32(e.id)};
        value.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    }
    const char* const name = inherited ? XATTR_NAME_POSIX_ACL_DEFAULT : XATTR_NAME_POSIX_ACL_ACCESS;
    return ::setxattr(p.c_str(), name, value.data(), value.size(), 0) == 0;
}

/// The list in the format of the extended attribute; empty if there is none.
inline std::string access_list_of(const std::filesystem::path& p) {
    std::string value(4096, '\0');
    const ::ssize_t n =
        ::getxattr(p.c_str(), XATTR_NAME_POSIX_ACL_ACCESS, value.data(), value.size());
    value.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return value;
}

inline void remove_access_list(const std::filesystem::path& p) {
    ::removexattr(p.c_str(), XATTR_NAME_POSIX_ACL_ACCESS);
}

} // namespace fs_test
