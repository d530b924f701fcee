#pragma once

#include <coil/core/detail/result.hpp>
#include <coil/core/detail/task_promise.hpp>
#include <coil/interleave/detail/lookup_arena.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

namespace coil {

template <class R>
class lookup;

} // namespace coil

namespace coil::detail {

class lookup_promise_base;

/// Where a coroutine tells the loop that resumed it what to do next in its slot. A coroutine that
/// waits for memory requests nothing.
struct lookup_handover {
    bool requested = false;
    lookup_promise_base* next = nullptr; // to be resumed next; null: the slot's lookup has ended
};

template <class R>
inline constexpr bool is_lookup = false;
template <class R>
inline constexpr bool is_lookup<lookup<R>> = true;

class prefetch_awaiter;
template <class R>
class lookup_awaiter;

/// The part of a lookup's promise that does not depend on the result.
///
/// A lookup suspends at its start and to wait for memory; at its end its frame destroys itself. It
/// never transfers to another coroutine: the loop resumes each by a plain resume(), which keeps the
/// stack constant for every compiler and optimisation level (guarantee G10) and measures faster
/// than symmetric transfer.
class lookup_promise_base {
public:
    static void* operator new(std::size_t bytes) { return allocate_lookup(bytes); }
    static void operator delete(void* frame, std::size_t bytes) noexcept {
        free_lookup(frame, bytes);
    }

    lookup_promise_base() noexcept {} // NOLINT(*-member-init): set by begin()
    lookup_promise_base(const lookup_promise_base&) = delete;
    lookup_promise_base& operator=(const lookup_promise_base&) = delete;

    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never final_suspend() const noexcept {
        if (parent_ != nullptr) {
            *owner_ = nullptr;
        }
        handover_->next = parent_;
        handover_->requested = true;
        return {};
    }

    /// Returned after a compile-time error: its result converts to any type, so that no other error
    /// follows.
    struct not_awaited : std::suspend_never {
        struct anything {
            template <class T>
            operator T() const noexcept; // NOLINT(google-explicit-constructor)
        };
        anything await_resume() const noexcept;
    };

    template <class A>
    auto await_transform(A&& awaited) const noexcept {
        using awaited_t = std::remove_cvref_t<A>;
        if constexpr (std::is_same_v<awaited_t, prefetch_awaiter>) {
            return awaited;
        } else if constexpr (is_lookup<awaited_t>) {
            static_assert(!std::is_lvalue_reference_v<A>,
                          "a lookup is awaited once: write co_await std::move(l), or co_await f(k) "
                          "directly");
            return lookup_awaiter<typename awaited_t::value_type>(awaited.release());
        } else {
            static_assert(always_false<A>,
                          "a lookup waits only for memory: co_await prefetch(p) or another lookup; "
                          "await everything else in the task that calls async_interleave");
            return not_awaited();
        }
    }

    /// Called before the first resumption of a lookup in a slot.
    void begin(std::coroutine_handle<> self, lookup_handover& handover) noexcept {
        self_ = self;
        handover_ = &handover;
        parent_ = nullptr;
    }
    /// Called instead when `parent` awaits it. `*owner` is the handle that destroys the frame.
    void begin_below(std::coroutine_handle<> self, lookup_promise_base& parent,
                     std::coroutine_handle<>& owner) noexcept {
        self_ = self;
        handover_ = parent.handover_;
        parent_ = &parent;
        owner_ = &owner;
        handover_->next = this;
        handover_->requested = true;
    }

    [[nodiscard]] std::coroutine_handle<> self() const noexcept { return self_; }

    /// Destroys `innermost` and then the lookups that await it, without recursion.
    static void destroy_chain(lookup_promise_base* innermost) noexcept {
        while (innermost != nullptr) {
            lookup_promise_base* const parent = innermost->parent_;
            if (parent != nullptr) {
                *innermost->owner_ = nullptr;
            }
            innermost->self_.destroy();
            innermost = parent;
        }
    }

private:
    std::coroutine_handle<> self_;
    lookup_handover* handover_;
    lookup_promise_base* parent_;
    std::coroutine_handle<>* owner_; // of an awaited lookup
};

template <class R>
class lookup_promise final : public lookup_promise_base {
public:
    lookup<R> get_return_object() noexcept;
    void unhandled_exception() noexcept { outcome->set_error(std::current_exception()); }

    template <class U = R>
        requires(!dangles<R, U> && std::is_convertible_v<U &&, R>)
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<R, U&&>) {
        outcome->set_value(std::forward<U>(value));
    }
    /// Produces a readable compiler error.
    template <class U>
        requires dangles<R, U>
    void return_value(U&&)
        COIL_DELETE("the result would refer to a local variable or a temporary, which ends with "
                    "the lookup: return a value, for example lookup<std::string>");

    result<R>* outcome; // in the slot, or in the awaiter; set before the first resumption
};

template <>
class lookup_promise<void> final : public lookup_promise_base {
public:
    inline lookup<void> get_return_object() noexcept;
    void unhandled_exception() noexcept { outcome->set_error(std::current_exception()); }
    void return_void() const noexcept {}

    result<void>* outcome;
};

/// Awaits a lookup in a lookup.
template <class R>
class [[nodiscard]] lookup_awaiter {
public:
    explicit lookup_awaiter(std::coroutine_handle<lookup_promise<R>> child) noexcept
        : child_(child) {}
    lookup_awaiter(const lookup_awaiter&) = delete;
    lookup_awaiter& operator=(const lookup_awaiter&) = delete;
    ~lookup_awaiter() {
        if (child_) {
            child_.destroy();
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> parent) noexcept {
        auto& promise =
            std::coroutine_handle<lookup_promise<R>>::from_address(child_.address()).promise();
        promise.outcome = &outcome_;
        promise.begin_below(child_, parent.promise(), child_);
    }
    R await_resume() { return outcome_.take(); }

private:
    std::coroutine_handle<> child_; // null: it has ended
    result<R> outcome_;
};

} // namespace coil::detail
