#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/io_result.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>

namespace coil::detail {

/// close, which takes the descriptor from its owner when it happens, and only then: a chain that
/// breaks before it leaves the owner's descriptor open. `Nothing` is what an owner holds that owns
/// nothing.
template <int Nothing>
class owned_close_element : public io_element {
public:
    /// Also in the middle of a chain somebody must learn whether it happened.
    static constexpr bool needs_result = true;

    explicit owned_close_element(int& fd) noexcept : io_element(uring::prep::close(-1)), fd_(&fd) {}

    ring_entry& arm() noexcept {
        entry_.request.fd = *fd_; // the owner may have been moved from meanwhile
        return io_element::arm();
    }

    [[nodiscard]] io_result result() noexcept {
        drop();
        return io_element::result();
    }
    void drop() noexcept {
        if (entry_.completed && was_called(entry_.result)) {
            *fd_ = Nothing;
        }
    }

private:
    /// close(2) closes even where it reports an error; these are not its own.
    static bool was_called(int result) noexcept {
        return result != -ECANCELED && result != -E2BIG && result != -EOPNOTSUPP;
    }

    int* fd_;
};

} // namespace coil::detail
