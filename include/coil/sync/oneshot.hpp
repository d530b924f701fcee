#pragma once

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
/// Cancellation: recv() of a task that is asked to stop throws std::system_error with
/// std::errc::operation_canceled. The value, if there is one, is returned by the next recv().
template <class T>
class oneshot {
    static_assert(!std::is_void_v<T>, "a oneshot has a value: without one it is a coil::event");
    static_assert(!std::is_reference_v<T>,
                  "a oneshot keeps its value: send a pointer or a std::reference_wrapper");
    static_assert(std::is_nothrow_move_constructible_v<T>,
                  "a oneshot moves its value between threads: that must not throw");

public:
    constexpr oneshot() noexcept : baton_(false) {}
    oneshot(const oneshot&) = delete;
    oneshot& operator=(const oneshot&) = delete;
    ~oneshot() = default;

    /// Returns false, and destroys the value, if one was sent before or the oneshot is closed.
    bool send(T value) noexcept {
        if (claimed_.exchange(true, std::memory_order_acquire)) {
            return false;
        }
        value_.emplace(std::move(value));
        baton_.open();
        return true;
    }
    /// No value will be sent: recv() returns nullopt, unless a value was sent before.
    void close() noexcept {
        if (!claimed_.exchange(true, std::memory_order_acquire)) {
            baton_.open();
        }
    }

    /// co_await returns the value, once, or nullopt.
    auto recv() noexcept { return detail::sync_awaitable<awaiter, oneshot>(*this); }
    /// Does not wait. Returns nullopt also if no value was sent yet.
    [[nodiscard]] std::optional<T> try_recv() noexcept {
        return baton_.passes() ? std::exchange(value_, std::nullopt) : std::nullopt;
    }

private:
    struct kind {
        static constexpr const char* name = "oneshot";
        static constexpr bool gives_back = true; // the value is taken when the coroutine resumes
    };
    class awaiter : public detail::baton_awaiter<kind> {
    public:
        explicit awaiter(oneshot& source) noexcept
            : detail::baton_awaiter<kind>(source.baton_), source_(source) {}

        std::optional<T> await_resume() {
            detail::baton_awaiter<kind>::await_resume();
            return std::exchange(source_.value_, std::nullopt);
        }

    private:
        oneshot& source_;
    };

    detail::baton baton_;
    std::atomic<bool> claimed_{false};
    std::optional<T> value_;
};

} // namespace coil
