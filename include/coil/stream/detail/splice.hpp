#pragma once

#include <coil/core/task.hpp>

#include <cstdint>

namespace coil::detail {

class progress;

/// Two stream sockets between which duplex() moves data with splice(2), which avoids copying it.
/// splice(2) waits on a blocking socket, so both are made non-blocking before its first use; the
/// destructor makes them blocking again.
class spliced_pair {
public:
    /// Calls moved->moved() for each transfer, unless `moved` is null.
    spliced_pair(int a, int b, progress* moved = nullptr) noexcept : fds_{a, b}, moved_(moved) {}
    spliced_pair(const spliced_pair&) = delete;
    spliced_pair& operator=(const spliced_pair&) = delete;
    ~spliced_pair();

    /// Whether splice(2) works on both sockets: they are stream sockets and not simulated ones.
    [[nodiscard]] bool possible() const noexcept;
    /// Returns false if fcntl(2) fails.
    [[nodiscard]] bool make_nonblocking() noexcept;

    void on_moved() noexcept;

private:
    int fds_[2];
    progress* moved_;
    bool changed_[2] = {false, false}; // the socket was blocking before
};

/// Like copy(), for a pair for which possible() is true. Small amounts of data are received and
/// sent; large amounts are spliced.
task<std::uint64_t> splice_copy(int from, int to, spliced_pair& pair);

} // namespace coil::detail
