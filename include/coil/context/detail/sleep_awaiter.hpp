#pragma once

#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/timer_wheel.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/io_result.hpp>

#include <cerrno>
#include <coroutine>
#include <cstdint>

namespace coil::detail {

class sleep_awaiter : awaiter_base, sleep_timer {
public:
    explicit sleep_awaiter(std::int64_t deadline_ns) noexcept {
        word = deadline_ns; // the deadline until it is armed, then a tick, then the result
    }
    sleep_awaiter(const sleep_awaiter&) = delete;
    sleep_awaiter& operator=(const sleep_awaiter&) = delete;
    ~sleep_awaiter() {
        if (pending()) [[unlikely]] {
            stop_observing();
            if (pending()) {
                loop().disarm(*this);
            }
        }
        leave_if_under_way();
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        const inplace_stop_token token = stop_token_of(waiter);
        event_loop& loop = required_loop();
        begin(loop, waiter, wait_kind::sleep);
        if (token.stop_requested()) {
            end(-ECANCELED);
        } else if (!loop.arm(*this, word)) {
            end(-ENOMEM);
        } else {
            observe<sleep_awaiter>(token);
        }
    }

    io_result await_resume() noexcept {
        resumed();
        return io_result(static_cast<int>(word));
    }

    /// Called instead of await_resume(): the result is not wanted.
    void discard() noexcept { resumed(); }

private:
    friend class awaiter_base;
    friend class leaf_search;
    friend void end_sleep(sleep_timer& timer) noexcept;

    void cancel() noexcept {
        if (pending()) {
            loop().disarm(*this);
            end(-ECANCELED);
        }
    }

    void end(int result) noexcept {
        word = result;
        finish();
    }
};

} // namespace coil::detail
