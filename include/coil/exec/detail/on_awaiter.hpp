#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/late.hpp>
#include <coil/context/detail/away_list.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/join_state.hpp>
#include <coil/context/detail/remote_child.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/frame_tree.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/transfer.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/remote_op.hpp>
#include <coil/exec/detail/resume_target.hpp>
#include <coil/exec/detail/work.hpp>

#include <atomic>
#include <coroutine>
#include <utility>

namespace coil::detail {

struct on_stop_source {
    inplace_stop_source stop_;
};

[[noreturn]] void throw_not_run();

/// The awaiter of on(). The task is the root of its own tree, and this awaiter is its owner. The
/// code that ends the task calls complete(). The destructor destroys the task's frame, unless the
/// context on which the task runs has already done so (abandoned()).
template <class T>
class [[nodiscard("did you forget to co_await?")]] on_awaiter final : on_stop_source,
                                                                      remote_child_owner,
                                                                      remote_op,
                                                                      away_node {
public:
    on_awaiter(executor_ref executor, task<T>&& work) noexcept
        : remote_child_owner(stop_.get_token()), away_node(&is_still_away), executor_(executor),
          child_(work.release()) {}
    ~on_awaiter() {
        come_back(); // a shutdown need not wait for this node: destroy_child() waits
        if (is_elsewhere()) [[unlikely]] {
            destroy_child();
        }
        outside_.reset();
        forget_start();
        if (ending_ != ending::destroyed) {
            destroy_tree(child_);
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) {
        return start(waiter, {stop_token_of(waiter), nearest_root(waiter)});
    }
    /// Called by an awaiter that contains this one; `above` replaces the token and the root of the
    /// coroutine's promise.
    bool start(std::coroutine_handle<> waiter, const stop_detour& above) {
        start_ = new start_work(*this);
        child_.promise().become_root(*this);
        begin_unowned(child_.promise());
        begin(waiter, above.root);
        start_work* const work = start_; // a stop request that withdraws it sets start_ to null
        outside_.emplace(above.token, *this);
        may_withdraw_.store(!executor_.is_context(), std::memory_order_release);
        try {
            executor_.submit(*work);
        } catch (...) {
            if (work->withdraw()) {
                end();
                throw;
            }
            delete work; // a stop request has withdrawn it
        }
        // Listed only after submit(), which may run any code while the coroutine is on the stack.
        if (event_loop* const loop = target().loop) {
            set_away_node(*this);
            go_away(loop->tasks().away(), nearest());
        }
        return suspend();
    }

    T await_resume() {
        come_back();
        end();
        if (lost_executor() && ending_ == ending::normal && child_.promise().outcome.has_error())
            [[unlikely]] {
            report_unhandled(child_.promise().outcome.error()); // the throw below hides it
        }
        throw_if_executor_lost("on()");
        if (ending_ != ending::normal) [[unlikely]] {
            throw_not_run();
        }
        return child_.promise().outcome.take();
    }

    /// Called when the wait is over. Returns whether await_resume() will throw.
    [[nodiscard]] bool has_failed() const noexcept {
        return lost_executor() || ending_ != ending::normal || child_.promise().outcome.has_error();
    }
    /// Called instead of await_resume() if the result is not needed.
    void discard() noexcept {
        come_back();
        end();
        if (ending_ == ending::normal && child_.promise().outcome.has_error()) {
            report_aside(child_.promise().outcome.error());
        }
    }

private:
    /// How the task ends.
    enum class ending : unsigned char {
        normal,    ///< with a value or an exception; also the value while it runs
        not_run,   ///< it was withdrawn, or dropped by the executor, before it began
        destroyed, ///< its frame was destroyed
    };

    /// Passes a stop of the awaiting task on to the child.
    class outside_stop final : stop_relay_then {
    public:
        outside_stop(inplace_stop_token outside, on_awaiter& self) noexcept : self_(self) {
            relay_stop(outside, self.stop_, [](stop_relay_then& relay) noexcept {
                static_cast<outside_stop&>(relay).self_.withdraw_stopped();
            });
        }
        outside_stop(const outside_stop&) = delete;
        outside_stop& operator=(const outside_stop&) = delete;
        ~outside_stop() { detach(); }

    private:
        on_awaiter& self_;
    };
    /// The work submitted to the executor.
    struct start_work final : work, remote_child_ticket {
        explicit start_work(on_awaiter& awaiter) noexcept
            : work(&arrive_there, kind::arrival), remote_child_ticket(awaiter) {}
        static void arrive_there(work& w, fate what) noexcept {
            auto& arrived = static_cast<start_work&>(w);
            if (remote_child_owner* const awaiter = arrived.take()) {
                static_cast<on_awaiter*>(awaiter)->begin_there(what);
            } else {
                delete &arrived;
            }
        }
    };

    static bool is_still_away(away_node& node, request what) noexcept {
        auto& self = static_cast<on_awaiter&>(node);
        if (self.is_elsewhere() && self.ask_to_end(what)) {
            self.end_without_result(ending::not_run); // makes the awaiting coroutine ready
        }
        return self.is_elsewhere();
    }

    /// Called on any thread when the awaiting task is asked to stop. Withdraws work that has not
    /// started, because an executor may keep it queued indefinitely. Work for a context is not
    /// withdrawn: it starts soon and sees the request. If the stop was requested before the await,
    /// the task is started in both cases.
    void withdraw_stopped() noexcept {
        if (may_withdraw_.load(std::memory_order_acquire) && start_->withdraw()) {
            start_ = nullptr; // now owned by the executor
            end_without_result(ending::not_run);
        }
    }

    /// Called by the destructor.
    void destroy_child() noexcept {
        late<destructor_waits::scope> cause;
        if (current_loop != nullptr) {
            cause.emplace(current_loop->waiting_destructors());
        }
        if (ask_to_end(request::destroy)) {
            end(); // it has not begun
        } else {
            wait_until_back(&child_.promise());
        }
    }
    /// Called on the awaiting thread. Returns true if the task has not started and will not.
    bool ask_to_end(request what) noexcept {
        outside_.reset(); // waits for withdraw_stopped()
        if (start_ == nullptr) {
            return false; // a stop request has withdrawn it
        }
        if (!is_kill_requested() && start_->withdraw()) {
            start_ = nullptr; // now owned by the executor
            return true;
        }
        stop_.request_stop();
        if (what == request::destroy) {
            request_kill(*start_);
        } else {
            set_unwanted();
        }
        return false;
    }
    void forget_start() noexcept {
        if (start_ != nullptr && !(is_kill_requested() && start_->withdraw())) {
            start_->wait_until_noted(); // the task may have ended by itself meanwhile
            delete start_;
        }
    }

    void begin_there(work::fate what) noexcept {
        if (what == work::fate::dropped) {
            end_without_result(ending::not_run);
            return;
        }
        promise_base& root = child_.promise();
        if (current_loop != nullptr) {
            current_loop->adopt_remote(&root, root, child_);
            return;
        }
        const running_at scope({executor_, nullptr});
        resume(child_); // may destroy this
    }

    void finished(promise_base& root) noexcept override {
        event_loop::task_ended(root);
        const resumptions::ending scope(&root);
        complete();
    }
    [[nodiscard]] promise_base* awaiting_root() const noexcept override { return nearest(); }
    [[nodiscard]] promise_base& child() noexcept override { return child_.promise(); }
    /// Called by the context to which the task has moved.
    void abandoned(promise_base& root) noexcept override {
        if (current_loop != nullptr) {
            current_loop->withdraw(root, child_); // if it has not started
        }
        moved_to(nullptr);
        {
            late<destructor_waits::destruction> here;
            if (current_loop != nullptr) {
                here.emplace(current_loop->waiting_destructors(), kill_request());
            }
            destroy_tree(child_);
        }
        end_without_result(ending::destroyed);
    }
    /// Called once, instead of finished(), by the code that has ended the task. May destroy this.
    void end_without_result(ending how) noexcept {
        COIL_ASSERT(ending_ == ending::normal && how != ending::normal);
        ending_ = how;
        complete();
    }

    const executor_ref executor_;
    start_work* start_ = nullptr;
    const std::coroutine_handle<task_promise<T>> child_;
    late<outside_stop> outside_;
    std::atomic<bool> may_withdraw_ = false; // set before submit(), unless it is to a context
    ending ending_ = ending::normal;         // changed at most once, before complete()
};

/// The awaitable returned by on(): plain data that may be moved until it is awaited.
template <class T>
class [[nodiscard("did you forget to co_await?")]] COIL_WARN_UNUSED on_awaitable
    : public not_its_result<on_awaitable<T>> {
public:
    on_awaitable(executor_ref target, task<T>&& work) noexcept
        : target_(target), work_(std::move(work)) {}

    on_awaiter<T> operator co_await() && noexcept { return {target_, std::move(work_)}; }
    template <class Self = T>
    on_awaiter<T> operator co_await() & noexcept {
        static_assert(always_false<Self>,
                      "on(...) is awaited once: write co_await std::move(x), or await it directly");
        return {target_, std::move(work_)};
    }

private:
    executor_ref target_;
    task<T> work_;
};

#if defined(COIL_CHECK_LIFETIMES)
template <class T>
inline constexpr bool checked_by_value<on_awaitable<T>> = true;
#endif

} // namespace coil::detail
