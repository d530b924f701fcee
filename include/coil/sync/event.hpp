#pragma once

#include <coil/sync/detail/baton_awaiter.hpp>
#include <coil/sync/detail/permit_awaiter.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

/// A manual-reset event. Once set, wait() completes immediately until reset() is called.
///
///     coil::event ready;
///     co_spawn(prepare(ready));           // ... ready.set();
///     co_await ready.wait();
///
/// set() resumes all waiters in arrival order, even if reset() follows immediately.
///
/// Threading: all members may be called from any context and any thread. A waiter resumes on its
/// own context. A waiter that has resumed may destroy the event even if set() has not yet returned
/// on another thread. reset() spins briefly while another thread is in set().
///
/// Cancellation: if the waiting task is asked to stop, wait() throws std::system_error with
/// std::errc::operation_canceled, unless the event was set first. If the stop was requested before
/// the await, wait() throws in any case.
class event {
public:
    constexpr explicit event(bool is_set = false) noexcept : baton_(is_set) {}
    event(const event&) = delete;
    event& operator=(const event&) = delete;
    ~event() = default;
    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY("wait for it: co_await e.wait()");

    void set() noexcept { baton_.open(); }
    void reset() noexcept { baton_.close(); }
    [[nodiscard]] bool is_set() const noexcept { return baton_.is_open(); }

    auto wait() noexcept {
        return detail::sync_awaitable<detail::baton_awaiter<detail::event_kind>, detail::baton>(
            baton_);
    }

private:
    detail::baton baton_;
};

using manual_reset_event = event;

namespace detail {

struct auto_event_kind {
    static constexpr const char* name = "auto_reset_event";
    static constexpr waited_object waits_for = waited_object::event;
    static void give_back(permits& p) noexcept { p.release_up_to(1); }
};

} // namespace detail

/// An auto-reset event. Each set() releases one coroutine: the oldest waiter or, if none waits, the
/// next one to wait. Waiters of several contexts are released in the order that is documented for
/// mutex. Setting an event that is already set has no effect.
///
///     coil::auto_reset_event changed;
///     co_await changed.wait();                    // consumes one set()
///
/// Threading: as for event. Cancellation: if the waiting task is asked to stop before it resumes,
/// wait() throws std::system_error with std::errc::operation_canceled. If a coroutine that was
/// released is asked to stop, or is destroyed, before it resumes, the event is set again.
class auto_reset_event {
public:
    constexpr explicit auto_reset_event(bool is_set = false) noexcept : permits_(is_set ? 1 : 0) {}
    auto_reset_event(const auto_reset_event&) = delete;
    auto_reset_event& operator=(const auto_reset_event&) = delete;
    ~auto_reset_event() = default;
    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY("wait for it: co_await e.wait()");

    void set() noexcept { permits_.release_up_to(1); }
    void reset() noexcept { static_cast<void>(permits_.try_acquire()); }
    [[nodiscard]] bool is_set() const noexcept { return permits_.free() > 0; }
    /// Does not wait. Returns true if the event was set, and resets it.
    [[nodiscard]] bool try_wait() noexcept { return permits_.try_acquire(); }

    auto wait() noexcept {
        return detail::sync_awaitable<detail::permit_awaiter<detail::auto_event_kind>,
                                      detail::permits>(permits_);
    }

private:
    detail::permits permits_;
};

/// An event that carries a value: set once, read by all waiters.
///
///     coil::event_value<config> loaded;
///     const config& c = co_await loaded.wait();
///
/// Threading and cancellation: as for event. The value lives as long as the event_value. Waiters on
/// several contexts may read it concurrently; the caller must prevent data races on it.
template <class T>
class event_value {
    static_assert(!std::is_void_v<T>,
                  "an event_value has a value: for an event without one, use coil::event");
    static_assert(!std::is_reference_v<T>,
                  "an event_value keeps its value: set a pointer or a std::reference_wrapper");

public:
    constexpr event_value() noexcept : baton_(false) {}
    event_value(const event_value&) = delete;
    event_value& operator=(const event_value&) = delete;
    ~event_value() = default;

    /// Constructs the value and resumes all waiters. Returns false, without effect, if the value
    /// was already set. If the constructor throws, the value remains unset.
    template <class... Args>
    bool set(Args&&... args) {
        if (claimed_.exchange(true, std::memory_order_acquire)) {
            return false;
        }
        try {
            value_.emplace(std::forward<Args>(args)...);
        } catch (...) {
            claimed_.store(false, std::memory_order_release);
            throw;
        }
        baton_.open();
        return true;
    }
    [[nodiscard]] bool is_set() const noexcept { return baton_.is_open(); }
    /// The value. Precondition: it is set.
    [[nodiscard]] T& get() noexcept { return *value_; }

    /// co_await returns a reference to the value.
    auto wait() noexcept { return detail::sync_awaitable<awaiter, event_value>(*this); }

private:
    class awaiter : public detail::baton_awaiter<detail::event_kind> {
    public:
        explicit awaiter(event_value& source) noexcept
            : baton_awaiter(source.baton_), source_(source) {}

        T& await_resume() {
            baton_awaiter::await_resume();
            return *source_.value_;
        }

    private:
        event_value& source_;
    };

    detail::baton baton_;
    std::atomic<bool> claimed_{false};
    std::optional<T> value_;
};

} // namespace coil
