#pragma once

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/resume_on.hpp>
#include <coil/core/promise.hpp>
#include <coil/exec/any_executor.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/remote_op.hpp>
#include <coil/exec/executor.hpp>

#include <concepts>
#include <coroutine>
#include <cstdint>

namespace coil {

namespace detail {

/// A task that moves to an executor: its root is in no list meanwhile. If the executor drops it, it
/// returns to its context. If that context was destroyed or does not run, the task resumes where it
/// was dropped: on a context that ends, which destroys it, or on the thread that shuts down the
/// executor.
class [[nodiscard("did you forget to co_await?")]] hop_awaiter : remote_op {
public:
    hop_awaiter(executor_ref target, bool always) noexcept
        : remote_op(&travel), executor_(target), always_(always) {}
    ~hop_awaiter() {
        if (is_elsewhere()) [[unlikely]] {
            end_with_misuse("a coroutine is destroyed while it moves to another executor");
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return !always_ && executor_.is_here(); }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) {
        if constexpr (std::derived_from<P, promise_base>) {
            promise_base* const top = waiter.promise().root();
            if (top != nullptr && top->observer().bound) [[unlikely]] {
                refuse_to_move();
            }
        }
        origin_ = resume_target::here();
        origin_number_ = origin_.loop != nullptr ? origin_.loop->number() : 0;
        begin_move(waiter, nearest_root(waiter), {nullptr, {executor_, nullptr}});
        if (root() != nullptr) {
            set_unowned(*root());
        }
        try {
            return depart();
        } catch (...) {
            stay();
            throw;
        }
    }

    void await_resume() {
        end();
        throw_if_executor_lost("resume_on() or schedule()");
    }

private:
    static void travel(work& w, fate what) noexcept {
        auto& self = static_cast<hop_awaiter&>(w);
        if (what == fate::run || self.turned_back_) {
            arrive(w, what);
            return;
        }
        self.turned_back_ = true;
        self.set_executor_lost();
        if (submit_scope::notice(self)) {
            return;
        }
        if (event_loop* const from = self.origin_.loop; from != nullptr && from != current_loop) {
            self.settle_on_delivery();
            if (!listed_loop::post_if_running(from, self.origin_number_, self)) {
                self.resume_anywhere();
            }
            return;
        }
        self.set_target(self.origin_);
        self.return_to_target();
    }

    const executor_ref executor_;
    resume_target origin_;
    std::uint64_t origin_number_ = 0; // of its loop
    const bool always_;
    bool turned_back_ = false;
};

} // namespace detail

/// Moves the calling task to an executor: after `co_await resume_on(ex)` the task, and its
/// awaiters, run there until it moves again. Does nothing if the task is known to run there,
/// because one of coil's awaits has moved it.
///
///     co_await resume_on(pool);       // compute there
///     const auto sum = add(numbers);
///     co_await resume_on(context);    // where its I/O is
///
/// To run something there and return with the result, prefer `on(ex, task)`.
///
/// Threading: everything before it happens before everything after it. On an executor that is not a
/// context, operations of coil::io and other awaits that need a context terminate the program with
/// a message. Tasks, async_tasks, on(), schedule() and resume_on() may be awaited there; the task
/// then resumes on the executor, which must live until then.
///
/// While it is elsewhere the task does not count as work of the context that it left, whose run()
/// may return; coil::run() and block_on() wait for it everywhere. It is not destroyed while it is
/// elsewhere, but ends by itself.
///
/// Errors: if the executor was shut down, the task continues where it was, which must still exist,
/// and std::system_error with std::errc::operation_canceled is thrown. Exceptions of the executor
/// are thrown as well, for example if no thread can be created. A child of when_all, when_any,
/// scope or timeout(task, d) cannot leave its parent's context: std::logic_error.
///
/// If the context that the task left has ended or does not run, the task continues on the thread
/// that drops the work, which is on no context. A context that ends destroys tasks that are on
/// their way to it.
///
/// Cancellation: a stop request does not prevent the move.
///
/// An async_task, which always runs on its own executor, moves there and returns at once.
template <executor E>
detail::hop_awaiter resume_on(E& ex) noexcept {
    return {detail::ref_to(ex), false};
}
inline detail::hop_awaiter resume_on(const any_executor& ex) noexcept {
    return {detail::ref_to(ex), false};
}

/// As resume_on(), but always goes through the executor's queue: even if the task runs there
/// already, it lets queued work run first.
template <executor E>
detail::hop_awaiter schedule(E& ex) noexcept {
    return {detail::ref_to(ex), true};
}
inline detail::hop_awaiter schedule(const any_executor& ex) noexcept {
    return {detail::ref_to(ex), true};
}

} // namespace coil
