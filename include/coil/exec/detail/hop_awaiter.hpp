#pragma once

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/listed_loop.hpp>
#include <coil/context/detail/move_awaiter.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/remote_op.hpp>
#include <coil/exec/detail/resume_target.hpp>
#include <coil/exec/detail/work.hpp>

#include <concepts>
#include <coroutine>
#include <cstdint>

namespace coil::detail {

/// Moves a task to an executor. While the task moves, its root is in no list. If the executor drops
/// the task, the task returns to the context or executor that it came from. If that is a context
/// that was destroyed or is not running, the task resumes on the thread on which it was dropped: a
/// thread that shuts down an executor, or that of a context that is ending, which then destroys the
/// task.
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
            if (top != nullptr && top->owner().bound) [[unlikely]] {
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
    std::uint64_t origin_number_ = 0; // the number of its loop
    const bool always_;
    bool turned_back_ = false;
};

} // namespace coil::detail
