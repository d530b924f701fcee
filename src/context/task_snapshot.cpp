// Takes a snapshot of a loop's tasks on the loop's thread and passes it to the thread that requests
// it.

#include "task_snapshot.hpp"

#include "task_capture.hpp"

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/context/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace coil::detail {

namespace {

/// How long to wait for an answer. A loop whose thread is blocked does not answer.
constexpr std::chrono::seconds patience{2};

/// A request for a snapshot, on the stack of the thread that waits for the result.
struct request {
    enum class state : std::uint8_t { posted, taken, done };

    event_loop* loop;
    std::size_t limit;
    state now = state::posted;
    context_snapshot result{};
    std::exception_ptr error{};
    request* next = nullptr;
};

/// The requests of all threads. Never destroyed: threads may outlive main().
struct request_list {
    std::mutex mutex;
    std::condition_variable changed;
    request* first = nullptr;

    static request_list& instance() {
        static auto& all = *new request_list;
        return all;
    }
};

void answer(request& asked) noexcept {
    try {
        asked.result = task_capture(*asked.loop, asked.limit).take();
    } catch (...) {
        asked.error = std::current_exception();
    }
}

/// Answers the requests to a loop that this thread may read.
void answer_all(event_loop& loop) noexcept {
    request_list& all = request_list::instance();
    std::unique_lock lock(all.mutex);
    const auto next_one = [&] {
        request* one = all.first;
        while (one != nullptr && (one->loop != &loop || one->now != request::state::posted)) {
            one = one->next;
        }
        return one;
    };
    while (request* const one = next_one()) {
        one->now = request::state::taken;
        lock.unlock();
        answer(*one);
        lock.lock();
        one->now = request::state::done;
        all.changed.notify_all();
    }
}

/// Tells a loop that there are requests. It may outlive them: the loop may end before the message
/// is delivered. The message is delivered twice: first with the inbox, then as a posted function.
/// Only the second delivery answers, because the inbox may be delivered in a destructor, when the
/// tree of tasks must not be read.
struct wake_message final : queue_node {
    wake_message() noexcept {
        deliver = [](queue_node& node, event_loop& loop) noexcept {
            node.deliver = &arrive;
            loop.defer(node);
        };
    }
    static void arrive(queue_node& node, event_loop& loop) noexcept {
        if (loop.is_refusing()) {
            loop.defer(node);
            return;
        }
        const std::unique_ptr<wake_message> self(static_cast<wake_message*>(&node));
        answer_all(loop);
    }
};

/// Waits for the answer to a request. Meanwhile the thread answers the requests to its own loop, so
/// that two contexts can request snapshots of each other.
class asking {
public:
    explicit asking(request& asked) : asked_(asked), message_(new wake_message) {
        const std::scoped_lock lock(all_.mutex);
        asked_.next = std::exchange(all_.first, &asked_);
        all_.changed.notify_all();
    }
    asking(const asking&) = delete;
    asking& operator=(const asking&) = delete;
    /// Waits for an answer that has begun.
    ~asking() {
        std::unique_lock lock(all_.mutex);
        all_.changed.wait(lock, [this] { return asked_.now != request::state::taken; });
        request** link = &all_.first;
        while (*link != &asked_) {
            link = &(*link)->next;
        }
        *link = asked_.next;
    }

    /// Returns when there is an answer, or when `patience` has passed.
    void wait() {
        const auto end = std::chrono::steady_clock::now() + patience;
        std::chrono::milliseconds pause{1};
        for (;;) {
            if (event_loop* const own = current_loop) {
                answer_all(*own);
            }
            if (!is_taken() && task_capture::claim(*asked_.loop)) { // it does not run
                answer_all(*asked_.loop);
                task_capture::release(*asked_.loop);
            } else if (message_) {
                asked_.loop->post(*message_.release());
            }
            std::unique_lock lock(all_.mutex);
            if (asked_.now == request::state::posted) {
                if (std::chrono::steady_clock::now() >= end) {
                    return;
                }
                all_.changed.wait_for(lock, pause);
                pause = std::min(2 * pause, std::chrono::milliseconds(20));
            }
            if (asked_.now != request::state::posted) {
                return;
            }
        }
    }

private:
    [[nodiscard]] bool is_taken() {
        const std::scoped_lock lock(all_.mutex);
        return asked_.now != request::state::posted;
    }

    request_list& all_ = request_list::instance();
    request& asked_;
    std::unique_ptr<wake_message> message_;
};

} // namespace

context_snapshot take_snapshot(event_loop& loop, std::size_t limit) {
    if (loop.on_owner_thread() || loop.driver() != nullptr) { // a simulated world has one thread
        return task_capture(loop, limit).take();
    }
    request asked{.loop = &loop, .limit = limit};
    asking(asked).wait();
    if (asked.now != request::state::done) {
        asked.result.name = loop.context().options().name;
        asked.result.result = context_snapshot::how::no_answer;
    }
    if (asked.error) {
        std::rethrow_exception(asked.error);
    }
    return std::move(asked.result);
}

} // namespace coil::detail
