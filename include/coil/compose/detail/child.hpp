#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/late.hpp>
#include <coil/base/std_construct.hpp>
#include <coil/compose/detail/child_group.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/context/operation.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/callback_coroutine.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/transfer.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// The promise of a child that is not a coroutine. It provides the stop token and the root to the
/// child's awaitable.
class child_promise final : public promise_base {};

/// Every child is the root of its own tree of awaits.
class child_base : public task_owner {
public:
    child_base(const child_base&) = delete;
    child_base& operator=(const child_base&) = delete;

    /// Not called: a bound root is in no context's list.
    void abandoned(promise_base&) noexcept final {}
    [[nodiscard]] promise_base* awaiting_root() const noexcept final {
        return group_.awaiting_root();
    }
    [[nodiscard]] promise_base* awaiting_task() const noexcept final {
        return group_.awaiting_task();
    }
    [[nodiscard]] std::int64_t deadline() const noexcept final {
        const std::int64_t outer = task_owner::deadline();
        return group_.deadline() < outer ? group_.deadline() : outer;
    }

protected:
    explicit child_base(child_group& group) noexcept
        : task_owner(group.token(), false, true), group_(group) {}
    ~child_base() = default;

    child_group& group_;
};

template <class A>
inline constexpr bool is_join_handle = false;
template <class T>
inline constexpr bool is_join_handle<join_handle<T>> = true;

/// Awaitables that do nothing before they are awaited. If the result is decided already, such a
/// child is not started.
template <class A>
inline constexpr bool is_idle_before_await = is_io_awaitable<A> || std::same_as<A, sleep_awaitable>;

/// The awaiter that a child stores. When a frame is destroyed, a combinator, with the stop source
/// of its children, is destroyed before the awaitables that were passed to it. An awaitable that is
/// its own awaiter would still be registered with that source, so the child moves it, or makes
/// another one (`awaiter_for_child()`). A named awaitable that cannot be copied is told to end its
/// wait (`end_as_child()`).
template <class Kept>
decltype(auto) child_awaiter(Kept&& from) {
    using found = awaiter_of<Kept&&>;
    if constexpr (requires { from.awaiter_for_child(); }) {
        return from.awaiter_for_child();
    } else if constexpr (std::is_rvalue_reference_v<found> &&
                         std::is_nothrow_move_constructible_v<std::remove_reference_t<found>>) {
        return std::remove_reference_t<found>(get_awaiter(std::forward<Kept>(from)));
    } else {
        return get_awaiter(std::forward<Kept>(from));
    }
}

/// Called before an await whose result may be discarded: an awaiter that needs memory for that
/// reserves it. Throws std::bad_alloc.
template <class Awaiter>
void expect_discard(Awaiter& awaiter) {
    if constexpr (requires { awaiter.expect_discard(); }) {
        awaiter.expect_discard();
    }
}

/// Discards the result of a finished `Kept`. A named object keeps its result. Otherwise, a result
/// that may be an exception is retrieved so that the exception is reported (guarantee G12).
template <class Kept, class Awaiter>
void discard_result(Awaiter& awaiter) noexcept {
    constexpr bool is_named = std::is_lvalue_reference_v<Kept>;
    if constexpr (is_join_handle<Kept> || (!deferred_result<Awaiter> && !is_named)) {
        try {
            static_cast<void>(awaiter.await_resume());
        } catch (...) {
            if constexpr (requires { awaiter.label(); }) {
                report_aside(std::current_exception(), awaiter.label());
            } else {
                report_aside(std::current_exception());
            }
        }
    } else if constexpr (requires { awaiter.discard(); }) {
        awaiter.discard();
    }
}

/// A child that awaits `Kept`. The awaiter is a member; it resumes this object as if it were a
/// coroutine.
///
/// A result that need not be retrieved to see whether it is an exception (deferred_result) stays in
/// the awaiter until the parent retrieves it. An awaiter whose result is never retrieved releases
/// it by itself: a descriptor is closed (guarantee G4), a stream's element stays in the stream. If
/// an awaiter has `discard()`, that is called. From other awaiters, a result that may be an
/// exception is retrieved so that it is reported (G12), unless they belong to a named object, which
/// keeps it.
template <class Kept>
class child final : public child_base, callback_coroutine<child_promise> {
    using coroutine = callback_coroutine<child_promise>;
    using awaitable_t = std::remove_reference_t<Kept>;
    using awaiter_t = decltype(child_awaiter(std::declval<Kept&&>())); // possibly a reference
    using awaiter_object = std::remove_reference_t<awaiter_t>;
    static constexpr bool is_lazy = deferred_result<awaiter_object>;
    static constexpr bool joins = is_join_handle<std::remove_cv_t<awaitable_t>>;

public:
    using result_type = stored_result<Kept&&>;

    child(child_group& group, awaitable_t& awaitable) noexcept
        : child_base(group), coroutine(&resume), awaitable_(awaitable) {}
    ~child() {
        if (state_ == state::fresh) {
            return;
        }
        canceller_.reset();
        if (state_ == state::over) {
            discard_result<Kept>(*awaiter_.operator->());
        }
        if constexpr (joins && !std::is_lvalue_reference_v<Kept>) {
            awaitable_.cancel(); // the last chance: the handle is about to be destroyed
        }
        awaiter_.destroy();
        if (state_ == state::started && passed_on_) [[unlikely]] {
            group_.loop().withdraw(this->promise(), passed_on_);
        }
    }

    void start() noexcept {
        if constexpr (is_idle_before_await<std::remove_cv_t<awaitable_t>>) {
            if (group_.is_decided()) {
                return;
            }
        }
        group_.enter();
        this->promise().become_root(*this);
        try {
            awaiter_.make(static_cast<Kept&&>(awaitable_));
            state_ = state::started;
            if constexpr (joins) {
                canceller_.emplace(this->token, stop_source_of(awaitable_));
            }
            expect_discard(*awaiter_.operator->());
            if (!awaiter_->await_ready() && suspend()) {
                return;
            }
        } catch (...) {
            fail(std::current_exception());
            return;
        }
        end();
    }

    /// The child's promise if its awaitable owns coroutines, otherwise null.
    [[nodiscard]] promise_base* below() noexcept {
        return state_ == state::started && this->promise().has_below() ? &this->promise() : nullptr;
    }
    void visit(child_visitor& visitor) {
        if (state_ == state::started) {
            visitor.visit(this->promise());
        }
    }
    /// No effect: the child has no frame.
    void destroy_frame() const noexcept {}

    /// Returns the result. Called once, after the child has ended, if the group uses its result.
    result_type take() {
        if constexpr (is_lazy) {
            state_ = state::taken;
            return static_cast<result_type>(awaiter_->await_resume());
        } else {
            return result_.take();
        }
    }

    void finished(promise_base&) noexcept override {} // this root runs no coroutine

private:
    enum class state : unsigned char { fresh, started, over, taken };

    /// Constructs the result of child_awaiter() in place.
    class made_awaiter {
    public:
        made_awaiter() noexcept {} // NOLINT(*-member-init)
        made_awaiter(const made_awaiter&) = delete;
        made_awaiter& operator=(const made_awaiter&) = delete;
        ~made_awaiter() {}

        void make(Kept&& from) {
            if constexpr (std::is_reference_v<awaiter_t>) {
                stored_ = std::addressof(from);
            } else {
                ::new (static_cast<void*>(&stored_))
                    awaiter_t(child_awaiter(static_cast<Kept&&>(from)));
            }
        }
        void destroy() noexcept {
            if constexpr (!std::is_reference_v<awaiter_t>) {
                std::destroy_at(&stored_);
            } else if constexpr (requires { stored_->end_as_child(); }) {
                stored_->end_as_child();
            }
        }
        awaiter_object* operator->() noexcept {
            if constexpr (std::is_reference_v<awaiter_t>) {
                return stored_;
            } else {
                return std::addressof(stored_);
            }
        }

    private:
        union {
            std::conditional_t<std::is_reference_v<awaiter_t>, awaiter_object*, awaiter_object>
                stored_;
        };
    };
    struct nothing {
        void reset() const noexcept {}
    };

    static void resume(coroutine& self) noexcept { static_cast<child&>(self).end(); }

    /// Returns false if the awaiter is ready.
    bool suspend() {
        using answer = decltype(awaiter_->await_suspend(this->handle()));
        if constexpr (std::same_as<answer, bool>) {
            return awaiter_->await_suspend(this->handle());
        } else {
            passed_on_ = suspend_by_hand(*awaiter_.operator->(), this->handle());
            if (passed_on_) {
                // Through the ready queue: a child that starts another coroutine must not nest
                // (G10).
                group_.loop().make_ready(this->promise(), passed_on_);
            }
            return true;
        }
    }

    void end() noexcept {
        state_ = state::over;
        canceller_.reset();
        if constexpr (knows_failure<awaiter_object>) {
            if (!group_.is_decided() && awaiter_->has_failed()) {
                try {
                    static_cast<void>(awaiter_->await_resume());
                } catch (...) {
                    fail(std::current_exception());
                    return;
                }
            }
        } else if constexpr (!is_lazy) {
            if (!group_.is_decided()) {
                state_ = state::taken;
                try {
                    if constexpr (std::is_void_v<result_type>) {
                        awaiter_->await_resume();
                        result_.set_value();
                    } else {
                        result_.set_value(awaiter_->await_resume());
                    }
                } catch (...) {
                    fail(std::current_exception());
                    return;
                }
            }
        }
        group_.leave(this, nullptr);
    }

    void fail(std::exception_ptr error) noexcept {
        if (state_ != state::fresh) {
            state_ = state::taken;
        }
        canceller_.reset();
        group_.leave(this, std::move(error));
    }

    awaitable_t& awaitable_;
    made_awaiter awaiter_;
    std::coroutine_handle<> passed_on_; // the coroutine that the awaiter starts
    [[no_unique_address]] std::conditional_t<is_lazy, nothing, result<result_type>> result_;
    /// Forwards a stop request to the task of a join_handle, whose await does not observe its
    /// token.
    [[no_unique_address]] std::conditional_t<joins, late<relayed_stop>, nothing> canceller_;
    state state_ = state::fresh;
};

/// A task is a root itself and needs no adapter.
template <class T>
class child<task<T>> final : public child_base {
public:
    using result_type = stored_result<task<T>&&>;

    child(child_group& group, task<T>& work) noexcept : child_base(group), work_(work) {}
    ~child() {
        if (coroutine_) [[unlikely]] {
            destroy_frame();
        }
    }

    /// The child's promise while it has a frame, otherwise null.
    [[nodiscard]] promise_base* below() noexcept {
        return coroutine_ ? &coroutine_.promise() : nullptr;
    }
    void visit(child_visitor& visitor) {
        if (coroutine_) {
            visitor.visit(coroutine_.promise());
        }
    }
    void destroy_frame() noexcept {
        check_same_loop(&group_.loop());
        const auto coroutine = coil::detail::exchange(coroutine_, nullptr);
        group_.loop().withdraw(coroutine.promise(), coroutine); // if it has not begun
        destroy_tree(coroutine);
    }

    void start() noexcept {
        coroutine_ = work_.release();
        coroutine_.promise().become_root(*this);
        group_.enter();
        group_.loop().make_ready(coroutine_.promise(), coroutine_);
    }

    result_type take() { return static_cast<result_type>(result_.take()); }

    void finished(promise_base&) noexcept override {
        result<T>& outcome = coroutine_.promise().outcome;
        std::exception_ptr error = outcome.error();
        if (!error && !group_.is_decided()) {
            try {
                result_.move_from(outcome);
            } catch (...) {
                error = std::current_exception();
            }
        }
        destroy_task(coil::detail::exchange(coroutine_, nullptr));
        group_.leave(this, std::move(error));
    }

private:
    task<T>& work_;
    std::coroutine_handle<task_promise<T>> coroutine_;
    result<T> result_;
};

} // namespace coil::detail
