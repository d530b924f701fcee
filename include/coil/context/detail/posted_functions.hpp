#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/core/detail/callback_coroutine.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/core/detail/ready_queue.hpp>

namespace coil::detail {

/// The node that stands for the functions in a ready queue, in place of a coroutine.
struct posted_turn : queue_node {};

/// The functions that were posted to a loop, first in first out. They are called in turns of the
/// ready queue, a few at a time, so that they do not delay other work, however many there are
/// (guarantee G7). Owner thread.
class posted_functions : callback_coroutine<posted_turn> {
public:
    /// The maximum number of functions that a turn calls.
    static constexpr int at_once = 16;

    explicit posted_functions(ready_queue& ready) noexcept
        : callback_coroutine(&take_turn), ready_(ready) {}

    [[nodiscard]] bool empty() const noexcept { return functions_.empty(); }

    /// `node.deliver` is called in a later turn.
    void push(queue_node& node) noexcept {
        functions_.push(node);
        if (!coil::detail::exchange(due_, true)) {
            ready_.push(promise(), handle());
        }
    }
    /// For a shutdown, in which no coroutine has a turn: calls all functions now, including those
    /// that they post.
    void call_all(event_loop& loop) noexcept {
        while (!functions_.empty()) {
            queue_node& node = functions_.pop();
            node.deliver(node, loop);
        }
    }
    /// Ends the functions whose results are no longer wanted: delivers each node once while
    /// is_refusing(). The node then calls push() again, or ends without running.
    void refuse_unwanted(event_loop& loop) noexcept {
        const bool outer = coil::detail::exchange(refusing_, true);
        fifo all;
        all.append(functions_);
        while (!all.empty()) {
            queue_node& node = all.pop();
            node.deliver(node, loop);
        }
        refusing_ = outer;
    }
    [[nodiscard]] bool is_refusing() const noexcept { return refusing_; }
    /// The ready queue was cleared, and the turn with it.
    void lost_turn() noexcept { due_ = false; }

private:
    static void take_turn(callback_coroutine<posted_turn>& caller) noexcept {
        auto& self = static_cast<posted_functions&>(caller);
        for (int left = at_once; left > 0 && !self.functions_.empty(); --left) {
            queue_node& node = self.functions_.pop();
            node.deliver(node, *current_loop);
        }
        self.due_ = !self.functions_.empty();
        if (self.due_) {
            self.ready_.push(self.promise(), self.handle());
        }
    }

    ready_queue& ready_;
    fifo functions_;
    bool due_ = false; // its turn is in the ready queue
    bool refusing_ = false;
};

} // namespace coil::detail
