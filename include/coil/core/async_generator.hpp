#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/async_generator_promise.hpp>
#include <coil/core/detail/frame_tree.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/core/detail/transfer.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/this_task.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>

namespace coil {

/// A coroutine that produces a sequence asynchronously: the body uses co_await and co_yield, the
/// consumer awaits one element after the other.
///
///     async_generator<std::string> lines(net::socket& peer) {
///         ...
///         while (co_await peer.recv(buf) > 0)
///             co_yield next_line();
///     }
///     auto all = lines(peer);
///     while (auto line = co_await all.next()) use(*line);
///
/// next() returns a std::optional<T>, or a pointer if T is a reference. At the end of the sequence,
/// and on each later call, the result is empty. An exception thrown by the body is rethrown by
/// next() once; then the sequence has ended. Lazy: the body runs only while a coroutine waits in
/// next().
///
/// Threading: the body runs on the context that awaits next(); one coroutine at a time.
///
/// Cancellation: the body has a stop token of its own, the same one throughout. A stop of the
/// coroutine that waits in next() is forwarded to this token. Awaiting next() again resets the
/// token. A next() that loses in when_any loses no element; a later next() returns it.
///
/// Lifetime: destroying the generator destroys the body. Destroying a coroutine that waits in
/// next() also destroys the body, because the body's current await is cancelled with it; a later
/// next() then returns the end. A coroutine that waits in next() when the generator is destroyed
/// gets the end as well. An exception that next() has not rethrown by then is passed to the
/// context's on_unhandled_exception, unless it only reports that the body was cancelled. The
/// generator must not be moved while a coroutine waits in next().
template <class T>
class [[nodiscard("did you forget to co_await next()?")]] COIL_CORO_TYPE async_generator {
public:
    using promise_type = detail::async_generator_promise<T>;
    /// The result of next().
    using element = typename promise_type::element;

    async_generator(async_generator&& other) noexcept : coroutine_(other.release()) {}
    async_generator& operator=(async_generator&& other) noexcept {
        if (this != &other) {
            destroy();
            coroutine_ = other.release();
        }
        return *this;
    }
    ~async_generator() { destroy(); }
    /// Move-only: copying produces a readable compiler error.
    async_generator(const async_generator&)
        COIL_DELETE_COPY("a generator is read once: write std::move(g)");
    async_generator& operator=(const async_generator&) = delete;
    /// Produce readable compiler errors.
    void operator co_await() const COIL_DELETE_COPY("await its elements: co_await g.next()");
    void begin() const COIL_DELETE_COPY("write while (auto x = co_await g.next()) instead of for");
    void end() const COIL_DELETE_COPY("write while (auto x = co_await g.next()) instead of for");

    class next_awaiter;
    class [[nodiscard("did you forget to co_await?")]] next_awaitable
        : public detail::not_its_result<next_awaitable> {
    public:
        explicit next_awaitable(async_generator& of) noexcept : generator_(&of) {}
        [[nodiscard]] next_awaiter operator co_await() const noexcept {
            return next_awaiter(*generator_);
        }

    private:
        async_generator* generator_;
    };

    /// co_await returns the next element, or an empty result at the end.
    [[nodiscard("did you forget to co_await?")]] next_awaitable next() noexcept COIL_LIFETIMEBOUND {
        return next_awaitable(*this);
    }

private:
    friend promise_type;
    explicit async_generator(std::coroutine_handle<promise_type> coroutine) noexcept
        : coroutine_(coroutine) {}

    void destroy() noexcept;
    [[nodiscard]] promise_type& promise() const noexcept {
        return std::coroutine_handle<promise_type>::from_address(coroutine_.address()).promise();
    }
    [[nodiscard]] std::coroutine_handle<> release() noexcept {
        if (coroutine_ && promise().asking != nullptr) [[unlikely]] {
            detail::end_with_misuse(
                "an async_generator is moved while a coroutine waits in next().");
        }
        return coil::detail::exchange(coroutine_, nullptr);
    }

    std::coroutine_handle<> coroutine_;
};

template <class T>
class async_generator<T>::next_awaiter : detail::queue_node {
public:
    explicit next_awaiter(async_generator& of) noexcept // NOLINT(*-member-init): see is_gone_
        : generator_(&of) {}
    next_awaiter(const next_awaiter&) = delete;
    next_awaiter& operator=(const next_awaiter&) = delete;
    ~next_awaiter() {
        if (state_ != state::idle) [[unlikely]] {
            abandon();
        }
    }

    [[nodiscard]] bool await_ready() noexcept {
        if (!generator_->coroutine_) {
            return true;
        }
        if (promise().asking != nullptr) [[unlikely]] {
            detail::end_with_misuse("two coroutines await next() of one async_generator");
        }
        promise().asking = this;
        state_ = state::asking;
        return generator_->coroutine_.done() || promise().yielded;
    }

    template <class P>
    detail::transfer await_suspend(std::coroutine_handle<P> waiter) noexcept {
        if constexpr (std::derived_from<P, detail::promise_base>) {
            return start(waiter, static_cast<detail::promise_base&>(waiter.promise()));
        } else {
            return start(waiter, detail::stop_token_of(waiter));
        }
    }

    /// `origin` supplies the stop token, as in task<T>::awaiter.
    template <class P, class Origin>
    detail::transfer start(std::coroutine_handle<P> waiter, Origin&& origin) noexcept {
        promise().run_for(waiter, origin, generator_->coroutine_);
        return detail::transfer_to(waiter, generator_->coroutine_);
    }

    element await_resume() {
        if (!is_asking()) {
            end_without_generator();
            return element();
        }
        end();
        if (promise().error) [[unlikely]] {
            std::rethrow_exception(coil::detail::exchange(promise().error, nullptr));
        }
        return promise().take();
    }

    /// Returns whether await_resume() will throw.
    [[nodiscard]] bool has_failed() const noexcept { return is_asking() && promise().error; }
    /// Called instead of await_resume(): leaves the element to a later next().
    void discard() noexcept {
        if (is_asking()) {
            end();
        } else {
            end_without_generator();
        }
    }

private:
    friend async_generator;
    friend promise_type;

    [[nodiscard]] promise_type& promise() const noexcept { return generator_->promise(); }
    [[nodiscard]] bool is_asking() const noexcept {
        return generator_ != nullptr && generator_->coroutine_ && promise().asking == this;
    }

    void end() noexcept {
        state_ = state::idle;
        promise().asking = nullptr;
        promise().queued = false;
    }
    void end_without_generator() noexcept {
        if (state_ == state::losing) {
            *is_gone_ = true;
        }
        state_ = state::idle;
    }
    /// Called by the destructor if the await is not over.
    [[gnu::noinline, gnu::cold]] void abandon() noexcept {
        if (state_ == state::losing) {
            *is_gone_ = true;
        } else if (state_ == state::left_alone) {
            detail::take_back(*this, this->coroutine);
        } else if (is_asking()) {
            promise().asking = nullptr;
            promise().forget_queued();
            if (promise().running) {
                // The body waits on behalf of the coroutine that is being destroyed. The
                // destruction of a task destroys the body first, so this point is reached only for
                // other coroutines, or if frame_of() cannot find the body's frame.
                generator_->destroy();
            }
        }
    }

    /// One enumeration instead of several flags, so that the destructor needs a single test.
    enum class state : unsigned char {
        idle,       ///< the await has not begun, or is over
        asking,     ///< it has begun
        losing,     ///< the generator is being destroyed during the await
        left_alone, ///< the generator was destroyed during the wait; this is in the ready queue
    };

    async_generator* generator_; // null once the generator was destroyed
    bool* is_gone_;              // while `losing`: to be set when the await ends
    state state_ = state::idle;
};

template <class T>
void async_generator<T>::destroy() noexcept {
    if (!coroutine_) {
        return;
    }
    promise_type& promise = this->promise();
    coroutine_ = nullptr;
    auto* const asking =
        static_cast<next_awaiter*>(coil::detail::exchange(promise.asking, nullptr));
    const bool waits = asking != nullptr && (promise.running || promise.queued);
    const std::coroutine_handle<> waiter = promise.coroutine;
    promise.forget_queued();
    const std::exception_ptr error = coil::detail::exchange(promise.error, nullptr);
    bool is_gone = false; // a destructor in the body may destroy the coroutine that waits
    if (asking != nullptr) {
        asking->generator_ = nullptr;
        asking->is_gone_ = &is_gone;
        asking->state_ = next_awaiter::state::losing;
    }
    promise.leave_tree();
    detail::destroy_tree(std::coroutine_handle<promise_type>::from_promise(promise));
    if (error) {
        detail::report_aside(error);
    }
    if (asking == nullptr || is_gone) {
        return;
    }
    asking->state_ = waits ? next_awaiter::state::left_alone : next_awaiter::state::idle;
    if (waits) {
        asking->coroutine = waiter;
        detail::resume_later(*asking, waiter);
    }
}

namespace detail {

template <class T>
async_generator<T> async_generator_promise<T>::get_return_object() noexcept {
    return async_generator<T>(std::coroutine_handle<async_generator_promise>::from_promise(*this));
}

/// Destroying the task that waits in next() destroys the body as a part of its tree. If the body's
/// locals owned the generator, it no longer exists: the awaiter must not refer to it.
template <class T>
async_generator_promise<T>::~async_generator_promise() {
    if (asking != nullptr) [[unlikely]] {
        static_cast<async_generator<T>::next_awaiter*>(asking)->generator_ = nullptr;
    }
}

} // namespace detail

} // namespace coil
