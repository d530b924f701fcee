#pragma once

#include <coil/core/inplace_stop_token.hpp>

#include <cstdint>

#include <sys/types.h>

struct stat;

namespace coil::fs::detail {

/// Copies the data of one regular file to another by the best method that both support: a clone
/// that shares blocks (ioctl_ficlonerange(2)), copy_file_range(2), sendfile(2), read(2) and
/// write(2). Holes are preserved. It copies until the source ends, whatever its reported size, so
/// that files of /proc and growing files are copied completely.
///
/// Blocking calls, for functions on the blocking pool. The positions of the descriptors are neither
/// used nor preserved. The target must be empty, open for writing and not O_APPEND; after an error
/// the caller handles the partial target.
///
///     data_copy copy(from, to, status_of_from);
///     int r = copy.go_on(unlimited, token);   // 0, or -errno
class data_copy {
public:
    /// For go_on(): to the end of the file.
    static constexpr std::uint64_t unlimited = UINT64_MAX;

    data_copy() noexcept = default;
    data_copy(int from, int to, const struct ::stat& from_status) noexcept;

    /// Copies about `bytes` more. 1: there may be more; 0: complete; -errno. -ECANCELED once `stop`
    /// is requested, which is checked every few MiB.
    [[nodiscard]] int go_on(std::uint64_t bytes, inplace_stop_token stop = {}) noexcept;

    /// The current position in the file, holes included.
    [[nodiscard]] std::uint64_t done() const noexcept { return static_cast<std::uint64_t>(done_); }
    /// The size of the file; the current position if the file is longer than reported.
    [[nodiscard]] std::uint64_t total() const noexcept {
        return static_cast<std::uint64_t>(done_ > size_ ? done_ : size_);
    }

private:
    enum class method : unsigned char { clone, range, send, buffer };

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
    ::off_t data_end_ = 0; // for a file with holes: the start of the next hole
    ::off_t written_ = 0;  // the length of the target
    method method_ = method::clone;
    bool sparse_ = false;
    bool ended_ = false;
};

} // namespace coil::fs::detail
