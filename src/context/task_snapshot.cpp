// Takes a snapshot of a loop's tasks on the loop's thread, a part in each turn, and passes it to
// the thread that requests it.

#include "task_snapshot.hpp"

#include "task_capture.hpp"

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace coil::detail {

namespace {

/// How long to wait for a snapshot. A loop whose thread is blocked does not deliver one.
constexpr std::chrono::seconds patience{2};

/// How much of a turn a loop spends on a snapshot.
constexpr std::chrono::microseconds slice{500};

/// A snapshot for which a thread waits. The message that makes the loop work on it owns it as well,
/// because that message may arrive after the thread has given up.
///
/// posted ──▶ working ⇄ paused, working ──▶ done; posted, paused ──▶ withdrawn
class job final : queue_node {
public:
    job(event_loop& loop, std::size_t limit) noexcept : loop_(loop), capture_(loop, limit) {}

    /// Returns the snapshot, or one that says that the loop did not respond.
    static context_snapshot run(event_loop& loop, std::size_t limit);

private:
    enum class state : std::uint8_t { posted, working, paused, done, withdrawn };

    /// The jobs of all threads. Never destroyed: threads may outlive main().
    struct job_list {
        std::mutex mutex;
        std::condition_variable changed;
        std::vector<job*> jobs; // the oldest first
    };
    static job_list& all() {
        static auto& list = *new job_list;
        return list;
    }

    void post(std::shared_ptr<job> self) noexcept;
    static void arrive(queue_node& node, event_loop& loop) noexcept;
    [[nodiscard]] bool work(std::chrono::nanoseconds time) noexcept;
    [[nodiscard]] bool is_in_line() const noexcept;
    static void do_all(event_loop& loop) noexcept;
    void wait(const std::shared_ptr<job>& self);
    void end_wait();
    [[nodiscard]] bool is_open() const noexcept {
        return now_ == state::posted || now_ == state::paused;
    }

    event_loop& loop_;
    task_capture capture_;
    state now_ = state::posted; // this and the next two: protected by the mutex
    unsigned steps_ = 0;
    std::exception_ptr error_;
    std::shared_ptr<job> self_; // while the message is in flight
};

/// For each step the message is delivered twice: with the inbox, and in a later turn as a posted
/// function. Only the second delivery takes a step, because the inbox may be delivered in a
/// destructor, where the tree of tasks must not be read.
void job::post(std::shared_ptr<job> self) noexcept {
    self_ = std::move(self);
    deliver = [](queue_node& node, event_loop& loop) noexcept {
        node.deliver = &arrive;
        loop.defer(node);
    };
    loop_.post(*this);
}

void job::arrive(queue_node& node, event_loop& loop) noexcept {
    if (loop.is_refusing()) {
        loop.defer(node);
        return;
    }
    auto& self = static_cast<job&>(node);
    std::shared_ptr<job> owner = std::move(self.self_);
    if (self.is_in_line() || self.work(slice)) {
        self.post(std::move(owner)); // through the inbox, so that it arrives in another turn
    }
}

/// Whether this job has to wait for another one that has begun: a loop works on one job in a turn.
bool job::is_in_line() const noexcept {
    const std::scoped_lock lock(all().mutex);
    return std::any_of(all().jobs.begin(), all().jobs.end(),
                       [this](const job* other) {
                           return other != this && &other->loop_ == &loop_ &&
                                  other->now_ == state::paused;
                       }) &&
           now_ == state::posted;
}

/// Takes a step, on a thread that may read the loop. Returns whether there is more to do.
bool job::work(std::chrono::nanoseconds time) noexcept {
    std::unique_lock lock(all().mutex);
    if (!is_open()) {
        lock.unlock();
        capture_.leave();
        return false;
    }
    now_ = state::working;
    lock.unlock();
    bool is_done = true;
    std::exception_ptr error;
    try {
        is_done = capture_.step(time);
    } catch (...) {
        error = std::current_exception();
    }
    if (is_done) {
        capture_.leave();
    }
    lock.lock();
    ++steps_;
    error_ = std::move(error);
    now_ = is_done ? state::done : state::paused;
    if (is_done) {
        all().changed.notify_all();
    }
    return !is_done;
}

/// Does the jobs of a loop that this thread may read.
void job::do_all(event_loop& loop) noexcept {
    const auto next_one = [&]() -> job* {
        const std::scoped_lock lock(all().mutex);
        const auto found = std::find_if(all().jobs.begin(), all().jobs.end(), [&](const job* one) {
            return &one->loop_ == &loop && one->is_open();
        });
        return found != all().jobs.end() ? *found : nullptr;
    };
    while (job* const one = next_one()) {
        static_cast<void>(one->work(task_capture::unlimited));
    }
}

/// Returns when the job is done, or when the loop has made no progress for `patience`. Meanwhile
/// the thread does the jobs of its own loop, so that two contexts can request snapshots of each
/// other.
void job::wait(const std::shared_ptr<job>& self) {
    using clock = std::chrono::steady_clock;
    clock::time_point end = clock::now() + patience;
    std::chrono::milliseconds pause{1};
    bool is_posted = false;
    unsigned steps = 0;
    for (;;) {
        if (event_loop* const own = current_loop) {
            do_all(*own);
        }
        if (task_capture::claim(loop_)) { // the loop does not run
            do_all(loop_);
            task_capture::release(loop_);
        } else if (!std::exchange(is_posted, true)) {
            post(self);
        }
        std::unique_lock lock(all().mutex);
        if (now_ == state::done) {
            return;
        }
        unsigned all_steps = 0;
        for (const job* const other : all().jobs) {
            all_steps += &other->loop_ == &loop_ ? other->steps_ : 0;
        }
        if (std::exchange(steps, all_steps) != all_steps) {
            end = clock::now() + patience;
        } else if (is_open() && clock::now() >= end) {
            return;
        }
        all().changed.wait_for(lock, pause);
        pause = std::min(2 * pause, std::chrono::milliseconds(20));
    }
}

void job::end_wait() {
    snapshot_memory unwanted; // freed on this thread, without the lock
    std::unique_lock lock(all().mutex);
    while (now_ == state::working) {
        all().changed.wait_for(lock, std::chrono::milliseconds(1));
    }
    if (now_ != state::done) {
        now_ = state::withdrawn;
    }
    if (now_ != state::done || error_) {
        unwanted = capture_.discard();
    }
    std::erase(all().jobs, this);
}

context_snapshot job::run(event_loop& loop, std::size_t limit) {
    const auto self = std::make_shared<job>(loop, limit);
    self->capture_.reserve();
    {
        const std::scoped_lock lock(all().mutex);
        all().jobs.push_back(self.get());
    }
    struct ending {
        job& one;
        ~ending() { one.end_wait(); }
    };
    {
        const ending at_end{*self};
        self->wait(self);
    }
    if (self->error_) {
        std::rethrow_exception(self->error_);
    }
    if (self->now_ == state::done) {
        return self->capture_.take();
    }
    context_snapshot none;
    none.name = loop.context().options().name;
    none.result = context_snapshot::how::no_answer;
    return none;
}

} // namespace

context_snapshot take_snapshot(event_loop& loop, std::size_t limit) {
    if (loop.on_owner_thread() || loop.driver() != nullptr) { // a simulated world has one thread
        task_capture capture(loop, limit);
        capture.reserve();
        static_cast<void>(capture.step(task_capture::unlimited));
        return capture.take();
    }
    return job::run(loop, limit);
}

} // namespace coil::detail
