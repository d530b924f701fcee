#pragma once

#include <coil/core/task.hpp>
#include <coil/exec/blocking_pool.hpp>
#include <coil/exec/detail/away.hpp>

#include <coroutine>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

template <class F>
class blocking_awaiter final : public away_call<F>, pool_job {
public:
    blocking_awaiter(blocking_pool& pool, F&& f)
        : away_call<F>(std::move(f), &away_wait::is_still_away<blocking_awaiter>),
          pool_job(&finish), pool_(pool) {}
    blocking_awaiter(const blocking_awaiter&) = delete;
    blocking_awaiter& operator=(const blocking_awaiter&) = delete;
    ~blocking_awaiter() { this->template end_away<blocking_awaiter>(); }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        const inplace_stop_token token = stop_token_of(waiter);
        if (!this->begin_call(waiter, token)) {
            return false;
        }
        pool_.submit(*this);
        return this->template stays_away<blocking_awaiter>(token);
    }

    typename away_call<F>::value_type await_resume() { return this->take_outcome("blocking"); }

private:
    friend class wait_base;
    friend class away_wait;

    static void finish(work& w, fate what) noexcept {
        auto& self = static_cast<blocking_awaiter&>(static_cast<pool_job&>(w));
        if (what == fate::run) {
            self.call_and_come_back();
        } else if (const int error = self.error(); error != 0) {
            self.come_back_uncalled(not_called::no_thread, error);
        } else {
            self.come_back_uncalled(not_called::dropped);
        }
    }

    [[nodiscard]] bool take_back() noexcept { return pool_.take_back(*this); }
    void cancel() noexcept { this->stop_call(this->pending() && take_back()); }

    blocking_pool& pool_;
};

/// What blocking() gives: nothing happens before it is awaited.
template <class F>
class [[nodiscard("did you forget to co_await? Only that calls the function")]] blocking_call {
public:
    blocking_call(blocking_pool& pool, F&& f) : pool_(&pool), function_(std::move(f)) {}

    [[nodiscard]] blocking_awaiter<F> operator co_await() && {
        return blocking_awaiter<F>(*pool_, std::move(function_));
    }
    template <class Self = F>
    blocking_awaiter<F> operator co_await() & {
        static_assert(always_false<Self>, "blocking(...) is awaited once: write co_await "
                                          "std::move(x), or await it directly");
        return blocking_awaiter<F>(*pool_, std::move(function_));
    }

private:
    blocking_pool* pool_;
    F function_;
};

} // namespace detail

/// Calls `f` on a thread of default_blocking_pool(), and goes on here with what it gave:
///
///     auto text = co_await blocking([&] { return read_config(path); });
///
/// For what blocks, or computes for longer than the others here should wait. `f` is anything that
/// can be called with nothing, or with an inplace_stop_token, the awaiting task's, by which it may
/// see that nobody wants its result any more. It is moved into the await, called once, as an
/// rvalue, and destroyed here; nothing is allocated. What it returns comes out of the await: a
/// value that can be moved, a reference to what lives on, or nothing; and so does any exception.
///
/// Threading: `f` runs on another thread while this coroutine is suspended. Everything before the
/// await happens before it, and everything after it afterwards. The coroutine goes on on its
/// context, or on the executor that runs it (a run_loop); where there is neither, on the pool's
/// thread. Calls begin in their order; when all threads are busy, or the queue is full, they wait
/// suspended and do not fail. Only when there is no thread at all and the system refuses one, the
/// await throws std::system_error with what pthread_create(3) said.
///
/// Cancellation: when a stop is requested before `f` has begun, it is not called and the await
/// throws std::system_error with std::errc::operation_canceled, on a context at once. Once it has
/// begun it is waited for, and its real result comes back. A context that shuts down takes back
/// what has not begun, and waits for the rest where it destroys the awaiting task, blocking its
/// thread; so a function that may wait for ever should take a token. (A shutdown is no stop
/// request: end such tasks before by their own.)
template <class F>
    requires detail::once_callable<std::decay_t<F>>
detail::blocking_call<std::decay_t<F>> blocking(F&& f) {
    return {default_blocking_pool(), std::decay_t<F>(std::forward<F>(f))};
}

/// The same on a pool of one's own, which must outlive the call.
template <class F>
    requires detail::once_callable<std::decay_t<F>>
detail::blocking_call<std::decay_t<F>> blocking(blocking_pool& pool, F&& f) {
    return {pool, std::decay_t<F>(std::forward<F>(f))};
}

/// Only for the sentence that the compiler says.
template <class F>
    requires(!detail::once_callable<std::decay_t<F>>)
void blocking(F&&) {
    static_assert(detail::always_false<F>,
                  "blocking(f) calls f with nothing, or with an inplace_stop_token; bind arguments "
                  "in a lambda");
}

} // namespace coil
