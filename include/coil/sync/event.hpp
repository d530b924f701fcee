#pragma once

#include <coil/sync/detail/gate_awaiter.hpp>
#include <coil/sync/detail/permit_awaiter.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

/// Something that happens, and coroutines that wait for it: a manual-reset event. Once set, wait()
/// passes until reset() is called.
///
///     coil::event ready;
///     co_spawn(prepare(ready));           // ... ready.set();
///     co_await ready.wait();
///
/// set() resumes everybody who waits, in the order in which they came, also when reset() follows at
/// once.
///
/// Threading: any context and any thread. Who waits goes on on its own context; who has waited may
/// destroy the event, although set() has not returned yet on another thread. reset() waits a moment
/// where another thread is setting it.
///
/// Cancellation: wait() of a task that is asked to stop throws std::system_error with
/// std::errc::operation_canceled, unless the event came first.
class event {
public:
    constexpr explicit event(bool is_set = false) noexcept : gate_(is_set) {}
    event(const event&) = delete;
    event& operator=(const event&) = delete;
    ~event() = default;

    void set() noexcept { gate_.open(); }
    void reset() noexcept { gate_.close(); }
    [[nodiscard]] bool is_set() const noexcept { return gate_.is_open(); }

    auto wait() noexcept {
        return detail::sync_awaitable<detail::gate_awaiter<detail::event_kind>, detail::gate>(
            gate_);
    }

private:
    detail::gate gate_;
};

using manual_reset_event = event;

namespace detail {

struct auto_event_kind {
    static constexpr const char* name = "auto_reset_event";
    static void give_back(permits& p) noexcept { p.release_up_to(1); }
};

} // namespace detail

/// An event that each set() gives to one coroutine: to the one that has waited longest, or to the
/// next that waits. Mutex's exception for several contexts holds here, too. Setting it while it is
/// set does nothing.
///
/// Threading and cancellation as event's; an event that was given to a coroutine that is destroyed
/// before it goes on is set again.
class auto_reset_event {
public:
    constexpr explicit auto_reset_event(bool is_set = false) noexcept : permits_(is_set ? 1 : 0) {}
    auto_reset_event(const auto_reset_event&) = delete;
    auto_reset_event& operator=(const auto_reset_event&) = delete;
    ~auto_reset_event() = default;

    void set() noexcept { permits_.release_up_to(1); }
    void reset() noexcept { static_cast<void>(permits_.try_acquire()); }
    [[nodiscard]] bool is_set() const noexcept { return permits_.free() > 0; }
    /// Does not wait. True: it was set, and is not any more.
    [[nodiscard]] bool try_wait() noexcept { return permits_.try_acquire(); }

    auto wait() noexcept {
        return detail::sync_awaitable<detail::permit_awaiter<detail::auto_event_kind>,
                                      detail::permits>(permits_);
    }

private:
    detail::permits permits_;
};

/// An event with a value: set once, read by everybody who waits.
///
///     coil::event_value<config> loaded;
///     const config& c = co_await loaded.wait();
///
/// Threading and cancellation as event's. The value lives as long as the event_value; what several
/// contexts read at once must bear that.
template <class T>
class event_value {
    static_assert(!std::is_void_v<T>,
                  "an event_value has a value: without one it is a coil::event");
    static_assert(!std::is_reference_v<T>,
                  "an event_value keeps its value: set a pointer or a std::reference_wrapper");

public:
    constexpr event_value() noexcept : gate_(false) {}
    event_value(const event_value&) = delete;
    event_value& operator=(const event_value&) = delete;
    ~event_value() = default;

    /// Makes the value and resumes who waits. False, and nothing happens: it has been set before.
    /// When making the value throws, it has not been set.
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
        gate_.open();
        return true;
    }
    [[nodiscard]] bool is_set() const noexcept { return gate_.is_open(); }
    /// The value; it must be set.
    [[nodiscard]] T& get() noexcept { return *value_; }

    /// co_await gives a reference to the value.
    auto wait() noexcept { return detail::sync_awaitable<awaiter, event_value>(*this); }

private:
    class awaiter : public detail::gate_awaiter<detail::event_kind> {
    public:
        explicit awaiter(event_value& source) noexcept
            : gate_awaiter(source.gate_), source_(source) {}

        T& await_resume() {
            gate_awaiter::await_resume();
            return *source_.value_;
        }

    private:
        event_value& source_;
    };

    detail::gate gate_;
    std::atomic<bool> claimed_{false};
    std::optional<T> value_;
};

} // namespace coil
