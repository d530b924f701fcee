#pragma once

#include <coil/context/operation.hpp>
#include <coil/uring/prep.hpp>

namespace coil::detail {

/// The request is built when the await begins, because the target may have completed by then.
class cancel_element : public io_element {
public:
    explicit cancel_element(io_op& target) noexcept
        : io_element(uring::prep::nop()), target_(&target) {}

    sqe_slot& arm() noexcept {
        cancelled_ = target_->cancel_here();
        // With cancel_flag::all the request does not fail if no target is left, and so does not
        // break a chain.
        entry_.set_call(
            uring::prep::cancel(target_->first_key(), cancelled_ ? uring::cancel_flag::all : 0));
        return entry_;
    }
    [[nodiscard]] io_result result() const noexcept {
        // If the target waits for a futex or a child, the kernel returns a count. If the target was
        // already cancelled here, it does not matter whether the kernel found one.
        const bool ended = entry_.result > 0 || (cancelled_ && entry_.result != -ECANCELED);
        return io_result(ended ? 0 : entry_.result);
    }

private:
    io_op* target_;
    bool cancelled_ = false;
};

/// Cancels all operations; the result does not count the context's own requests.
class cancel_all_element : public io_element {
public:
    static constexpr bool needs_result = true;

    cancel_all_element() noexcept : io_element(uring::prep::cancel_any()) {}

    sqe_slot& arm() noexcept {
        own_ = required_loop().is_watching() ? 1 : 0;
        return entry_;
    }
    [[nodiscard]] io_result result() const noexcept {
        return io_result(entry_.result > 0 ? entry_.result - own_ : entry_.result);
    }

private:
    int own_ = 0;
};

} // namespace coil::detail
