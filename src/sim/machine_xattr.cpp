// Extended attributes of files.

#include "machine.hpp"
#include "open_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/xattr.h>

namespace coil::sim::detail {

namespace {

using uring::opcode;

constexpr std::size_t longest_attribute = 255;
constexpr std::size_t largest_value = 65536;
constexpr std::string_view user_names = "user.";

/// 0, or -errno for a name that no file can have. Programs of a host run as root.
int check_name(std::string_view name) noexcept {
    if (name.empty() || name.size() > longest_attribute) {
        return -ERANGE;
    }
    for (const std::string_view space :
         {user_names, std::string_view("trusted."), std::string_view("security.")}) {
        if (name.starts_with(space)) {
            return name.size() > space.size() ? 0 : -EINVAL;
        }
    }
    return -EOPNOTSUPP;
}

bool may_have_user_names(const inode& node) noexcept {
    return node.is_regular() || node.is_directory();
}

} // namespace

place machine::find_attributed(const op& call) {
    const uring::sqe& entry = call.entry;
    place p;
    if (call.code() == opcode::getxattr || call.code() == opcode::setxattr) {
        p = find(AT_FDCWD, text(entry.addr3), {}, false);
    } else if (const auto* const opened = dynamic_cast<open_file*>(get(entry.fd))) {
        p.error = opened->is_path() ? -EBADF : 0;
        p.target = opened->node;
    } else if (get(entry.fd) != nullptr) { // attributes of pipes and sockets are not stored
        p.target = files.create(S_IFIFO | 0600);
    } else {
        p.error = -EBADF;
    }
    if (p.error == 0 && !p.target) {
        p.error = -ENOENT;
    }
    return p;
}

int machine::get_xattr(const op& call) {
    const uring::sqe& entry = call.entry;
    const std::string_view key(text(entry.addr));
    if (key.empty() || key.size() > longest_attribute) {
        return -ERANGE;
    }
    const place p = find_attributed(call);
    if (p.error != 0) {
        return p.error;
    }
    if (const int error = check_name(key); error != 0) {
        return error;
    }
    const auto found = p.target->attributes.find(key);
    if (found == p.target->attributes.end()) {
        return -ENODATA;
    }
    const std::string& value = found->second;
    if (entry.len == 0) {
        return static_cast<int>(value.size());
    }
    if (entry.len < value.size()) {
        return -ERANGE;
    }
    std::memcpy(pointer<char>(entry.addr2), value.data(), value.size());
    return static_cast<int>(value.size());
}

int machine::set_xattr(const op& call) {
    const uring::sqe& entry = call.entry;
    const std::string_view key(text(entry.addr));
    if ((entry.xattr_flags & ~std::uint32_t{XATTR_CREATE | XATTR_REPLACE}) != 0) {
        return -EINVAL;
    }
    if (key.empty() || key.size() > longest_attribute) {
        return -ERANGE;
    }
    if (entry.len > largest_value) {
        return -E2BIG;
    }
    const place p = find_attributed(call);
    if (p.error != 0) {
        return p.error;
    }
    if (const int error = check_name(key); error != 0) {
        return error;
    }
    if (key.starts_with(user_names) && !may_have_user_names(*p.target)) {
        return -EPERM;
    }
    auto& all = p.target->attributes;
    const bool exists = all.contains(key);
    if (exists && (entry.xattr_flags & XATTR_CREATE) != 0) {
        return -EEXIST;
    }
    if (!exists && (entry.xattr_flags & XATTR_REPLACE) != 0) {
        return -ENODATA;
    }
    all[std::string(key)].assign(pointer<const char>(entry.addr2), entry.len);
    p.target->changed = files.clock();
    return 0;
}

} // namespace coil::sim::detail
