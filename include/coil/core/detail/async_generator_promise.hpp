#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/detail/exception_chain.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/core/detail/transfer.hpp>
#include <coil/core/inplace_stop_token.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

template <class T>
class async_generator;

} // namespace coil

namespace coil::detail {

// Implemented in context/ and compose/, which know the loop and its handler of unhandled
// exceptions.

/// Resumes the coroutine in a later iteration of the current thread's loop.
void resume_later(queue_node& node, std::coroutine_handle<> coroutine) noexcept;
/// Undoes resume_later(): the coroutine is being destroyed.
void take_back(queue_node& node, std::coroutine_handle<> coroutine) noexcept;
[[noreturn]] void end_with_misuse(const char* sentence) noexcept; // NOLINT(*-redundant-*)

template <class T>
class async_generator_promise final : public promise_base {
public:
    using element =
        std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<T>, std::optional<T>>;

    async_generator_promise() noexcept { parent = nullptr; }
    async_generator_promise(const async_generator_promise&) = delete;
    async_generator_promise& operator=(const async_generator_promise&) = delete;
    ~async_generator_promise();

    async_generator<T> get_return_object() noexcept;

    /// Transfers control to the coroutine that waits in next().
    class hand_over {
    public:
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        transfer await_suspend(std::coroutine_handle<async_generator_promise> self) const noexcept {
            return self.promise().stop_running(self);
        }
        void await_resume() const noexcept {}
    };
    [[nodiscard]] hand_over final_suspend() const noexcept { return {}; }

    template <class U = T>
        requires(!std::is_reference_v<T> && std::convertible_to<U &&, T>)
    [[nodiscard]] hand_over yield_value(U&& value) {
        yielded.emplace(std::forward<U>(value));
        return {};
    }
    /// `value`, and what it was converted from, live until the body resumes.
    [[nodiscard]] hand_over yield_value(T value) noexcept
        requires std::is_reference_v<T>
    {
        yielded = std::addressof(value);
        return {};
    }
    /// Produces a readable compiler error.
    hand_over yield_value(...)
        COIL_DELETE("the value cannot be converted to the element type of this async_generator");
    void unhandled_exception() noexcept {
        error = note_unhandled(
            *this, std::coroutine_handle<async_generator_promise>::from_promise(*this).address());
    }
    void return_void() const noexcept {}

    /// Prepares the body to run on behalf of `waiter` until it yields or ends. The caller then
    /// transfers control to the body. `origin` supplies the waiter's stop token and root. `owner`
    /// is the handle that owns the body's frame.
    template <class P, class Origin>
    void run_for(std::coroutine_handle<P> waiter, Origin& origin,
                 std::coroutine_handle<>& owner) noexcept {
        running = true;
        owning_handle = &owner;
        detour_.token = stop_.get_token();
        inplace_stop_token outside;
        if constexpr (std::derived_from<Origin, promise_base>) {
            detour_.root = origin.root();
            outside = origin.stop_token();
        } else if constexpr (std::same_as<Origin, const stop_detour>) {
            detour_.root = origin.root;
            outside = origin.token;
        } else {
            detour_.root = nullptr;
            outside = origin;
        }
        become_child(waiter, std::as_const(detour_));
        if constexpr (std::derived_from<P, promise_base> && has_frame_of) {
            begin_below(&waiter.promise());
        } else {
            begin_below(nullptr);
        }
        if (stop_.stop_requested() && !renew_stop()) [[unlikely]] {
            return;
        }
        outside_.link(outside);
    }
    /// The coroutine in next() no longer waits for the body.
    void leave_tree() noexcept {
        end_below();
        parent = nullptr;
        outside_.unlink(); // from here on, no other thread relays a request
    }

    /// Called before the queued waiter resumes, or when it is destroyed.
    void forget_queued() noexcept {
        if (coil::detail::exchange(queued, false)) {
            take_back(*this, coroutine);
        }
    }

    element take() {
        if constexpr (std::is_reference_v<T>) {
            return coil::detail::exchange(yielded, nullptr);
        } else {
            element taken(std::move(yielded));
            yielded.reset();
            return taken;
        }
    }

    element yielded{};        // yielded and not taken yet
    std::exception_ptr error; // ended the body and was not rethrown yet
    void* asking = nullptr;   // the awaiter of next() that waits or has not taken its result
    bool running = false;     // the body was resumed for `asking` and has not yielded
    bool queued = false; // the body has yielded, and the waiter resumes through the loop's queue

private:
    /// Relays a stop request of the coroutine in next() to the body.
    class outside_stop final : stop_relay_then {
    public:
        explicit outside_stop(inplace_stop_source& body) noexcept {
            set_target(body, [](stop_relay_then& self) noexcept {
                static_cast<outside_stop&>(self).passed_on_ = true;
            });
        }
        outside_stop(const outside_stop&) = delete;
        outside_stop& operator=(const outside_stop&) = delete;
        ~outside_stop() { detach(); }

        void link(inplace_stop_token outside) noexcept { relay_stop(outside); }
        /// Deregisters. Called from a callback of the request that is being relayed, it does not
        /// wait: the relay refers to this object until those callbacks have returned.
        void unlink() noexcept { detach(); }

        /// Whether the callbacks of the body's source have run.
        [[nodiscard]] bool is_passed_on() const noexcept { return passed_on_; }
        void renew() noexcept { passed_on_ = false; }

    private:
        bool passed_on_ = false;
    };

    /// Whether frame_of() finds the frame: an element with a greater alignment would move the
    /// promise.
    static constexpr bool has_frame_of = alignof(element) <= 2 * sizeof(void*);

    /// A stop was requested. Resets the token if the request came from an earlier next(). Returns
    /// false if a callback of that request called this; the body then remains stopped.
    [[gnu::cold]] bool renew_stop() noexcept {
        if (!outside_.is_passed_on()) {
            return false;
        }
        stop_.state_.renew();
        outside_.renew();
        return true;
    }

    transfer stop_running(std::coroutine_handle<> self) noexcept {
        running = false;
        leave_tree();
        if (stop_.stop_requested() && !outside_.is_passed_on()) [[unlikely]] {
            // Resumed by a callback of stop_, which must return before stop_ may be destroyed.
            queued = true;
            resume_later(*this, coroutine);
            return transfer_to_nobody();
        }
        return transfer_to(self, coroutine);
    }

    // Stops the body on behalf of the coroutine in next(). The token outlives each next().
    inplace_stop_source stop_;
    stop_detour detour_{};
    outside_stop outside_{stop_};
};

} // namespace coil::detail
