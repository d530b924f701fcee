#pragma once

#include <coil/core/config.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/promise_base.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/core/detail/result.hpp>
#include <coil/core/detail/task_owner.hpp>
#include <coil/core/detail/top_level_task.hpp>
#include <coil/core/detail/transfer.hpp>
#include <coil/core/inplace_stop_token.hpp>

#include <concepts>
#include <coroutine>

namespace coil::detail {

/// The awaiter of a task's final suspension point.
class final_awaiter {
public:
    template <class P>
    explicit final_awaiter(P& promise) noexcept {
        // decided once: the most frequent end then costs one comparison
        if (promise.is_plain_child()) [[likely]] {
            end_ = end::resumes_task;
        } else if (!promise.is_root()) {
            end_ = end::resumes_other;
        } else if (promise.owner().indifferent && !promise.outcome.has_error()) {
            end_ = end::alone;
            end_task(promise);
        } else {
            end_ = end::notifies_owner;
        }
    }

    /// A detached root does not suspend at its end: its frame is destroyed, and control returns to
    /// the loop that resumed it.
    [[nodiscard]] bool await_ready() const noexcept { return end_ == end::alone; }

    template <std::derived_from<promise_base> P>
    transfer await_suspend(std::coroutine_handle<P> self) const noexcept {
        promise_base& promise = self.promise();
        if (end_ == end::resumes_task) [[likely]] {
            promise.end_below_task();
            return transfer_to(self, promise.coroutine);
        }
        if (end_ == end::resumes_other) {
            promise.end_below();
            return transfer_to(self, promise.coroutine);
        }
        promise.owner().finished(promise); // this destroys the frame
        return transfer_to_nobody();
    }

    void await_resume() const noexcept {}

private:
    enum class end : unsigned char { resumes_task, resumes_other, alone, notifies_owner };

    end end_;
};

} // namespace coil::detail
