#pragma once

#include <coil/context/event_loop.hpp>
#include <coil/context/wait.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/transfer.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/work.hpp>

#include <concepts>
#include <coroutine>
#include <utility>

namespace coil::detail {

// ---- roots
// A root on a context's thread hangs in that context's list, so that a shutdown finds it. One that
// runs elsewhere is adrift: no list has it, and nobody destroys it but its own end.

/// On the thread where it runs. One that does not run on a context's thread is adrift already; or
/// something that coil does not know has brought its coroutine here, and its context has it still.
inline void set_adrift(promise_base& root) noexcept {
    if (current_loop != nullptr && !is_adrift(root)) {
        event_loop::let_go(root);
        begin_adrift(root);
    }
}

/// A root, if it may run elsewhere than its context; or null.
[[nodiscard]] inline promise_base* movable(promise_base* root) noexcept {
    return root != nullptr && !root->observer().bound ? root : nullptr;
}
/// The root of a task's tree, if that may run elsewhere than its context; or null.
template <class P>
[[nodiscard]] promise_base* root_of(std::coroutine_handle<P> coroutine) noexcept {
    if constexpr (std::derived_from<P, promise_base>) {
        return movable(coroutine.promise().root());
    } else {
        return nullptr;
    }
}
/// A coroutine comes to a context, on its thread: it waits for its turn there, and its root, if
/// that was adrift, is this context's.
inline void settle_in(event_loop& loop, promise_base* root, queue_node& node,
                      std::coroutine_handle<> coroutine) noexcept {
    loop.settle(root != nullptr && is_adrift(*root) ? root : nullptr, node, coroutine);
}

// ---- home

/// Where a coroutine goes on when what it waits for is over: on the context that runs it, or the
/// executor; or, when neither is there, wherever that happens.
struct home {
    event_loop* loop = nullptr;
    executor_place place{};

    /// Of the coroutine that runs here.
    static home here() noexcept {
        return current_loop != nullptr ? home{current_loop, {}} : home{nullptr, current_place};
    }
};

/// While a coroutine of an executor runs on this thread.
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

/// Around the part of an await_suspend in which the wait may be over before it has begun, on this
/// thread: then the coroutine goes on by itself, and the stack does not grow (guarantee G10). After
/// that part, when it is not over, the awaiter may be gone.
class beginning {
public:
    explicit beginning(remote_wait& wait) noexcept;
    beginning(const beginning&) = delete;
    beginning& operator=(const beginning&) = delete;
    ~beginning() { innermost = outer_; }

    [[nodiscard]] bool is_over() const noexcept { return over_; }

    /// True when `wait` is beginning on this thread: its await_suspend will see that it is over.
    static bool notice(const remote_wait& wait) noexcept;

private:
    static constinit inline thread_local beginning* innermost = nullptr;

    const remote_wait* wait_;
    beginning* outer_;
    bool over_ = false;
};

/// A suspended await that something outside of its context ends: once, on any thread.
///
/// Life: fresh → away → (in its home's queue) → resumed. When home is a context, only its thread
/// writes what happens here, and a shutdown may destroy the frame at any time: a derived class
/// whose destructor finds the wait away must see to it that nobody ends it any more, or wait until
/// somebody has (come_home()). Nobody destroys frames that wait elsewhere.
class remote_wait : public work {
public:
    remote_wait(const remote_wait&) = delete;
    remote_wait& operator=(const remote_wait&) = delete;

    /// Any thread, once. It may be gone when this returns.
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
    /// Its home was an executor that takes nothing any more; the coroutine goes on elsewhere.
    [[nodiscard]] bool is_homeless() const noexcept { return homeless_; }
    /// std::errc::operation_canceled, when it is: "coil: NAME: the executor ... was shut down".
    void throw_if_homeless(const char* name) const {
        if (homeless_) [[unlikely]] {
            throw_homeless(name);
        }
    }

    /// The root of its tree, if that may run elsewhere than its context.
    [[nodiscard]] promise_base* root() const noexcept { return root_; }

    /// The same of one whose kind is not known any more.
    void begin_below(std::coroutine_handle<> waiter, promise_base* nearest) noexcept {
        waiter_ = waiter;
        root_ = movable(nearest);
        set_owned(root_ == nullptr);
        home_ = home::here();
        state_ = state::away;
    }
    /// Queues it where home is, an executor. When it throws, nothing has happened.
    void send() { home_.place.executor.submit(*this); }
    void set_home(const home& where) noexcept { home_ = where; }
    void set_homeless() noexcept { homeless_ = true; }
    /// Goes on here, where nobody asks which executor it is.
    void go_on_anywhere() noexcept { go_on_here({}); }
    void settle_on_delivery() noexcept;

    /// Its coroutine goes on at once, on this thread, where something inline has brought it.
    void stay() noexcept {
        end();
        if (root_ != nullptr && current_loop != nullptr && is_adrift(*root_)) {
            current_loop->adopt(*root_);
        }
    }

    /// For a destructor that finds it away: returns when it has come, or ends the program when it
    /// never will. `other` is the root that it waits for, or null.
    void come_home(const promise_base* other) noexcept;

    /// What a work function does that has nothing to add.
    static void arrive(work& w, fate what) noexcept;

private:
    friend class beginning;
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
    event_loop* queue_ = nullptr;    // whose ready queue it is in
    beginning* beginning_ = nullptr; // perhaps long past
    state state_ = state::fresh;
    bool homeless_ = false;
};

inline beginning::beginning(remote_wait& wait) noexcept
    : wait_(&wait), outer_(std::exchange(innermost, this)) {
    wait.beginning_ = this;
}

/// Addresses come back, of awaits and of what is on the stack; both at once only for the one that
/// is meant.
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
