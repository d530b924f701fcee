#pragma once

#include <coil/core/config.hpp>
#include <coil/core/detail/promise_base.hpp>
#include <coil/core/detail/result.hpp>
#include <coil/core/detail/task_owner.hpp>
#include <coil/core/detail/top_level_task.hpp>
#include <coil/core/frame_allocator.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/queue.hpp>
#include <coil/core/transfer.hpp>

#include <concepts>
#include <coroutine>

namespace coil::detail {

/// The awaiter of a task's final suspension point.
class final_awaiter {
public:
    template <class P>
    explicit final_awaiter(P& promise) noexcept
        : ends_alone_(promise.is_root() && promise.owner().indifferent &&
                      !promise.outcome.has_error()) {
        if (ends_alone_) {
            end_task(promise);
        }
    }

    /// A detached root does not suspend at its end: it returns to the loop that resumed it, which
    /// destroys the frame.
    [[nodiscard]] bool await_ready() const noexcept { return ends_alone_; }

    template <std::derived_from<promise_base> P>
    transfer await_suspend(std::coroutine_handle<P> self) const noexcept {
        promise_base& promise = self.promise();
        if (!promise.is_root()) [[likely]] {
            promise.end_below();
            return transfer_to(self, promise.coroutine);
        }
        promise.owner().finished(promise); // this destroys the frame
        return transfer_to_nobody();
    }

    void await_resume() const noexcept {}

private:
    bool ends_alone_;
};

} // namespace coil::detail
