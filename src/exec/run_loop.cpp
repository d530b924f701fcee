#include <coil/context/detail/yield_awaiter.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/transfer.hpp>
#include <coil/exec/run_loop.hpp>

#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <unordered_map>

namespace coil {

namespace detail {

/// A dropped coroutine belongs to another executor, and is resumed on this thread: the loop's
/// destructor has destroyed the loop's own coroutines before, and take_out_now() does not drop
/// them.
void run_loop_yield::go_on(work& w, fate what) noexcept {
    auto& self = static_cast<run_loop_yield&>(w);
    if (what == fate::dropped && current_loop != nullptr) { // adopted by this context
        self.settled_in_ = current_loop;
        settle_in(*current_loop, self.root_, self, self.waiter_);
        return;
    }
    resume(self.waiter_);
}

} // namespace detail

/// A coroutine that is resumed each round. An element of the frame_table; always in a queue except
/// during its turn.
class run_loop::pushed final : public detail::work, public detail::frame_allocated {
public:
    pushed(run_loop& loop, std::coroutine_handle<> coroutine) noexcept
        : work(&turn), loop_(loop), coroutine_(coroutine) {}

    [[nodiscard]] std::coroutine_handle<> coroutine() const noexcept { return coroutine_; }

private:
    static void turn(work& w, fate what) noexcept {
        auto& self = static_cast<pushed&>(w);
        if (what == fate::dropped || self.coroutine_.done()) {
            self.loop_.destroy(self);
            return;
        }
        const auto outer = std::exchange(detail::resumed_each_round, self.coroutine_);
        try {
            detail::resume(self.coroutine_);
        } catch (...) { // the frame is at its final suspend point, and is destroyed below
            detail::report_unhandled(std::current_exception());
        }
        detail::resumed_each_round = outer;
        if (self.coroutine_.done()) {
            self.loop_.destroy(self);
        } else {
            self.loop_.submit(self);
        }
    }

    run_loop& loop_;
    std::coroutine_handle<> coroutine_;
};

/// The pushed coroutines.
struct run_loop::frame_table {
    std::unordered_map<void*, std::unique_ptr<pushed>> by_address;
};

/// A task. It is bound: the loop destroys its frame, and no context does. The queue owns it until
/// it starts.
class run_loop::spawned final : public detail::work,
                                public detail::task_owner,
                                public detail::frame_allocated {
public:
    using handle = std::coroutine_handle<detail::task_promise<void>>;

    explicit spawned(run_loop& loop) noexcept
        : work(&start), task_owner({}, false, true), loop_(loop) {}

    void take(handle coroutine) noexcept {
        coroutine_ = coroutine;
        coroutine.promise().become_root(*this);
    }

    void finished(detail::promise_base&) noexcept override {
        if (const std::exception_ptr error = coroutine_.promise().outcome.error()) {
            detail::report_unhandled(error,
                                     {{}, nullptr, detail::ended_function(coroutine_.address())});
        }
        loop_.end(*this);
    }
    void abandoned(detail::promise_base&) noexcept override {} // not in any context's list

    void destroy_frame() const noexcept { detail::destroy_tree(coroutine_); }

    spawned* older = nullptr;
    spawned* younger = nullptr;

private:
    static void start(work& w, fate what) noexcept {
        auto& self = static_cast<spawned&>(w);
        if (what == fate::dropped) {
            self.destroy_frame();
            delete &self;
            return;
        }
        self.loop_.begin(self);
        detail::resume(self.coroutine_);
    }

    run_loop& loop_;
    handle coroutine_;
};

/// A coroutine of the loop that awaits coil::yield().
class run_loop::yielded final : public detail::queued_turn,
                                public detail::work,
                                public detail::frame_allocated {
public:
    yielded(run_loop& loop, detail::yield_awaiter& at, std::coroutine_handle<> waiter,
            detail::promise_base* root) noexcept
        : work(&go_on), loop_(loop), at_(at), waiter_(waiter), root_(detail::movable_above(root)) {
        set_owned(root_ == nullptr);
    }

    void cancel() noexcept override {
        loop_.take_out(*this);
        delete this;
    }

private:
    static void go_on(work& w, fate what) noexcept {
        auto& self = static_cast<yielded&>(w);
        const std::coroutine_handle<> waiter = self.waiter_;
        detail::promise_base* const root = self.root_;
        detail::queue_node& node = self.at_.leave_turn(waiter);
        delete &self;
        if (what == fate::dropped && detail::current_loop != nullptr) {
            settle_in(*detail::current_loop, root, node, waiter); // see run_loop_yield::go_on()
        } else {
            detail::resume(waiter);
        }
    }

    run_loop& loop_;
    detail::yield_awaiter& at_;
    std::coroutine_handle<> waiter_;
    detail::promise_base* root_;
};

class run_loop::running final : detail::executor_scope, detail::turn_taking {
public:
    explicit running(run_loop& loop) : executor_scope(detail::executor_ref::to(loop)), loop_(loop) {
        const std::scoped_lock lock(loop_.mutex_);
        if (loop_.runner_ != std::thread::id()) {
            throw std::logic_error(
                "coil: run_loop::run() called while the loop is already running");
        }
        loop_.runner_ = std::this_thread::get_id();
    }
    ~running() {
        const std::scoped_lock lock(loop_.mutex_);
        loop_.runner_ = {};
    }
    running(const running&) = delete;
    running& operator=(const running&) = delete;

private:
    void queue(detail::yield_awaiter& at, std::coroutine_handle<> waiter,
               detail::promise_base* root) noexcept override {
        if (waiter == detail::resumed_each_round) {
            return;
        }
        if (yielded* const turn = make_turn(at, waiter, root)) {
            at.enter_turn(*turn);
            loop_.submit(*turn);
            return;
        }
        ++resumed_without_memory_;
        detail::resume(waiter);
        --resumed_without_memory_;
    }

    /// Returns null if there is no memory, and the coroutine may be resumed at once. Such
    /// resumptions are nested: after many of them this waits for memory instead.
    yielded* make_turn(detail::yield_awaiter& at, std::coroutine_handle<> waiter,
                       detail::promise_base* root) const noexcept {
        constexpr int most_resumed_without_memory = 100;
        for (;;) {
            try {
                return new yielded(loop_, at, waiter, root);
            } catch (const std::bad_alloc&) {
                if (resumed_without_memory_ < most_resumed_without_memory) {
                    return nullptr;
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        }
    }

    run_loop& loop_;
    int resumed_without_memory_ = 0; // coroutines, each nested in the one before
};

run_loop::run_loop() : frames_(new frame_table) {}

run_loop::~run_loop() {
    std::unique_lock lock(mutex_);
    if (runner_ != std::thread::id()) {
        detail::end_with_misuse("a run_loop is destroyed while it runs.");
    }
    // Destroying coroutines may submit more work. The oldest task is destroyed first, because what
    // it waits for is at the front of the queue.
    for (;;) {
        if (oldest_ != nullptr) {
            spawned& task = *oldest_;
            lock.unlock();
            end(task);
        } else if (!ready_.empty()) {
            auto& w = static_cast<detail::work&>(ready_.pop());
            lock.unlock();
            w.drop();
        } else {
            return;
        }
        lock.lock();
    }
}

bool run_loop::push(std::coroutine_handle<> coroutine) {
    if (!coroutine) {
        return false;
    }
    const std::scoped_lock lock(mutex_);
    const auto [where, is_new] = frames_->by_address.try_emplace(coroutine.address());
    if (!is_new) {
        return false;
    }
    try {
        where->second.reset(new pushed(*this, coroutine));
    } catch (...) {
        frames_->by_address.erase(where);
        throw;
    }
    ready_.push(*where->second);
    note_submitter();
    changed_.notify_all();
    return true;
}

void run_loop::spawn(task<> work) {
    auto* const root = new spawned(*this);
    root->take(work.release());
    enter(*root, true);
}

void run_loop::enter(detail::work& w, bool is_submission) noexcept {
    const std::scoped_lock lock(mutex_);
    ready_.push(w);
    if (is_submission) {
        note_submitter();
    }
    changed_.notify_all();
}

/// Called with the lock held.
void run_loop::note_submitter() noexcept {
    const std::thread::id submitter = std::this_thread::get_id();
    if (first_submitter_ == std::thread::id()) {
        first_submitter_ = submitter;
    }
    several_submitters_ = several_submitters_ || submitter != first_submitter_;
}

void run_loop::take_out(detail::work& w) noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.remove(w) || round_.remove(w); });
}

bool run_loop::take_out_now(detail::work& w) noexcept {
    std::unique_lock lock(mutex_);
    if (ready_.remove(w) || round_.remove(w)) {
        return true;
    }
    for (detail::queue_node* one = ready_.front(); one != nullptr; one = one->next) {
        auto& other = static_cast<detail::work&>(*one);
        if (!other.is_owned()) {
            static_cast<void>(ready_.remove(other));
            lock.unlock();
            other.drop();
            break;
        }
    }
    return false;
}

/// Called with the lock held.
bool run_loop::nothing_left() const noexcept {
    return ready_.empty() && frames_->by_address.empty() && oldest_ == nullptr;
}

std::size_t run_loop::run_round(std::unique_lock<std::mutex>& lock) noexcept {
    std::size_t turns = 0;
    round_.append(ready_);
    while (!round_.empty() && !stopping_) {
        auto& w = static_cast<detail::work&>(round_.pop());
        lock.unlock();
        w.run();
        ++turns;
        lock.lock();
    }
    round_.append(ready_); // after a stop: work that did not get its turn comes first
    ready_.append(round_);
    return turns;
}

void run_loop::run() {
    const running scope(*this);
    std::unique_lock lock(mutex_);
    for (;;) {
        if (std::exchange(stopping_, false)) {
            return;
        }
        if (!ready_.empty()) {
            (void)run_round(lock);
        } else if (nothing_left() &&
                   (finishing_ || (first_submitter_ == runner_ && !several_submitters_))) {
            return;
        } else {
            changed_.wait(lock);
        }
    }
}

std::size_t run_loop::run_once() {
    const running scope(*this);
    std::unique_lock lock(mutex_);
    const std::size_t turns = run_round(lock);
    stopping_ = false;
    return turns;
}

void run_loop::finish() noexcept {
    const std::scoped_lock lock(mutex_);
    finishing_ = true;
    changed_.notify_all();
}

void run_loop::stop() noexcept {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
}

/// Removes the address first: once the frame is freed, a new frame may have the same address.
void run_loop::destroy(pushed& frame) noexcept {
    const std::coroutine_handle<> coroutine = frame.coroutine();
    {
        const std::scoped_lock lock(mutex_);
        frames_->by_address.erase(coroutine.address());
    }
    coroutine.destroy();
}

void run_loop::begin(spawned& root) noexcept {
    const std::scoped_lock lock(mutex_);
    root.older = newest_;
    (newest_ == nullptr ? oldest_ : newest_->younger) = &root;
    newest_ = &root;
}

/// Removes the task from the list last: after that run(), possibly on another thread, may return.
void run_loop::end(spawned& root) noexcept {
    root.destroy_frame();
    {
        const std::scoped_lock lock(mutex_);
        (root.older == nullptr ? oldest_ : root.older->younger) = root.younger;
        (root.younger == nullptr ? newest_ : root.younger->older) = root.older;
        changed_.notify_all();
    }
    delete &root;
}

} // namespace coil
