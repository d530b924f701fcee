#pragma once

#include <coil/context/away_list.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/transfer.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/work.hpp>

#include <concepts>
#include <coroutine>
#include <utility>

namespace coil::detail {

// ---- roots
// A root on a context's thread is in that context's list, so that a shutdown finds it. A root that
// runs elsewhere is in no list; it is destroyed only when it ends.

/// Called on the thread on which it runs. Outside of a context's thread it is in no list already;
/// or code unknown to coil has resumed its coroutine here, and it is still in its context's list.
inline void make_unowned(promise_base& root) noexcept {
    if (current_loop != nullptr && !is_unowned(root)) {
        event_loop::disown(root);
    }
}

/// The root that moves with what is below `nearest`: the top-level task of its tree, also when a
/// combinator is in between, whose children are bound to it. Null if that is not known, or is bound
/// itself, as a run_loop's task is.
[[nodiscard]] inline promise_base* movable_above(promise_base* nearest) noexcept {
    promise_base* const root = top_level_of(nearest);
    return root != nullptr && !root->owner().bound ? root : nullptr;
}
/// The same for a coroutine.
template <class P>
[[nodiscard]] promise_base* root_of(std::coroutine_handle<P> coroutine) noexcept {
    if constexpr (std::derived_from<P, promise_base>) {
        return movable_above(coroutine.promise().root());
    } else {
        return nullptr;
    }
}
/// Queues a coroutine on a context, on the context's thread. If its root was in no list, the
/// context adopts it.
inline void settle_in(event_loop& loop, promise_base* root, queue_node& node,
                      std::coroutine_handle<> coroutine) noexcept {
    loop.adopt_remote(root != nullptr && is_unowned(*root) ? root : nullptr, node, coroutine);
}

// ---- home

/// Where a coroutine resumes when its wait is over: on the context or the executor that runs it;
/// without either, wherever the wait ends.
struct home {
    event_loop* loop = nullptr;
    executor_place place{};

    /// The target of the coroutine that runs here.
    static home here() noexcept {
        return current_loop != nullptr ? home{current_loop, {}} : home{nullptr, current_place};
    }
};

/// Exists while a coroutine of an executor runs on this thread.
class running_at {
public:
    explicit running_at(const executor_place& place) noexcept
        : outer_(std::exchange(current_place, place)) {}
    running_at(const running_at&) = delete;
    running_at& operator=(const running_at&) = delete;
    ~running_at() { current_place = outer_; }

private:
    const executor_place outer_;
};

class remote_wait;

/// Surrounds the part of an await_suspend in which the wait may end before it has started, on this
/// thread. The coroutine then continues without being resumed, so that the stack does not grow
/// (guarantee G10). After that part, unless the wait is over, the awaiter may be destroyed.
class beginning {
public:
    explicit beginning(remote_wait& wait) noexcept;
    beginning(const beginning&) = delete;
    beginning& operator=(const beginning&) = delete;
    ~beginning() { innermost = outer_; }

    [[nodiscard]] bool is_over() const noexcept { return over_; }

    /// Returns true if `wait` is being started on this thread: its await_suspend will see that it
    /// is over.
    static bool notice(const remote_wait& wait) noexcept;

private:
    static constinit inline thread_local beginning* innermost = nullptr;

    const remote_wait* wait_;
    beginning* outer_;
    bool over_ = false;
};

/// Runs coroutines on a thread that runs no context, one after the other. Coroutines that waited
/// for the end of another one's tree are resumed after it instead of inside it, so that a chain of
/// them does not grow the stack (guarantee G10). Coroutines resumed by anything else, in the middle
/// of a coroutine or function, run nested.
class resumptions {
public:
    /// Runs it and everything that its end makes ready, or queues it for a run() that is active on
    /// this thread.
    static void run(remote_wait& wait, const executor_place& place) noexcept;
    /// Called before this thread blocks inside of one: runs the queued ones.
    static void run_waiting() noexcept;

    /// Exists while the waiters for the end of a root are being notified.
    class ending {
    public:
        explicit ending(const promise_base* root) noexcept
            : outer_(std::exchange(innermost_ends, root != nullptr && root == running)) {}
        ending(const ending&) = delete;
        ending& operator=(const ending&) = delete;
        ~ending() { innermost_ends = outer_; }

    private:
        const bool outer_;
    };

private:
    static void run_all(fifo& waiting) noexcept;

    static constinit inline thread_local fifo* waiting_here = nullptr; // of the innermost run()
    static constinit inline thread_local const promise_base* running = nullptr; // its tree's root
    static constinit inline thread_local bool innermost_ends = false;
};

/// A suspended await that something outside of its context ends: once, on any thread.
///
/// States: fresh → away → (queued at its resume target) → resumed. If the target is a context, only
/// the context's thread writes here, and a shutdown may destroy the frame at any time. The
/// destructor of a derived class that finds the wait away must ensure that it is no longer ended,
/// or wait until it was (come_home()). Frames that wait outside of a context are not destroyed.
class remote_wait : public work {
public:
    remote_wait(const remote_wait&) = delete;
    remote_wait& operator=(const remote_wait&) = delete;

    /// May be called from any thread, once. The wait may be destroyed when this returns.
    void over() noexcept {
        if (!beginning::notice(*this)) {
            go_home();
        }
    }

protected:
    explicit remote_wait(function f = &arrive) noexcept : work(f, kind::arrival) {}
    ~remote_wait() {
        if (state_ == state::queued) [[unlikely]] {
            queue_->withdraw(*this, waiter_);
        }
    }

    template <class P>
    void begin(std::coroutine_handle<P> waiter, const home& where = home::here()) noexcept {
        waiter_ = waiter;
        root_ = root_of(waiter);
        set_owned(root_ == nullptr);
        home_ = where;
        state_ = state::away;
    }
    /// The wait is over, and the coroutine runs.
    void end() noexcept { state_ = state::ended; }
    [[nodiscard]] bool is_away() const noexcept { return state_ == state::away; }
    /// Its executor was shut down; the coroutine resumes elsewhere.
    [[nodiscard]] bool is_homeless() const noexcept { return homeless_; }
    /// Throws std::errc::operation_canceled in that case: "coil: NAME: the executor ... was shut
    /// down".
    void throw_if_homeless(const char* name) const {
        if (homeless_) [[unlikely]] {
            throw_homeless(name);
        }
    }

    /// The root of its tree, if it may run outside of its context.
    [[nodiscard]] promise_base* root() const noexcept { return root_; }

    /// As above, for a coroutine of unknown type.
    void begin_below(std::coroutine_handle<> waiter, promise_base* nearest) noexcept {
        waiter_ = waiter;
        root_ = movable_above(nearest);
        set_owned(root_ == nullptr);
        home_ = home::here();
        state_ = state::away;
    }
    /// Queues it on the target executor. If it throws, nothing has happened.
    void send() { home_.place.executor.submit(*this); }
    void set_home(const home& where) noexcept { home_ = where; }
    void set_homeless() noexcept { homeless_ = true; }
    /// Resumes here, regardless of the executor.
    void go_on_anywhere() noexcept { go_on_here({}); }
    void settle_on_delivery() noexcept;

    /// The coroutine continues at once on this thread, where an inline executor has brought it.
    void stay() noexcept {
        end();
        if (root_ != nullptr && current_loop != nullptr && is_unowned(*root_)) {
            current_loop->adopt(*root_);
        }
    }

    /// For a destructor that finds the wait away: returns when it is over, or terminates the
    /// program if it never will be. `other` is the root that it waits for, or null.
    void come_home(const promise_base* other) noexcept;

    /// The work function of waits that need nothing else.
    static void arrive(work& w, fate what) noexcept;

private:
    friend class beginning;
    friend class resumptions;
    class homecoming;
    enum class state : unsigned char { fresh, away, queued, ended };

    [[noreturn]] static void throw_homeless(const char* name);
    void go_home() noexcept;
    void come_to_loop(event_loop& loop, const promise_base* other) noexcept;
    void come_to_owner() noexcept;
    void go_on_here(const executor_place& place) noexcept;
    void settle(event_loop& loop) noexcept;

    std::coroutine_handle<> waiter_;
    promise_base* root_ = nullptr;
    home home_{};
    event_loop* queue_ = nullptr;    // the loop in whose ready queue it is
    beginning* beginning_ = nullptr; // possibly out of scope
    state state_ = state::fresh;
    bool homeless_ = false;
};

inline beginning::beginning(remote_wait& wait) noexcept
    : wait_(&wait), outer_(std::exchange(innermost, this)) {
    wait.beginning_ = this;
}

/// Addresses of awaits and of stack objects are reused, but both match only for the right pair.
inline bool beginning::notice(const remote_wait& wait) noexcept {
    for (beginning* one = innermost; one != nullptr; one = one->outer_) {
        if (one == wait.beginning_ && one->wait_ == &wait) {
            one->over_ = true;
            return true;
        }
    }
    return false;
}

} // namespace coil::detail
