#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/late.hpp>
#include <coil/compose/detail/child_group.hpp>
#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/listed_children.hpp>
#include <coil/context/detail/task_name.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/frame_tree.hpp>
#include <coil/core/detail/linked_fifo.hpp>
#include <coil/core/detail/list_node.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>
#include <string_view>
#include <utility>

namespace coil::detail {

template <class A>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

class nursery;
class child_state_base;
class child_wait;

/// std::errc::operation_canceled: the result of a child that was destroyed.
[[nodiscard]] std::exception_ptr cancelled_child() noexcept;
[[noreturn]] void throw_cancelled_wait();
/// Terminates the program if this is not the thread of the child's context, or if another coroutine
/// already awaits the child.
void check_child_wait(child_state_base& child) noexcept;

/// A base class, so that it is constructed before task_owner, which needs its token.
struct child_stop {
    inplace_stop_source stop_;
};

/// A child of a nursery and its result. It has two owners: the nursery, until the child has ended
/// (a completion_queue: until its result is taken), and a child_handle. All of it is used on the
/// nursery's context only, except cancel().
///
/// States: queued (the nursery is full) -> running -> ended. An ended child is in no list.
class child_state_base : child_stop, public task_owner, queue_node, list_node<child_state_base> {
public:
    child_state_base(const child_state_base&) = delete;
    child_state_base& operator=(const child_state_base&) = delete;

    void cancel() noexcept { stop_.request_stop(); }
    /// Whether this is not a child but a cursor, which marks a position in the list of children.
    [[nodiscard]] bool is_cursor() const noexcept { return owners_ == 0; }
    [[nodiscard]] bool has_ended() const noexcept { return nursery_ == nullptr; }
    [[nodiscard]] bool has_started() const noexcept { return !queued_; }
    [[nodiscard]] std::string_view name() const noexcept final { return label().name; }
    [[nodiscard]] const std::source_location* spawned_at() const noexcept final {
        return label().spawned_at;
    }
    [[nodiscard]] std::int64_t spawned_ns() const noexcept final {
        return label_ ? label_->spawned_ns : 0;
    }
    [[nodiscard]] nursery* owner() const noexcept { return nursery_; }
    /// For messages about the child.
    [[nodiscard]] task_label label() const noexcept { return label_of(label_.get()); }
    /// Moves the name out of a child that has ended.
    [[nodiscard]] owned<const task_name> take_label() noexcept { return std::move(label_); }

    /// The next running child, or null.
    [[nodiscard]] child_state_base* next_sibling() const noexcept {
        return list_node<child_state_base>::next;
    }

    /// Called once by each owner.
    void release() noexcept {
        if (--owners_ == 0) {
            destroy_state();
        }
    }

    /// The await that is notified when the child has started or ended, or null.
    [[nodiscard]] child_wait*& waiter() noexcept { return waiter_; }

    void abandoned(promise_base&) noexcept final {} // not in any context's list
    [[nodiscard]] promise_base* awaiting_root() const noexcept final;
    [[nodiscard]] promise_base* owning_root() const noexcept final;
    [[nodiscard]] promise_base* awaiting_task() const noexcept final;
    [[nodiscard]] const nursery* parent_nursery() const noexcept final { return nursery_; }

protected:
    explicit child_state_base(owned<const task_name> label)
        : task_owner(stop_.get_token(), false, true), label_(std::move(label)) {}
    ~child_state_base() = default;

    /// The coroutine has ended, and its outcome is stored.
    void end(std::exception_ptr error) noexcept;

private:
    friend class nursery;
    friend class child_cursor;
    friend class completion_queue;
    friend list_node;

    /// Makes the coroutine a root whose owner is this object.
    virtual std::pair<promise_base*, std::coroutine_handle<>> begin() noexcept = 0;
    [[nodiscard]] virtual promise_base& promise() const noexcept = 0;
    /// Destroys the suspended coroutine, and stores operation_canceled as its outcome.
    virtual void destroy_coroutine(event_loop& loop) noexcept = 0;
    virtual void destroy_state() noexcept = 0;

    [[nodiscard]] static queue_node*& previous_in_queue(queue_node& node) noexcept {
        return static_cast<child_state_base&>(node).previous_;
    }

    queue_node* previous_ = nullptr; // while it is queued
    nursery* nursery_ = nullptr;
    child_wait* waiter_ = nullptr;
    owned<const task_name> label_; // null: it has no name
    late<relayed_stop> outside_;   // forwards the nursery's stop
    unsigned char owners_ = 2;
    bool queued_ = true;
};

template <class T>
class child_state final : public child_state_base, public frame_allocated {
public:
    child_state(task<T>&& work, std::string_view name, const std::source_location& where)
        : child_state_base(make_task_name(name, where)), coroutine_(work.release()) {}

    T take() { return static_cast<T>(outcome_.take()); }
    [[nodiscard]] bool has_failed() const noexcept { return outcome_.has_error(); }
    [[nodiscard]] std::exception_ptr error() const noexcept { return outcome_.error(); }

private:
    std::pair<promise_base*, std::coroutine_handle<>> begin() noexcept override {
        coroutine_.promise().become_root(*this);
        return {&coroutine_.promise(), coroutine_};
    }

    [[nodiscard]] promise_base& promise() const noexcept override { return coroutine_.promise(); }

    void finished(promise_base&) noexcept override {
        std::exception_ptr error = coroutine_.promise().outcome.error();
        if constexpr (std::is_void_v<T> || std::is_reference_v<T>) {
            outcome_.move_from(coroutine_.promise().outcome);
        } else {
            try {
                outcome_.move_from(coroutine_.promise().outcome);
            } catch (...) {
                error = std::current_exception();
                outcome_.set_error(error);
            }
        }
        destroy_task(coil::detail::exchange(coroutine_, nullptr));
        end(std::move(error));
    }

    void destroy_coroutine(event_loop& loop) noexcept override {
        const auto coroutine = coil::detail::exchange(coroutine_, nullptr);
        if (has_started()) {
            loop.withdraw(coroutine.promise(), coroutine); // if it has not begun to run
        }
        destroy_tree(coroutine);
        outcome_.set_error(cancelled_child());
    }

    void destroy_state() noexcept override { delete this; }

    std::coroutine_handle<task_promise<T>> coroutine_;
    result<T> outcome_;
};

/// Any number of children of one context, of which at most `limit` run at a time; the others wait
/// in order. Derived classes decide what a failure means. A nursery is in the loop's list while it
/// has children.
class nursery : listed_children {
public:
    nursery(const nursery&) = delete;
    nursery& operator=(const nursery&) = delete;

    void cancel() noexcept { stop_.request_stop(); }
    [[nodiscard]] inplace_stop_token stop_token() const noexcept { return stop_.get_token(); }
    [[nodiscard]] std::size_t size() const noexcept { return running_ + queued_; }
    /// The number of children that have been queued so far.
    [[nodiscard]] std::uint64_t held_back() const noexcept { return held_back_; }
    [[nodiscard]] event_loop* loop() const noexcept { return loop_; }

    /// Starts a child in a later iteration of the loop, or queues it.
    void add(child_state_base& child) noexcept;
    /// Removes a child that is still queued: it never runs.
    void withdraw(child_state_base& child) noexcept;
    /// Destroys all children; queued ones never run.
    void destroy_children() noexcept;

    /// The nearest root above the await that joins the nursery; null if unknown, or if this is not
    /// the owner thread.
    [[nodiscard]] promise_base* awaiting_root() const noexcept;
    /// The same, but also null unless the nursery is known to be a local variable of the coroutine
    /// that joins it, or of the coroutine that awaits that one.
    [[nodiscard]] promise_base* owning_root() const noexcept;
    /// The task that joins the nursery, or null. Owner thread.
    [[nodiscard]] promise_base* awaiting_task() const noexcept final;

    /// Called when `awaiter`, which is in the frame of `coroutine`, is about to await a task that
    /// joins this nursery. Records the frame if the nursery is a local of it.
    void find_frame(std::coroutine_handle<> coroutine, const promise_base& promise,
                    const void* awaiter) noexcept {
        if (is_between(coroutine, awaiter)) {
            frame_ = &promise;
        }
    }

    class joiner;
    /// Terminates the program if a coroutine is already joining the nursery.
    void check_unjoined() const noexcept;

protected:
    explicit nursery(std::size_t limit) noexcept : limit_(limit) {}
    ~nursery() = default;

    [[nodiscard]] std::size_t& limit() noexcept { return limit_; }
    [[nodiscard]] inplace_stop_source& stop_source() noexcept { return stop_; }

    /// Called before the nursery is destroyed: resumes the joining coroutine, with `error` if there
    /// is one. Without a joining coroutine, reports `error`.
    void leave_joiner(std::exception_ptr error = nullptr, const task_label& child = {}) noexcept;

    /// Reports on stderr that children are destroyed before they have ended, unless that follows
    /// from a cancel(), an exception, a shutdown or the destruction of the coroutine. `how`: what
    /// the program did; `remedy`: what it should do instead.
    [[gnu::cold]] void report_unjoined(const char* how, const char* remedy) const noexcept;

    /// Called when a child has ended, with its exception or null. May retain the child.
    virtual void settled(child_state_base& child, std::exception_ptr error) noexcept {
        if (error) {
            failed(child, std::move(error));
        }
    }
    /// Resumes the joining coroutine, if there is one, although children are left.
    void wake_joiner() noexcept;
    /// Called when a child has ended with an exception.
    virtual void failed(child_state_base& child, std::exception_ptr error) noexcept = 0;

private:
    friend class child_state_base;

    /// Whether this is a local of `coroutine`, and will thus be destroyed with its frame: its
    /// address is between the start of the frame and an awaiter in the frame. Returns false if that
    /// is not certain; the destructor then destroys the children.
    [[nodiscard]] bool is_between(std::coroutine_handle<> coroutine,
                                  const void* awaiter) const noexcept;
    void bind_to(event_loop& loop) noexcept;
    /// Called when the number of children has decreased.
    void leave_list_if_empty() noexcept {
        if (size() == 0 && is_linked()) {
            static_cast<void>(first_child());
            unlink();
        }
    }
    /// The newest of the running children, or null. Ends visits whose cursor is in front of that
    /// child.
    [[nodiscard]] child_state_base* first_child() noexcept {
        while (children_ != nullptr && children_->is_cursor()) {
            children_->unlink();
        }
        return children_;
    }
    [[nodiscard]] std::size_t waiting_children() const noexcept final { return queued_; }
    [[nodiscard]] std::size_t running_children() const noexcept final { return running_; }
    void visit_children(child_visitor& visitor, owned<children_cursor>& place) final;
    void visit_oldest(child_visitor& visitor, owned<children_cursor>& place,
                      const children_cursor& end) final;
    /// Removes a running child from the list.
    void take_out(child_state_base& child) noexcept;
    void start(child_state_base& child) noexcept;
    void ended(child_state_base& child, std::exception_ptr error) noexcept;
    /// Destroys a child that is no longer in any list.
    void destroy(child_state_base& child) noexcept;
    void check_not_destroying() const noexcept;

    inplace_stop_source stop_;
    std::size_t limit_;
    std::size_t running_ = 0;
    std::size_t queued_ = 0;
    std::uint64_t held_back_ = 0;
    child_state_base* children_ = nullptr; // the running ones, and cursors
    child_state_base* oldest_ = nullptr;   // of the running ones
    linked_fifo<&child_state_base::previous_in_queue> waiting_;
    event_loop* loop_ = nullptr; // of the last add() or join; fixed while there are children
    joiner* joiner_ = nullptr;
    const promise_base* frame_ = nullptr; // the coroutine of which this is a local, if known
};

/// The common base of the awaiters of child_handle and spawn(), which the nursery resumes.
class child_wait : public awaiter_base {
public:
    void resume() noexcept { finish(); }

protected:
    child_wait() noexcept = default;
    ~child_wait() { leave_if_under_way(); }
};

/// Waits until no child is left. A stop of the awaiting task is forwarded to the children; the wait
/// continues.
class nursery::joiner : ready_node, stop_relay, nested_await {
public:
    enum class outcome : unsigned char { empty, result, expired, gone };

    explicit joiner(nursery& of) noexcept : nursery_(&of) {}
    joiner(joiner&& other) noexcept : nursery_(other.nursery_) {} // only before it is awaited
    joiner& operator=(joiner&&) = delete;

    [[nodiscard]] bool await_ready() const noexcept {
        nursery_->check_unjoined();
        return nursery_->size() == 0;
    }
    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        if constexpr (std::derived_from<P, promise_base>) {
            awaiting_ = &waiter.promise();
            if (nursery_->is_between(waiter, this) || is_below_frame()) {
                awaiting_->awaits(*this);
            }
        }
        begin(waiter, stop_token_of(waiter));
    }

protected:
    ~joiner();

    /// Called by await_resume(). Returns `empty` if no child is left, `result` after wake_joiner(),
    /// `expired` if the wait was given up, `gone` if the nursery was destroyed first, with or
    /// without an error.
    [[nodiscard]] outcome finish() noexcept;
    [[nodiscard]] std::exception_ptr take_error() noexcept {
        return coil::detail::exchange(error_, nullptr);
    }
    /// Ends the wait although children are left.
    void give_up_waiting() noexcept;
    [[nodiscard]] bool has_lost_nursery() const noexcept { return nursery_ == nullptr; }
    [[nodiscard]] event_loop& loop() const noexcept { return *nursery_->loop_; }

private:
    friend class nursery;

    void begin(std::coroutine_handle<> waiter, inplace_stop_token token) noexcept;
    void wake(outcome why) noexcept;
    void unwake() noexcept;
    void left_alone(std::exception_ptr error) noexcept;
    /// Whether the coroutine that awaits the joining one has the nursery in its frame.
    [[nodiscard]] bool is_below_frame() const noexcept {
        return nursery_->frame_ != nullptr && !awaiting_->is_root() &&
               awaiting_->parent == nursery_->frame_;
    }
    promise_base* next_below() noexcept final;
    void destroy_below(promise_base& child) noexcept final;
    void visit_below(child_visitor&) final {} // the nursery is in the loop's list

    nursery* nursery_; // null once the nursery was destroyed
    std::coroutine_handle<> waiter_;
    promise_base* awaiting_ = nullptr;  // null if it is not a task
    std::exception_ptr error_;          // passed to leave_joiner()
    event_loop* woken_on_ = nullptr;    // set while it is in the ready queue
    child_state_base* below_ = nullptr; // the child that next_below() returned
    outcome outcome_ = outcome::empty;
};

} // namespace coil::detail
