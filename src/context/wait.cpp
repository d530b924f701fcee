// What every kind of await shares.

#include <coil/context/event_loop.hpp>
#include <coil/context/resume_on.hpp>
#include <coil/context/wait.hpp>
#include <coil/core/async_generator.hpp>
#include <coil/core/backoff.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace coil::detail {

void end_without_context() noexcept {
    std::fputs(
        "coil: an await, or co_spawn(), spawn() or this_context(), outside of an io_context: "
        "this thread runs none. Run the coroutine with coil::run(task), or with "
        "io_context::co_spawn(task) and io_context::run(); one that runs on another executor "
        "awaits this in a task of a context: co_await on(context, task).\n",
        stderr);
    std::abort();
}

void end_with_misuse(const char* sentence) noexcept {
    std::fprintf(stderr, "coil: %s\n", sentence);
    std::abort();
}

void resume_later(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
    required_loop().make_ready(node, coroutine);
}

void take_back(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
    if (current_loop != nullptr) {
        current_loop->withdraw(node, coroutine);
    }
}

void refuse_to_move() {
    throw std::logic_error("coil: resume_on() or schedule() in a child of when_all, when_any, "
                           "scope or timeout, or in a task of a run_loop: it stays where that is. "
                           "Use co_await on(executor, task), or ctx.spawn(task) and await its "
                           "join_handle there");
}

void awaiter_base::finish() noexcept {
    if (attached()) [[unlikely]] {
        detach();
    }
    if (stop_is_coming()) [[unlikely]] { // also to one that stop_observing() has detached
        enter(phase::done);
        return; // the delivery makes it ready
    }
    enter(phase::done);
    make_waiter_ready();
}

void awaiter_base::make_waiter_ready() noexcept {
    if (node().coroutine) {
        loop().make_ready(node(), node().coroutine);
    }
}

bool awaiter_base::leave() noexcept {
    stop_observing();
    const bool waits =
        node().coroutine != nullptr && (pending() || loop().withdraw(node(), node().coroutine));
    node().coroutine = nullptr;
    // Whoever joins next may be stopped, too.
    word_.store(word_.load(std::memory_order_relaxed) & ~(posted | delivered),
                std::memory_order_relaxed);
    return waits;
}

void awaiter_base::stop_observing() noexcept {
    detach();
    for (backoff wait; stop_is_coming(); wait.once_more()) {
        loop().deliver_inbox(); // the post is there, or a few instructions away
    }
}

void awaiter_base::post_stop() noexcept {
    event_loop& owner = loop();
    word_.fetch_or(posted, std::memory_order_relaxed); // detach() makes it visible to the owner
    owner.post(static_cast<stop_callback_base&>(*this));
}

bool awaiter_base::stop_delivered() noexcept {
    word_.fetch_or(delivered, std::memory_order_relaxed);
    if (is(phase::done)) {
        make_waiter_ready();
    }
    return pending();
}

void awaiter_base::forget() noexcept {
    for (backoff wait; stop_is_coming(); wait.once_more()) {
        loop().deliver_inbox();
    }
    if (node().coroutine) {
        loop().withdraw(node(), node().coroutine);
    }
}

} // namespace coil::detail
