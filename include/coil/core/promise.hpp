#pragma once

#include <coil/core/config.hpp>
#include <coil/core/frame_allocator.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/queue.hpp>
#include <coil/core/transfer.hpp>

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace coil::detail {

class promise_base;

/// The owner of a top-level coroutine. It is notified when the coroutine ends, and destroys the
/// frame.
class task_owner {
public:
    /// The coroutine is at its final suspension point; its result is in the promise.
    virtual void finished(promise_base& root) noexcept = 0;
    /// The context shuts down: the coroutine will not be resumed.
    virtual void abandoned(promise_base& root) noexcept = 0;
    /// For a root that an await waits for: the nearest root above that await, or null if unknown.
    /// May be called from any thread while the root exists.
    [[nodiscard]] virtual promise_base* awaiting_root() const noexcept { return nullptr; }
    /// For a root that is_remote_child: its frame must be destroyed as soon as nothing of it runs.
    [[nodiscard]] virtual bool is_kill_requested() const noexcept { return false; }
    /// For a root that is_remote_child: it belongs to this loop from now on, on whose thread this
    /// is called; null: it leaves its current loop.
    virtual void moved_to(event_loop* /*loop*/) noexcept {}

    /// Whether all that the waiter for this root still wants is its end. May be called from any
    /// thread while the root exists.
    [[nodiscard]] virtual bool is_unwanted() const noexcept { return token.stop_requested(); }
    /// The root is on a context that does not run. Waiters for its result that are themselves
    /// unwanted are notified that there will be none.
    virtual void refuse_unwanted() noexcept {}

    static constexpr std::int64_t no_deadline = INT64_MAX;
    /// The earliest limit around the root, in nanoseconds of steady_clock. May be called from any
    /// thread while the root exists.
    [[nodiscard]] virtual std::int64_t deadline() const noexcept;

    /// The stop token of the root and of all tasks below it.
    const inplace_stop_token token;
    /// Whether a coroutine that ends without an exception may destroy itself without calling the
    /// observer: the fast path of detached tasks.
    const bool indifferent;
    /// Whether the root belongs to a coroutine of the same context, which destroys it. A bound root
    /// is in no context's list and does not move to another context.
    const bool bound;
    /// Whether a coroutine on another context waits for the end of this root, whose frame may refer
    /// to that coroutine's. The root must then end before that coroutine can be destroyed.
    const bool is_remote_child;

protected:
    enum class kind : unsigned char { usual, bound, remote_child };

    constexpr task_owner(inplace_stop_token stop, bool is_indifferent,
                         bool is_bound = false) noexcept
        : task_owner(stop, is_indifferent, is_bound ? kind::bound : kind::usual) {}
    constexpr task_owner(inplace_stop_token stop, bool is_indifferent, kind k) noexcept
        : token(stop), indifferent(is_indifferent), bound(k == kind::bound),
          is_remote_child(k == kind::remote_child) {}
    ~task_owner() = default;
};

/// A stop token that replaces the root's for the tasks below an await. Lives in the awaiter.
struct stop_detour {
    inplace_stop_token token;
    promise_base* root; // null: the root of the tree is not a task
};

/// An await that owns coroutines: the children of a combinator. It enumerates the coroutines to
/// destroy before the frame that awaits them, so that destroying a tree of any depth does not grow
/// the stack (guarantee G10).
class nested_await {
public:
    /// Returns the next coroutine, whose own tree is then destroyed first, or null.
    virtual promise_base* next_below() noexcept = 0;
    /// Destroys the coroutine returned by next_below().
    virtual void destroy_below(promise_base& child) noexcept = 0;

protected:
    ~nested_await() = default;
};

/// The part of a task's promise that does not depend on the result. A coroutine is either a child,
/// awaited by another coroutine (`coroutine`), or a root, started on a context. A root has an
/// observer and is in the context's list of roots, so that a shutdown finds every frame.
class promise_base : public queue_node {
public:
    static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
    static void operator delete(void* frame, std::size_t bytes) noexcept {
        deallocate_frame(frame, bytes);
    }

    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }

    promise_base() noexcept {} // NOLINT(*-member-init)

    void become_root(task_owner& observer) noexcept {
        below_ = nothing;
        set_origin(&observer, is_owner);
    }

    /// Inherits the root and the token of a parent that is a task.
    void become_child(std::coroutine_handle<> parent, promise_base& from) noexcept {
        coroutine = parent;
        origin_ = from.is_root() ? reinterpret_cast<std::uintptr_t>(&from) : from.origin_;
    }
    /// The child of a coroutine of another type, whose root is unknown.
    void become_child(std::coroutine_handle<> parent, inplace_stop_token token) noexcept {
        coroutine = parent;
        set_origin(token.source_, is_source);
    }
    void become_child(std::coroutine_handle<> parent, const stop_detour& detour) noexcept {
        coroutine = parent;
        set_origin(&detour, is_detour);
    }

    // ---- the tree of frames
    // Each suspended task stores what it awaits and owns, so that a loop can destroy a tree from
    // its leaves upwards (core/frame_tree.hpp).

    /// `above` starts to await a child; null: a coroutine of another type does.
    void begin_below(promise_base* above) noexcept {
        parent = above;
        below_ = nothing;
        if (above != nullptr) {
            above->below_ = reinterpret_cast<std::uintptr_t>(this);
        }
    }
    /// A child has ended and its parent resumes.
    void end_below() const noexcept {
        if (parent != nullptr) [[likely]] {
            parent->below_ = nothing;
        }
    }
    void awaits(nested_await& what) noexcept {
        below_ = reinterpret_cast<std::uintptr_t>(&what) | is_nested;
    }
    void awaits_nothing() noexcept { below_ = nothing; }

    /// Neither awaited nor started yet.
    [[nodiscard]] bool is_fresh() const noexcept { return below_ == fresh; }
    /// Whether other coroutines must be destroyed before this one.
    [[nodiscard]] bool has_below() const noexcept { return below_ > fresh; }
    /// The children of a combinator, or null.
    [[nodiscard]] nested_await* nested_below() const noexcept {
        return (below_ & is_nested) != 0 ? reinterpret_cast<nested_await*>(below_ & ~is_nested)
                                         : nullptr;
    }
    /// The task that it awaits, or null.
    [[nodiscard]] promise_base* task_below() const noexcept {
        return has_below() ? reinterpret_cast<promise_base*>(below_) : nullptr;
    }

    [[nodiscard]] bool is_root() const noexcept { return kind() == is_owner; }
    [[nodiscard]] task_owner& owner() const noexcept { return *as<task_owner>(); }

    /// The root of this tree of awaits, or null if it is not a task.
    [[nodiscard]] promise_base* root() noexcept {
        switch (kind()) {
        case is_root_promise:
            return as<promise_base>();
        case is_owner:
            return this;
        case is_detour:
            return as<stop_detour>()->root;
        default:
            return nullptr;
        }
    }

    [[nodiscard]] inplace_stop_token stop_token() const noexcept {
        switch (kind()) {
        case is_root_promise:
            return as<promise_base>()->owner().token;
        case is_owner:
            return owner().token;
        case is_detour:
            return as<stop_detour>()->token;
        default:
            return inplace_stop_token(as<inplace_stop_source>());
        }
    }

    union {
        promise_base* next_task; // of a root that hangs in a list
        promise_base* parent;    // of a child: the task that awaits it, or null; and of a bound
                                 // root while the tree above it is being destroyed
    };
    union {
        promise_base** link;                    // of a root in a list: the pointer that points here
        std::coroutine_handle<>* owning_handle; // of any other task: what destroys the frame
    };

private:
    // The values of `below_` other than a task's promise and, with the bit set, a nested_await.
    static constexpr std::uintptr_t nothing = 0;
    static constexpr std::uintptr_t is_nested = 1;
    static constexpr std::uintptr_t fresh = 2;

    // The low bits of `origin_`: what it points to. Unset until the coroutine becomes a child or a
    // root.
    static constexpr std::uintptr_t is_root_promise = 0;
    static constexpr std::uintptr_t is_owner = 1; // the observer of this root
    static constexpr std::uintptr_t is_detour = 2;
    static constexpr std::uintptr_t is_source = 3; // may be null
    static constexpr std::uintptr_t kind_mask = 3;

    template <class T>
    void set_origin(const T* origin, std::uintptr_t kind) noexcept {
        static_assert(alignof(T) > kind_mask);
        origin_ = reinterpret_cast<std::uintptr_t>(origin) | kind;
    }
    [[nodiscard]] std::uintptr_t kind() const noexcept { return origin_ & kind_mask; }
    template <class T>
    [[nodiscard]] T* as() const noexcept {
        return reinterpret_cast<T*>(origin_ & ~kind_mask);
    }

    std::uintptr_t origin_;
    std::uintptr_t below_ = fresh;
};

/// Limits are inherited through awaits whose root is known.
inline std::int64_t task_owner::deadline() const noexcept {
    promise_base* const above = awaiting_root();
    return above != nullptr && above->is_root() ? above->owner().deadline() : no_deadline;
}

/// The root of the tree of awaits of a coroutine, or null for a coroutine of another type.
template <class P>
[[nodiscard]] promise_base* nearest_root(std::coroutine_handle<P> coroutine) noexcept {
    if constexpr (std::derived_from<P, promise_base>) {
        return coroutine.promise().root();
    } else {
        return nullptr;
    }
}

/// Whether a root, or a root that waits for it, is no longer wanted, as far as known.
[[nodiscard]] inline bool is_unwanted(const promise_base* root) noexcept {
    while (root != nullptr && root->is_root()) {
        if (root->owner().is_unwanted()) {
            return true;
        }
        root = root->owner().awaiting_root();
    }
    return false;
}

/// Roots whose owner destroys those that have not ended.
class task_chain {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] promise_base* first() const noexcept { return first_; }

    void insert(promise_base& root) noexcept {
        root.next_task = first_;
        root.link = &first_;
        if (first_ != nullptr) {
            first_->link = &root.next_task;
        }
        first_ = &root;
    }

    /// Removes a root from the chain it is in.
    static void remove(promise_base& root) noexcept {
        *root.link = root.next_task;
        if (root.next_task != nullptr) {
            root.next_task->link = root.link;
        }
    }

private:
    promise_base* first_ = nullptr;
};

/// A root that is on no context's thread is in no list; it is destroyed only when it ends.
[[nodiscard]] inline bool is_unowned(const promise_base& root) noexcept {
    return root.link == &root.next_task;
}
/// Initialises a root that is in no list yet.
inline void begin_unowned(promise_base& root) noexcept {
    root.next_task = nullptr;
    root.link = &root.next_task;
}

/// The roots of one context: its top-level tasks.
class task_list : task_chain {
public:
    using task_chain::empty;
    using task_chain::first;

    void insert(promise_base& root) noexcept {
        ++inserted_;
        task_chain::insert(root);
    }

    /// Moves a root to another chain or back. It remains a root of this context.
    void move_to(task_chain& other, promise_base& root) noexcept {
        task_chain::remove(root);
        other.insert(root);
    }
    void move_back(promise_base& root) noexcept {
        task_chain::remove(root);
        task_chain::insert(root);
    }

    /// Removes a root from the list it is in.
    static void remove(promise_base& root) noexcept {
        ++removed_on_this_thread;
        task_chain::remove(root);
    }

    [[nodiscard]] std::uint64_t inserted() const noexcept { return inserted_; }
    /// Counts removals, which do not know the list. A loop attributes what is counted while it runs
    /// coroutines to its own list, and hides it from loops below it on the stack.
    static constinit inline thread_local std::uint64_t removed_on_this_thread = 0;

private:
    std::uint64_t inserted_ = 0;
};

class final_awaiter {
public:
    template <class P>
    explicit final_awaiter(P& promise) noexcept
        : ends_alone_(promise.is_root() && promise.owner().indifferent &&
                      !promise.outcome.has_error()) {
        if (ends_alone_) {
            task_list::remove(promise);
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

/// A value, a reference, nothing, or an exception.
template <class T>
class result {
public:
    result() noexcept {} // state_ says which member is active
    result(const result&) = delete;
    result& operator=(const result&) = delete;
    ~result() {
        if (state_ == state::value) {
            std::destroy_at(std::addressof(value_));
        } else if (state_ == state::error) {
            std::destroy_at(&error_);
        }
    }

    template <class... Args>
    void set_value(Args&&... args) {
        std::construct_at(std::addressof(value_), std::forward<Args>(args)...);
        state_ = state::value;
    }
    void set_error(std::exception_ptr error) noexcept {
        if (state_ == state::value) { // the destructor of a local threw after co_return
            std::destroy_at(std::addressof(value_));
        }
        std::construct_at(&error_, std::move(error));
        state_ = state::error;
    }

    [[nodiscard]] bool has_error() const noexcept { return state_ == state::error; }
    [[nodiscard]] std::exception_ptr error() const noexcept {
        return state_ == state::error ? error_ : nullptr;
    }

    /// Moves the value out or rethrows the exception. May be called once.
    T take() {
        if (state_ == state::error) [[unlikely]] {
            std::rethrow_exception(std::exchange(error_, nullptr));
        }
        return static_cast<T&&>(value_);
    }

    /// Takes over the contents of `other`.
    void move_from(result& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
        if (other.state_ == state::error) {
            set_error(std::exchange(other.error_, nullptr));
        } else if (other.state_ == state::value) {
            set_value(std::move(other.value_));
        }
    }

private:
    enum class state : unsigned char { none, value, error };
    union {
        T value_;
        std::exception_ptr error_;
    };
    state state_ = state::none;
};

template <class T>
class result<T&> : public result<T*> {
public:
    void set_value(T& value) { result<T*>::set_value(std::addressof(value)); }
    T& take() { return *result<T*>::take(); }
};

template <>
class result<void> {
public:
    void set_value() noexcept {}
    void set_error(std::exception_ptr error) noexcept { error_ = std::move(error); }
    [[nodiscard]] bool has_error() const noexcept { return error_ != nullptr; }
    [[nodiscard]] std::exception_ptr error() const noexcept { return error_; }
    void take() {
        if (error_) [[unlikely]] {
            std::rethrow_exception(std::exchange(error_, nullptr));
        }
    }
    void move_from(result& other) noexcept { error_ = std::exchange(other.error_, nullptr); }

private:
    std::exception_ptr error_;
};

} // namespace coil::detail
