#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>
#include <coil/sync/detail/baton_awaiter.hpp>

#include <atomic>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

/// Transfers one value from one coroutine or thread to another.
///
///     coil::oneshot<int> answer;
///     co_spawn(ask(answer));                  // ... answer.send(42);
///     std::optional<int> n = co_await answer.recv();
///
/// Threading: all members may be called from any context and any thread; one receiver at a time. A
/// waiter resumes on its own context. A receiver that has resumed may destroy the oneshot even if
/// send() has not yet returned on another thread.
///
/// Cancellation: if the waiting task is asked to stop, recv() throws std::system_error with
/// std::errc::operation_canceled. A value that has been sent stays for the next recv().
template <class T>
class oneshot {
    static_assert(!std::is_void_v<T>,
                  "a oneshot sends a value: for a signal without a value, use coil::event");
    static_assert(!std::is_reference_v<T>,
                  "a oneshot stores its value: send a pointer or a std::reference_wrapper");
    static_assert(std::is_nothrow_move_constructible_v<T>,
                  "a oneshot moves its value between threads: the move must not throw");

public:
    constexpr oneshot() noexcept : baton_(false) {}
    oneshot(const oneshot&) = delete;
    oneshot& operator=(const oneshot&) = delete;
    ~oneshot() = default;
    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY("receive from it: co_await o.recv()");

    /// Returns false and destroys `value` if a value was sent before or the oneshot is closed.
    bool send(T value) noexcept {
        if (claimed_.exchange(true, std::memory_order_acquire)) {
            return false;
        }
        value_.emplace(std::move(value));
        baton_.open();
        return true;
    }
    /// Ends the oneshot without a value: recv() returns nullopt. No effect after send().
    void close() noexcept {
        if (!claimed_.exchange(true, std::memory_order_acquire)) {
            baton_.open();
        }
    }

    /// Waits for the value. co_await returns the value, or nullopt if the oneshot was closed or the
    /// value was already received.
    auto recv() noexcept { return detail::sync_awaitable<awaiter, oneshot>(*this); }
    /// Does not wait. Also returns nullopt if no value has been sent yet.
    [[nodiscard]] std::optional<T> try_recv() noexcept {
        return baton_.passes() ? coil::detail::exchange(value_, std::nullopt) : std::nullopt;
    }

private:
    struct kind {
        static constexpr const char* name = "oneshot";
        static constexpr detail::waited_object waits_for = detail::waited_object::oneshot;
        static constexpr bool gives_back = true; // the value is taken when the coroutine resumes
    };
    class awaiter : public detail::baton_awaiter<kind> {
    public:
        explicit awaiter(oneshot& source) noexcept
            : detail::baton_awaiter<kind>(source.baton_), source_(source) {}

        std::optional<T> await_resume() {
            detail::baton_awaiter<kind>::await_resume();
            return coil::detail::exchange(source_.value_, std::nullopt);
        }

    private:
        oneshot& source_;
    };

    detail::baton baton_;
    std::atomic<bool> claimed_{false};
    std::optional<T> value_;
};

} // namespace coil
