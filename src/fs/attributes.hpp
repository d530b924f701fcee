#pragma once

#include <string>

#include <sys/stat.h>

namespace coil::fs::detail {

inline constexpr ::mode_t set_id_bits = S_ISUID | S_ISGID;

/// The owner, group, permissions and access control list (acl(5)) of a file, and the rules by which
/// a copy or a replacement takes them over. They give no user a right that the file did not give:
///
/// - If a list is not copied, group and other users get at most what all of its entries except the
///   owner's grant. The group bits of st_mode are the mask of the list, not the rights of the
///   group.
/// - A list that the copy inherits from its directory is removed by give_all().
/// - If the group should be kept but cannot be set, the actual group gets no more than other users.
/// - The set-user-ID and set-group-ID bits depend on more: give_id_bits().
class attributes {
public:
    attributes() noexcept = default;
    /// Reads the attributes of an open file, whose status is `status`. The access control list is
    /// read through /proc if the descriptor was opened with O_PATH.
    attributes(int fd, const struct ::stat& status);

    [[nodiscard]] const struct ::stat& status() const noexcept { return status_; }
    /// Whether the access control list, or its absence, is known. If not, group and others get no
    /// permissions; if a seccomp filter forbids reading the list, the group gets no more than
    /// others.
    [[nodiscard]] bool is_list_known() const noexcept { return is_list_known_; }
    /// The permissions for a copy without the list, and without set-user-ID and set-group-ID bits.
    [[nodiscard]] ::mode_t mode() const noexcept;

    /// Sets the owner, group, list and permissions of `to` as far as permitted, but neither the
    /// set-user-ID nor the set-group-ID bit. 0 or -errno.
    [[nodiscard]] int give_all(int to) const;
    /// Sets the set-user-ID bit of `to` if it has the same owner, and the set-group-ID bit if it
    /// has the same group. Call it after writing the data: write(2) clears both. 0 or -errno.
    [[nodiscard]] int give_id_bits(int to) const noexcept;
    /// The same for a copy of the data of `from`, with two more conditions. The bits must be
    /// effective on `from` (not on a mount with `nosuid`), and that file must be unchanged since
    /// its status was taken, because another user may have written the data otherwise.
    [[nodiscard]] int give_id_bits_of_data(int to, int from) const noexcept;

private:
    [[nodiscard]] bool give_list(int to) const;
    [[nodiscard]] int add_id_bits(int to, ::mode_t bits) const noexcept;

    struct ::stat status_{};
    std::string list_;            // as in the extended attribute; empty if there is none
    ::mode_t everyone_ = S_IRWXO; // what all entries of the list except the owner's grant
    bool is_list_known_ = true;
};

} // namespace coil::fs::detail
