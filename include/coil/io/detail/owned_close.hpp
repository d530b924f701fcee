#pragma once

#include <coil/context/detail/descriptor_owners.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/io_result.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>

namespace coil::detail {

/// close that takes the descriptor from its owner only when it executes: if a chain breaks before
/// that, the owner keeps the open descriptor. `Nothing` is the value of an owner without a
/// descriptor.
template <int Nothing>
class owned_close_element : public io_element {
public:
    /// The result is needed even in the middle of a chain: it decides whether the owner is
    /// released.
    static constexpr bool needs_result = true;

    explicit owned_close_element(int& fd) noexcept : io_element(uring::prep::close(-1)), fd_(&fd) {}

    sqe_slot& arm() noexcept {
        // Read only now, because the owner may have been moved from meanwhile. The table of owners
        // is updated before the close: afterwards the number may belong to another file.
        entry_.request.fd = given_up(*fd_);
        return io_element::arm();
    }

    [[nodiscard]] io_result result() noexcept {
        drop();
        return io_element::result();
    }
    void drop() noexcept {
        if (entry_.is_completed() && was_called(entry_.result)) {
            *fd_ = Nothing;
        }
    }

private:
    /// close(2) closes even if it reports an error; the errors below mean that it was not called.
    static bool was_called(int result) noexcept {
        return result != -ECANCELED && result != -E2BIG && result != -EOPNOTSUPP;
    }

    int* fd_;
};

} // namespace coil::detail
