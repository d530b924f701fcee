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
    /// Of a root that is_guest: its frame is to be destroyed as soon as nothing of it runs.
    [[nodiscard]] virtual bool is_condemned() const noexcept { return false; }
    /// Of a root that is_guest: it is this loop's from now on, on whose thread this is called;
    /// null: it leaves the one where it is.
    virtual void moved_to(event_loop* /*loop*/) noexcept {}

    /// Whether whoever waits for the end of this root wants nothing but that. Any thread, while the
    /// root exists.
    [[nodiscard]] virtual bool is_unwanted() const noexcept { return token.stop_requested(); }
    /// The root lies at a context that does not run: those who wait for its result, and are not
    /// wanted any more themselves, are told that there will be none.
    virtual void refuse_unwanted() noexcept {}

    /// What the root, and through it every task below, is asked to stop by.
    const inplace_stop_token token;
    /// Whether a coroutine that ends well may destroy itself without asking: the quick way for the
    /// many that nobody waits for.
    const bool indifferent;
    /// Whether the root belongs to a coroutine of the same context, which destroys it: then it
    /// hangs in no context's list, and does not move to another.
    const bool bound;
    /// Whether a coroutine elsewhere waits for the end of this root, and its frame may refer to
    /// that one's: then it ends before the other can be destroyed.
    const bool is_guest;

protected:
    enum class kind : unsigned char { usual, bound, guest };

    constexpr root_observer(inplace_stop_token stop, bool is_indifferent,
                            bool is_bound = false) noexcept
        : root_observer(stop, is_indifferent, is_bound ? kind::bound : kind::usual) {}
    constexpr root_observer(inplace_stop_token stop, bool is_indifferent, kind k) noexcept
        : token(stop), indifferent(is_indifferent), bound(k == kind::bound),
          is_guest(k == kind::guest) {}
    ~root_observer() = default;
};

/// Below this await a task is asked to stop by something else than its root is. Lives in the await.
struct stop_detour {
    inplace_stop_token token;
    promise_base* root; // null: the tree's root is no task
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

    void become_root(root_observer& observer) noexcept { set_origin(&observer, is_observer); }

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

    promise_base* next_root;  // while it hangs in a root_list
    promise_base** root_link; // the pointer that points here

private:
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

/// Whether a root is not wanted any more, or one that waits for it, as far as that is known.
[[nodiscard]] inline bool is_unwanted(const promise_base* root) noexcept {
    while (root != nullptr && root->is_root()) {
        if (root->observer().is_unwanted()) {
            return true;
        }
        root = root->observer().awaiting_root();
    }
    return false;
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
            return transfer_to(promise.coroutine);
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
