#pragma once

#include <coil/core/inplace_stop_token.hpp>

#include <cstdint>

#include <sys/types.h>

struct stat;

namespace coil::fs::detail {

/// The data of one regular file to another, by whatever is best between the two: a clone that
/// shares blocks (ioctl_ficlonerange(2)), copy_file_range(2), sendfile(2), read(2) and write(2).
/// Where the source has holes, so does the target. It copies until the source ends, however long it
/// was said to be: files of /proc, and those that grow meanwhile, come entirely.
///
/// Plain blocking calls, for a function on the blocking pool. Neither descriptor's position
/// matters, nor where it stands afterwards. The target is empty, open for writing and not
/// O_APPEND; what of it is left after an error is up to the caller.
///
///     data_copy copy(from, to, status_of_from);
///     int r = copy.go_on(unlimited, token);   // 0, or −errno
class data_copy {
public:
    /// For go_on(): as far as there is something.
    static constexpr std::uint64_t unlimited = UINT64_MAX;

    data_copy() noexcept = default;
    data_copy(int from, int to, const struct ::stat& from_status) noexcept;

    /// Copies about `bytes` more. 1: there may be more; 0: all is copied; −errno. −ECANCELED once
    /// `stop` asks for it, which is looked at every few MiB.
    [[nodiscard]] int go_on(std::uint64_t bytes, inplace_stop_token stop = {}) noexcept;

    /// How far it is: the position in the file, holes included.
    [[nodiscard]] std::uint64_t done() const noexcept { return static_cast<std::uint64_t>(done_); }
    /// How far it goes; of a file that is longer than it says, how far it is.
    [[nodiscard]] std::uint64_t total() const noexcept {
        return static_cast<std::uint64_t>(done_ > size_ ? done_ : size_);
    }

private:
    enum class way : unsigned char { clone, range, send, buffer };

    [[nodiscard]] bool clone() noexcept;
    [[nodiscard]] int find_data() noexcept;
    [[nodiscard]] ::ssize_t copy_some(std::uint64_t most) noexcept;
    [[nodiscard]] ::ssize_t copy_range(std::size_t most) noexcept;
    [[nodiscard]] ::ssize_t send(std::size_t most) noexcept;
    [[nodiscard]] ::ssize_t copy_buffer(std::size_t most) noexcept;

    int from_ = -1;
    int to_ = -1;
    ::off_t done_ = 0;
    ::off_t size_ = 0;
    ::off_t data_end_ = 0; // of a file with holes: where the next one begins
    ::off_t written_ = 0;  // how long the target is
    way way_ = way::clone;
    bool sparse_ = false;
    bool ended_ = false;
};

} // namespace coil::fs::detail
