#pragma once

#include <coil/core/config.hpp>
#include <coil/core/detail/await_count.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/core/detail/task_owner.hpp>
#include <coil/core/detail/task_state.hpp>
#include <coil/core/inplace_stop_token.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

struct no_environment {};

/// A query, such as std::get_stop_token, that asks an environment for its stop token. Recognised by
/// what it returns for an environment without one: a token that can never be stopped.
template <class Query>
concept asks_for_stop_token = requires(const Query& query, const no_environment& env) {
    { query(env).stop_possible() } -> std::convertible_to<bool>;
    { query(env).stop_requested() } -> std::convertible_to<bool>;
};

/// The environment of a task, as std::execution defines it: coroutines of other types that a task
/// awaits find its stop token there.
class task_environment {
public:
    explicit task_environment(inplace_stop_token token) noexcept : token_(token) {}

    [[nodiscard]] inplace_stop_token get_stop_token() const noexcept { return token_; }
    template <asks_for_stop_token Query>
    [[nodiscard]] inplace_stop_token query(const Query&) const noexcept {
        return token_;
    }

private:
    inplace_stop_token token_;
};

/// A stop token that replaces the root's for the tasks below an await. Lives in the awaiter.
struct stop_detour {
    inplace_stop_token token;
    promise_base* root; // null: the root of the tree is not a task
};

/// Receives the roots that an await or a scope waits for, when the tasks of a context are listed.
class child_visitor {
public:
    virtual void visit(promise_base& child) = 0;
    /// Whether the visit ends before the next child.
    [[nodiscard]] bool is_full() const noexcept { return is_full_; }

protected:
    ~child_visitor() = default;

    bool is_full_ = false;
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
    /// Passes every child that has not ended to the visitor, until it is full; changes nothing.
    virtual void visit_below(child_visitor& visitor) = 0;

protected:
    ~nested_await() = default;
};

/// The part of a task's promise that does not depend on the result. A coroutine is either a child,
/// awaited by another coroutine (`coroutine`), or a root, which has an owner. A root is bound to a
/// coroutine (a child of a combinator) or is a top-level task; a top-level task on a context is in
/// the context's list, so that a shutdown finds every frame.
class promise_base : public queue_node {
public:
    static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
    static void operator delete(void* frame, std::size_t bytes) noexcept {
        deallocate_frame(frame, bytes);
    }

    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }

    promise_base() noexcept {} // NOLINT(*-member-init)

    void become_root(task_owner& owner) noexcept {
        link = task_link(task_state::none);
        set_origin(&owner, is_owner);
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
    // its leaves upwards (core/detail/frame_tree.hpp).

    /// Called on a child when `above` starts to await it; null: the awaiting coroutine is not a
    /// task.
    void begin_below(promise_base* above) noexcept {
        count_await();
        parent = above;
        if (above != nullptr) {
            above->below_ = reinterpret_cast<std::uintptr_t>(this);
        }
    }
    /// Called on a child that has ended, before its parent resumes.
    void end_below() const noexcept {
        if (parent != nullptr) {
            parent->below_ = nothing;
        }
    }
    /// The same for a child for which is_plain_child() is true.
    void end_below_task() const noexcept { parent->below_ = nothing; }
    void awaits(nested_await& what) noexcept {
        below_ = reinterpret_cast<std::uintptr_t>(&what) | is_nested;
    }
    void awaits_nothing() noexcept { below_ = nothing; }

    /// Neither awaited nor started yet.
    [[nodiscard]] bool is_fresh() const noexcept { return origin_ == no_origin; }
    /// Whether other coroutines must be destroyed before this one.
    [[nodiscard]] bool has_below() const noexcept { return below_ != nothing; }
    /// The children of a combinator, or null.
    [[nodiscard]] nested_await* nested_below() const noexcept {
        return (below_ & is_nested) != 0 ? reinterpret_cast<nested_await*>(below_ & ~is_nested)
                                         : nullptr;
    }
    /// The task that it awaits, or null.
    [[nodiscard]] promise_base* task_below() const noexcept {
        return has_below() ? reinterpret_cast<promise_base*>(below_) : nullptr;
    }

    [[nodiscard]] bool is_root() const noexcept { return (origin_ & is_owner) != 0; }
    /// Whether it is awaited by a task, its `parent`, and inherits that task's root and token.
    [[nodiscard]] bool is_plain_child() const noexcept { return kind() == is_root_promise; }
    /// Precondition: is_root().
    [[nodiscard]] task_owner& owner() const noexcept {
        return *reinterpret_cast<task_owner*>(origin_ - is_owner); // the compiler folds this offset
    }

    /// The root of this tree of awaits, or null if it is not a task.
    [[nodiscard]] promise_base* root() noexcept {
        // comparisons, because a jump table is too slow for an await that completes immediately
        if (is_root()) {
            return this;
        }
        if (kind() == is_root_promise) [[likely]] {
            return reinterpret_cast<promise_base*>(origin_);
        }
        return kind() == is_detour ? as<stop_detour>()->root : nullptr;
    }

    [[nodiscard]] inplace_stop_token stop_token() const noexcept {
        if (is_root()) {
            return owner().token;
        }
        if (kind() == is_root_promise) [[likely]] {
            return reinterpret_cast<promise_base*>(origin_)->owner().token;
        }
        return kind() == is_detour ? as<stop_detour>()->token
                                   : inplace_stop_token(as<inplace_stop_source>());
    }

    [[nodiscard]] task_environment get_env() const noexcept {
        return task_environment(stop_token());
    }

    union {
        promise_base* next_task; // of a top-level task in a list
        promise_base* parent;    // of a child: the task that awaits it, or null; and of a bound
                                 // root while the tree above it is being destroyed
    };
    union {
        task_link link;                         // of a top-level task: its state
        std::coroutine_handle<>* owning_handle; // of an awaited task: the owner of the frame
    };

private:
    friend class running_task;

    // `below_` is `nothing`, or points to a task's promise, or with the bit is_nested to a
    // nested_await.
    static constexpr std::uintptr_t nothing = 0;
    static constexpr std::uintptr_t is_nested = 1;

    // The low bits of `origin_`: what it points to. One bit each, because every await tests whether
    // its parent is a root, and whether the child that ends is a plain one.
    static constexpr std::uintptr_t is_root_promise = 0;
    static constexpr std::uintptr_t is_owner = 1; // the owner of this root
    static constexpr std::uintptr_t is_detour = 2;
    static constexpr std::uintptr_t is_source = 4; // may be null
    static constexpr std::uintptr_t kind_mask = 7;
    static constexpr std::uintptr_t no_origin = 0; // neither a child nor a root yet

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

    std::uintptr_t origin_ = no_origin;
    std::uintptr_t below_ = nothing;
};

/// A time limit is inherited through awaits whose root is known.
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

/// Whether the result of a root, or of a root that waits for it, is no longer wanted, as far as
/// known.
[[nodiscard]] inline bool is_unwanted(const promise_base* root) noexcept {
    while (root != nullptr && root->is_root()) {
        if (root->owner().is_unwanted()) {
            return true;
        }
        root = root->owner().awaiting_root();
    }
    return false;
}

} // namespace coil::detail
