#pragma once

#include <coil/core/config.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/queue.hpp>
#include <coil/core/this_task.hpp>
#include <coil/core/transfer.hpp>

#include <cassert>
#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

template <class T>
class async_generator;

namespace detail {

// Of the rooms above, which know the loop and where its unhandled exceptions go.

/// The coroutine goes on in a later turn of the loop that runs here.
void resume_later(queue_node& node, std::coroutine_handle<> coroutine) noexcept;
/// It does not: it is being destroyed.
void take_back(queue_node& node, std::coroutine_handle<> coroutine) noexcept;
/// An exception that nobody waits for.
void report_aside(std::exception_ptr error) noexcept;             // NOLINT(*-redundant-*)
[[noreturn]] void end_with_misuse(const char* sentence) noexcept; // NOLINT(*-redundant-*)

template <class T>
class async_generator_promise final : public promise_base {
public:
    using element =
        std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<T>, std::optional<T>>;

    async_generator<T> get_return_object() noexcept;

    /// Gives control to whoever waits in next().
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
    /// What it is converted from, and to, lives until the body goes on.
    [[nodiscard]] hand_over yield_value(T value) noexcept
        requires std::is_reference_v<T>
    {
        yielded = std::addressof(value);
        return {};
    }
    void unhandled_exception() noexcept { error = std::current_exception(); }
    void return_void() const noexcept {}

    /// Runs until the next element for `waiter`, below `origin`.
    template <class Origin>
    void run_for(std::coroutine_handle<> waiter, Origin& origin) noexcept {
        running = true;
        if (stop_.stop_requested() && !stopping_) {
            stop_.state_.renew(); // that was for somebody who has given up
        }
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
        link_.emplace(outside, stopper{*this});
    }

    /// Before whoever waits goes on after all, by the queue, or is gone.
    void forget_queued() noexcept {
        if (std::exchange(queued, false)) {
            take_back(*this, coroutine);
        }
    }

    element take() {
        if constexpr (std::is_reference_v<T>) {
            return std::exchange(yielded, nullptr);
        } else {
            element taken(std::move(yielded));
            yielded.reset();
            return taken;
        }
    }

    element yielded{};        // and not taken yet
    std::exception_ptr error; // that has ended it, and has not come out yet
    void* asking = nullptr;   // the await of next() that waits, or has not taken what came
    bool running = false;     // for it: it has been started, and has not handed over
    bool queued = false;      // it has, and whoever waits goes on by the loop's queue

private:
    struct stopper {
        async_generator_promise& self;
        void operator()() const noexcept {
            async_generator_promise& promise = self; // this may be gone when the body hands over
            promise.stopping_ = true;
            promise.stop_.request_stop();
            promise.stopping_ = false;
        }
    };

    transfer stop_running(std::coroutine_handle<> self) noexcept {
        running = false;
        link_.reset(); // and no other thread is in it
        if (stopping_) [[unlikely]] {
            // Resumed by a callback of stop_, which must not go before that has returned.
            queued = true;
            resume_later(*this, coroutine);
            return transfer_to_nobody();
        }
        return transfer_to(self, coroutine);
    }

    // What the body is asked to stop by: by whoever waits for an element, but its token outlives
    // them.
    inplace_stop_source stop_;
    stop_detour detour_{};
    bool stopping_ = false;
    std::optional<inplace_stop_callback<stopper>> link_;
};

} // namespace detail

/// A coroutine that makes a sequence of elements, and may wait for each: the body uses co_await and
/// co_yield, whoever consumes it asks for one after the other.
///
///     async_generator<std::string> lines(net::socket& peer) {
///         ...
///         while (co_await peer.recv(buf) > 0)
///             co_yield next_line();
///     }
///     auto all = lines(peer);
///     while (auto line = co_await all.next()) use(*line);
///
/// next() gives a std::optional<T>, or a pointer where T is a reference: empty at the end, and ever
/// after. What the body throws comes out of next(), once; then it is at its end. Lazy: the body
/// runs while somebody waits in next(), and not before the first.
///
/// Threading: the body runs where next() is awaited, by one coroutine at a time. Cancellation: it
/// has a stop token of its own, which is the same from its beginning to its end: a stop of whoever
/// waits in next() reaches it, and is forgotten when the next one waits. A next() that has lost in
/// when_any loses no element: it is the result of a later next().
///
/// Destroying the generator destroys the body where it stands. So does destroying a coroutine that
/// waits in next(), because what the body waits for is cancelled with it; a later next() then gives
/// the end. Whoever waits in next() when the generator is destroyed gets the end, too; an exception
/// that nobody has taken by then goes to the context's on_unhandled_exception, unless it only says
/// that the body was cancelled. It must not be moved while somebody waits in next().
template <class T>
class [[nodiscard("did you forget to co_await next()?")]] async_generator {
public:
    using promise_type = detail::async_generator_promise<T>;
    /// What next() gives.
    using element = typename promise_type::element;

    async_generator(async_generator&& other) noexcept
        : coroutine_(std::exchange(other.coroutine_, nullptr)) {
        assert((!coroutine_ || coroutine_.promise().asking == nullptr) &&
               "coil: an async_generator was moved while somebody waits for it");
    }
    async_generator& operator=(async_generator&& other) noexcept {
        if (this != &other) {
            destroy();
            coroutine_ = std::exchange(other.coroutine_, nullptr);
        }
        return *this;
    }
    ~async_generator() { destroy(); }

    class next_awaiter;
    class [[nodiscard("did you forget to co_await?")]] next_awaitable {
    public:
        explicit next_awaitable(async_generator& of) noexcept : generator_(&of) {}
        [[nodiscard]] next_awaiter operator co_await() const noexcept {
            return next_awaiter(*generator_);
        }

    private:
        async_generator* generator_;
    };

    /// co_await gives the next element, or nothing at the end.
    [[nodiscard("did you forget to co_await?")]] next_awaitable next() noexcept COIL_LIFETIMEBOUND {
        return next_awaitable(*this);
    }

private:
    friend promise_type;
    explicit async_generator(std::coroutine_handle<promise_type> coroutine) noexcept
        : coroutine_(coroutine) {}

    void destroy() noexcept;

    std::coroutine_handle<promise_type> coroutine_;
};

template <class T>
class async_generator<T>::next_awaiter : detail::queue_node {
public:
    explicit next_awaiter(async_generator& of) noexcept : generator_(&of) {}
    next_awaiter(const next_awaiter&) = delete;
    next_awaiter& operator=(const next_awaiter&) = delete;
    ~next_awaiter() {
        if (left_alone_) [[unlikely]] {
            detail::take_back(*this, this->coroutine);
        } else if (is_asking()) [[unlikely]] {
            promise().asking = nullptr;
            promise().forget_queued();
            if (promise().running) {
                generator_->destroy(); // the body waits below a coroutine that is going away
            }
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

    /// Below `origin`: see task<T>::awaiter.
    template <class Origin>
    detail::transfer start(std::coroutine_handle<> waiter, Origin&& origin) noexcept {
        promise().run_for(waiter, origin);
        return detail::transfer_to(waiter, generator_->coroutine_);
    }

    element await_resume() {
        left_alone_ = false;
        if (!is_asking()) {
            return element();
        }
        promise().asking = nullptr;
        promise().queued = false;
        if (promise().error) [[unlikely]] {
            std::rethrow_exception(std::exchange(promise().error, nullptr));
        }
        return promise().take();
    }

    /// Whether await_resume() throws.
    [[nodiscard]] bool has_failed() const noexcept { return is_asking() && promise().error; }
    /// Instead of await_resume(): leaves the element to a later next().
    void discard() noexcept {
        left_alone_ = false;
        if (is_asking()) {
            promise().asking = nullptr;
            promise().queued = false;
        }
    }

private:
    friend async_generator;

    [[nodiscard]] promise_type& promise() const noexcept {
        return generator_->coroutine_.promise();
    }
    [[nodiscard]] bool is_asking() const noexcept {
        return generator_ != nullptr && generator_->coroutine_ && promise().asking == this;
    }

    async_generator* generator_; // null when it is gone
    bool left_alone_ = false;    // by a generator that went while this waited; in the ready queue
};

template <class T>
void async_generator<T>::destroy() noexcept {
    const auto coroutine = std::exchange(coroutine_, nullptr);
    if (!coroutine) {
        return;
    }
    promise_type& promise = coroutine.promise();
    auto* const asking = static_cast<next_awaiter*>(promise.asking);
    const bool waits = asking != nullptr && (promise.running || promise.queued);
    const std::coroutine_handle<> waiter = promise.coroutine;
    promise.forget_queued();
    const std::exception_ptr error = std::exchange(promise.error, nullptr);
    if (asking != nullptr) {
        asking->generator_ = nullptr;
    }
    detail::destroy_tree(coroutine);
    if (error) {
        detail::report_aside(error);
    }
    if (waits) {
        asking->left_alone_ = true;
        asking->coroutine = waiter;
        detail::resume_later(*asking, waiter);
    }
}

namespace detail {

template <class T>
async_generator<T> async_generator_promise<T>::get_return_object() noexcept {
    return async_generator<T>(std::coroutine_handle<async_generator_promise>::from_promise(*this));
}

} // namespace detail

} // namespace coil
