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

/// Who is told when a top-level coroutine ends: its owner, which destroys the frame.
class root_observer {
public:
    /// The coroutine stands at its final suspension point; its result is in the promise.
    virtual void finished(promise_base& root) noexcept = 0;
    /// The context shuts down: the coroutine will not go on.
    virtual void abandoned(promise_base& root) noexcept = 0;
    /// Of a root that an await waits for: the nearest root above that await; null when that is not
    /// known. Any thread, while the root exists.
    [[nodiscard]] virtual promise_base* awaiting_root() const noexcept { return nullptr; }
    /// Whether a coroutine elsewhere waits for the end of this root, and its frame may refer to
    /// that one's: then it ends before the other can be destroyed.
    [[nodiscard]] virtual bool is_awaited_elsewhere() const noexcept { return false; }

    /// What the root, and through it every task below, is asked to stop by.
    const inplace_stop_token token;
    /// Whether a coroutine that ends well may destroy itself without asking: the quick way for the
    /// many that nobody waits for.
    const bool indifferent;
    /// Whether the root belongs to a coroutine of the same context, which destroys it: then it
    /// hangs in no context's list, and does not move to another.
    const bool bound;

protected:
    constexpr root_observer(inplace_stop_token stop, bool is_indifferent,
                            bool is_bound = false) noexcept
        : token(stop), indifferent(is_indifferent), bound(is_bound) {}
    ~root_observer() = default;
};

/// Below this await a task is asked to stop by something else than its root is. Lives in the await.
struct stop_detour {
    inplace_stop_token token;
    promise_base* root; // null: the tree's root is no task
};

/// An await that owns coroutines: the children of a combination. It says which of them are to be
/// destroyed before the frame that awaits them, one after the other, so that destroying a tree of
/// any depth takes no stack (guarantee G10).
class nested_await {
public:
    /// The next one, whose own tree is then destroyed first; null when none is left.
    virtual promise_base* next_below() noexcept = 0;
    /// Destroys the one that next_below() gave.
    virtual void destroy_below(promise_base& child) noexcept = 0;

protected:
    ~nested_await() = default;
};

/// What every task's promise holds whatever its result. A coroutine is either a child, awaited by
/// another coroutine (`coroutine` is that one), or a root, started on a context (it has an
/// observer, and hangs in the context's list of roots, so that a shutdown finds every frame).
class promise_base : public queue_node {
public:
    static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
    static void operator delete(void* frame, std::size_t bytes) noexcept {
        deallocate_frame(frame, bytes);
    }

    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }

    promise_base() noexcept {} // NOLINT(*-member-init)

    void become_root(root_observer& observer) noexcept {
        below_ = nothing;
        set_origin(&observer, is_observer);
    }

    /// Inherits from a parent that is a task.
    void become_child(std::coroutine_handle<> parent, promise_base& from) noexcept {
        coroutine = parent;
        origin_ = from.is_root() ? reinterpret_cast<std::uintptr_t>(&from) : from.origin_;
    }
    /// Below a coroutine of another kind, whose root nobody knows.
    void become_child(std::coroutine_handle<> parent, inplace_stop_token token) noexcept {
        coroutine = parent;
        set_origin(token.source_, is_source);
    }
    void become_child(std::coroutine_handle<> parent, const stop_detour& detour) noexcept {
        coroutine = parent;
        set_origin(&detour, is_detour);
    }

    // ---- the tree of frames
    // Each suspended task knows what it awaits and owns, so that a tree is destroyed from its
    // leaves upwards by a loop (core/frame_tree.hpp).

    /// A child begins that `above` awaits; null: a coroutine of another kind does.
    void begin_below(promise_base* above) noexcept {
        parent = above;
        below_ = nothing;
        if (above != nullptr) {
            above->below_ = reinterpret_cast<std::uintptr_t>(this);
        }
    }
    /// A child has ended: its parent goes on.
    void end_below() const noexcept {
        if (parent != nullptr) [[likely]] {
            parent->below_ = nothing;
        }
    }
    void awaits(nested_await& what) noexcept {
        below_ = reinterpret_cast<std::uintptr_t>(&what) | is_nested;
    }
    void awaits_nothing() noexcept { below_ = nothing; }

    /// Nobody has awaited or started it yet.
    [[nodiscard]] bool is_fresh() const noexcept { return below_ == fresh; }
    /// Whether coroutines are to be destroyed before this one.
    [[nodiscard]] bool has_below() const noexcept { return below_ > fresh; }
    /// Those of a combination; null when it is a task, or nothing.
    [[nodiscard]] nested_await* nested_below() const noexcept {
        return (below_ & is_nested) != 0 ? reinterpret_cast<nested_await*>(below_ & ~is_nested)
                                         : nullptr;
    }
    /// The task that it awaits, when it awaits one.
    [[nodiscard]] promise_base* task_below() const noexcept {
        return has_below() ? reinterpret_cast<promise_base*>(below_) : nullptr;
    }

    [[nodiscard]] bool is_root() const noexcept { return kind() == is_observer; }
    [[nodiscard]] root_observer& observer() const noexcept { return *as<root_observer>(); }

    /// The root of the tree of awaits that this one is in; null when it is no task.
    [[nodiscard]] promise_base* root() noexcept {
        switch (kind()) {
        case is_root_promise:
            return as<promise_base>();
        case is_observer:
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
            return as<promise_base>()->observer().token;
        case is_observer:
            return observer().token;
        case is_detour:
            return as<stop_detour>()->token;
        default:
            return inplace_stop_token(as<inplace_stop_source>());
        }
    }

    union {
        promise_base* next_root; // of a root that hangs in a list
        promise_base* parent;    // of a child: the task that awaits it, or null; and of a bound
                                 // root while the tree above it is being destroyed
    };
    union {
        promise_base** root_link;       // of a root in a list: the pointer that points here
        std::coroutine_handle<>* owner; // of any other task: what destroys the frame
    };

private:
    // What `below_` is when it is neither a task's promise nor, with the bit, a nested_await.
    static constexpr std::uintptr_t nothing = 0;
    static constexpr std::uintptr_t is_nested = 1;
    static constexpr std::uintptr_t fresh = 2;

    // What `origin_` points to, in its low bits. Unset before the coroutine becomes either.
    static constexpr std::uintptr_t is_root_promise = 0;
    static constexpr std::uintptr_t is_observer = 1; // of this one, which is a root
    static constexpr std::uintptr_t is_detour = 2;
    static constexpr std::uintptr_t is_source = 3; // which may be null
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

/// The root of the tree of awaits that a coroutine is in; null when it is of another kind.
template <class P>
[[nodiscard]] promise_base* nearest_root(std::coroutine_handle<P> coroutine) noexcept {
    if constexpr (std::derived_from<P, promise_base>) {
        return coroutine.promise().root();
    } else {
        return nullptr;
    }
}

/// Roots that one owner destroys if they do not end before.
class root_chain {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] promise_base* first() const noexcept { return first_; }

    void insert(promise_base& root) noexcept {
        root.next_root = first_;
        root.root_link = &first_;
        if (first_ != nullptr) {
            first_->root_link = &root.next_root;
        }
        first_ = &root;
    }

    /// Takes a root out of whatever chain it is in.
    static void remove(promise_base& root) noexcept {
        *root.root_link = root.next_root;
        if (root.next_root != nullptr) {
            root.next_root->root_link = root.root_link;
        }
    }

private:
    promise_base* first_ = nullptr;
};

/// A root that is on no context's thread is adrift: no list has it, and only its own end destroys
/// it.
[[nodiscard]] inline bool is_adrift(const promise_base& root) noexcept {
    return root.root_link == &root.next_root;
}
/// A root that hangs in no list yet.
inline void begin_adrift(promise_base& root) noexcept {
    root.next_root = nullptr;
    root.root_link = &root.next_root;
}

/// The roots of one context: its top-level tasks.
class root_list : root_chain {
public:
    using root_chain::empty;
    using root_chain::first;

    void insert(promise_base& root) noexcept {
        ++inserted_;
        root_chain::insert(root);
    }

    /// Into another chain and back: it stays one of this context's.
    void move_to(root_chain& other, promise_base& root) noexcept {
        root_chain::remove(root);
        other.insert(root);
    }
    void move_back(promise_base& root) noexcept {
        root_chain::remove(root);
        root_chain::insert(root);
    }

    /// Takes a root out of whatever list it is in.
    static void remove(promise_base& root) noexcept {
        ++removed_on_this_thread;
        root_chain::remove(root);
    }

    [[nodiscard]] std::uint64_t inserted() const noexcept { return inserted_; }
    /// Who takes a root out need not know the list. Whoever runs coroutines of one list attributes
    /// what is counted meanwhile to it, and hides it from those below it on the stack.
    static constinit inline thread_local std::uint64_t removed_on_this_thread = 0;

private:
    std::uint64_t inserted_ = 0;
};

class final_awaiter {
public:
    template <class P>
    explicit final_awaiter(P& promise) noexcept
        : ends_alone_(promise.is_root() && promise.observer().indifferent &&
                      !promise.outcome.has_error()) {
        if (ends_alone_) {
            root_list::remove(promise);
        }
    }

    /// A root that nobody waits for does not stop at its end: it runs off it, which destroys its
    /// frame, and back to the loop that resumed it.
    [[nodiscard]] bool await_ready() const noexcept { return ends_alone_; }

    template <std::derived_from<promise_base> P>
    transfer await_suspend(std::coroutine_handle<P> self) const noexcept {
        promise_base& promise = self.promise();
        if (!promise.is_root()) [[likely]] {
            promise.end_below();
            return transfer_to(self, promise.coroutine);
        }
        promise.observer().finished(promise); // the frame is gone after this
        return transfer_to_nobody();
    }

    void await_resume() const noexcept {}

private:
    bool ends_alone_;
};

/// A value, a reference, nothing, or the exception that came instead.
template <class T>
class result {
public:
    result() noexcept {} // NOLINT(*-member-init): state_ says what is there
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
        if (state_ == state::value) { // a local's destructor threw after co_return
            std::destroy_at(std::addressof(value_));
        }
        std::construct_at(&error_, std::move(error));
        state_ = state::error;
    }

    [[nodiscard]] bool has_error() const noexcept { return state_ == state::error; }
    [[nodiscard]] std::exception_ptr error() const noexcept {
        return state_ == state::error ? error_ : nullptr;
    }

    /// Moves the value out, or throws the exception. Once.
    T take() {
        if (state_ == state::error) [[unlikely]] {
            std::rethrow_exception(std::exchange(error_, nullptr));
        }
        return static_cast<T&&>(value_);
    }

    /// Takes over what `other` holds.
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
