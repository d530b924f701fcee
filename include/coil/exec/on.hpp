#pragma once

#include <coil/context/away_list.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/core/frame_allocator.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>
#include <coil/core/transfer.hpp>
#include <coil/exec/any_executor.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/home.hpp>
#include <coil/exec/executor.hpp>

#include <atomic>
#include <coroutine>
#include <optional>
#include <utility>

namespace coil {

namespace detail {

struct on_stop_source {
    inplace_stop_source stop_;
};

[[noreturn]] void throw_not_run();

/// The task is the root of its own tree, which this observes. Whatever ends the task calls over().
/// The task's frame lives as long as this awaiter, whose own thread destroys it.
template <class T>
class [[nodiscard("did you forget to co_await?")]] on_awaiter final : on_stop_source,
                                                                      root_observer,
                                                                      remote_wait,
                                                                      away_node {
public:
    on_awaiter(executor_ref target, task<T>&& work) noexcept
        : root_observer(stop_.get_token(), false), away_node(&is_still_away), target_(target),
          child_(work.release()) {}
    ~on_awaiter() {
        come_back(); // for a shutdown it counts as complete: this waits here
        if (is_away()) [[unlikely]] {
            if (start_->withdraw()) {
                start_ = nullptr;
                end();
            } else {
                stop_.request_stop();
                come_home(&child_.promise());
            }
        }
        outside_.reset();
        delete start_;
        if (!abandoned_) {
            child_.destroy();
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) {
        start_ = new start(*this);
        outside_.emplace(stop_token_of(waiter), request{stop_});
        child_.promise().become_root(*this);
        begin_adrift(child_.promise());
        begin(waiter);
        awaiting_root_ = nearest_root(waiter);
        if (current_loop != nullptr) {
            go_away(current_loop->away(), awaiting_root_);
        }
        beginning now(*this);
        try {
            target_.submit(*start_);
        } catch (...) {
            come_back();
            end();
            throw;
        }
        return !now.is_over();
    }

    T await_resume() {
        come_back();
        end();
        if (is_homeless() && !dropped_ && child_.promise().outcome.has_error()) [[unlikely]] {
            report_unhandled(child_.promise().outcome.error()); // replaced by this exception
        }
        throw_if_homeless("on()");
        if (dropped_) [[unlikely]] {
            throw_not_run();
        }
        return child_.promise().outcome.take();
    }

    /// Called when the wait is over. Returns whether await_resume() will throw.
    [[nodiscard]] bool has_failed() const noexcept {
        return is_homeless() || dropped_ || child_.promise().outcome.has_error();
    }
    /// Called instead of await_resume(): the result is not wanted.
    void discard() noexcept {
        come_back();
        end();
    }

private:
    struct request {
        inplace_stop_source& stop;
        void operator()() const noexcept { stop.request_stop(); }
    };
    /// The work submitted to the executor. It is not part of the awaiter, because it cannot be
    /// removed from the executor's queue, which may stall for any time. It is shared until it has
    /// started or was withdrawn; then the awaiter owns it in the first case, the executor in the
    /// second.
    struct start final : work, frame_allocated {
        explicit start(on_awaiter& awaiter) noexcept : work(&come, kind::arrival), self(&awaiter) {}
        static void come(work& w, fate what) noexcept {
            auto& arrived = static_cast<start&>(w);
            on_awaiter* const awaiter = arrived.self.exchange(nullptr, std::memory_order_acq_rel);
            if (awaiter != nullptr) {
                awaiter->begin_there(what);
            } else {
                delete &arrived;
            }
        }
        /// Returns true if it has not started. The executor then owns it.
        [[nodiscard]] bool withdraw() noexcept {
            return self.exchange(nullptr, std::memory_order_acq_rel) != nullptr;
        }
        std::atomic<on_awaiter*> self;
    };

    static bool is_still_away(away_node& node, bool ask) noexcept {
        auto& self = static_cast<on_awaiter&>(node);
        if (self.is_away() && ask) {
            if (self.start_->withdraw()) {
                self.start_ = nullptr; // now owned by the executor
                self.dropped_ = true;
                self.over(); // on this thread: it waits in the ready queue
            } else {
                self.stop_.request_stop();
            }
        }
        return self.is_away();
    }

    void begin_there(work::fate what) noexcept {
        if (what == work::fate::dropped) {
            dropped_ = true;
            over();
            return;
        }
        promise_base& root = child_.promise();
        if (current_loop != nullptr) {
            current_loop->settle(&root, root, child_);
            return;
        }
        const running_at scope({target_, nullptr});
        resume(child_); // may destroy this
    }

    void finished(promise_base& root) noexcept override {
        if (!is_adrift(root)) {
            root_list::remove(root);
        }
        over();
    }
    [[nodiscard]] bool is_awaited_elsewhere() const noexcept override { return true; }
    [[nodiscard]] promise_base* awaiting_root() const noexcept override { return awaiting_root_; }
    /// Called by the context to which the task has moved.
    void abandoned(promise_base& root) noexcept override {
        if (current_loop != nullptr) {
            current_loop->withdraw(root, child_); // if it has not started
        }
        child_.destroy();
        abandoned_ = true;
        dropped_ = true;
        over();
    }

    const executor_ref target_;
    start* start_ = nullptr;
    // read by the awaiting thread while another one ends the task
    const std::coroutine_handle<task_promise<T>> child_;
    promise_base* awaiting_root_ = nullptr;
    std::optional<inplace_stop_callback<request>> outside_;
    bool dropped_ = false;
    bool abandoned_ = false; // its frame is destroyed
};

/// The awaitable returned by on(): plain data that may be moved until it is awaited.
template <class T>
class [[nodiscard("did you forget to co_await?")]] on_awaitable {
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

} // namespace detail

/// Runs a task on an executor and returns its result or throws its exception:
///
///     const auto digest = co_await on(pool, hash(file));   // resumes here
///
/// On a context this is like spawning the task there and joining it, but the task may refer to the
/// caller's objects, because the caller waits until it has ended.
///
/// Threading: the task runs on `ex`. The caller resumes where it was: on its context, on the
/// executor that runs it, or, without either, where the task ended. Everything the caller did
/// before happens before the task, and the task happens before everything the caller does
/// afterwards. `ex` must outlive the task.
///
/// Cancellation: the task inherits the caller's stop token and is always waited for. If the
/// caller's context shuts down, the task is asked to stop and the shutdown waits for its end; a
/// task that has not started is not started.
///
/// Errors: if `ex` was shut down before the task started, or is a context that stops, the await
/// throws std::system_error with std::errc::operation_canceled. It also throws what the executor
/// throws. If the caller's own executor was shut down meanwhile, the await throws that error as
/// well, and an exception of the task is reported like that of a detached task.
template <executor E, class T>
detail::on_awaitable<T> on(E& ex, task<T> work) noexcept {
    return {detail::ref_to(ex), std::move(work)};
}
template <class T>
detail::on_awaitable<T> on(const any_executor& ex, task<T> work) noexcept {
    return {detail::ref_to(ex), std::move(work)};
}

} // namespace coil
