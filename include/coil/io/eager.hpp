#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/queue.hpp>

#include <cerrno>
#include <coroutine>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coil {

template <detail::element Element>
class eager_operation;

/// Starts an operation immediately instead of when it is awaited; it runs while the coroutine
/// continues.
///
///     auto pending = eager(io::read(fd, buf, 0));
///     prepare_something_else();
///     int n = co_await pending;
///
/// Also accepts compositions of operations made by `&&` and timeout(). Must be called on a context.
/// Everything that the operation refers to (buffers, paths) must live until it is awaited or
/// destroyed.
template <ring_operation Op>
[[nodiscard("dropping an eager operation cancels it")]] auto
eager(Op op COIL_LIFETIMEBOUND) noexcept {
    return eager_operation<typename Op::element_type>(std::move(op));
}

/// Produces a readable compiler error.
template <detail::element Element>
void eager(io_awaitable<Element>& op)
    COIL_DELETE("an operation is started once: pass eager() a temporary, or std::move() it");
template <class Work>
    requires(!ring_operation<Work>)
void eager(Work&&) COIL_DELETE("eager starts an operation of the ring; spawn(f()) starts a task");

/// An operation in flight, see eager(). It cannot be moved because the kernel refers to its
/// address. To keep many, construct them in place:
///
///     std::list<eager_operation<operation::element_type>> reads;
///     reads.emplace_back(io::read(fd, buf, 0));
///
/// Threading: constructed, awaited and destroyed on one context's thread. Once complete it may be
/// destroyed on any thread, even after its context has been destroyed. Only one coroutine may await
/// it at a time. Cancellation: a stop request of the awaiting task cancels the operation; before it
/// is awaited, no stop token applies. cancel() may be called at any time. Destroying an operation
/// in flight cancels it and returns when the kernel has released its buffers; a descriptor that it
/// created is closed, and a coroutine awaiting it gets -ECANCELED. Destroying a coroutine that
/// awaits the operation does not affect the operation: another coroutine may await it.
template <detail::element Element>
class [[nodiscard("dropping an eager operation cancels it")]] eager_operation
    : detail::io_awaiter<Element> {
    using base = detail::io_awaiter<Element>;
    using result_type = decltype(std::declval<base&>().await_resume());

public:
    explicit eager_operation(io_awaitable<Element>&& op) noexcept
        : eager_operation(std::move(op).take_element()) {}
    explicit eager_operation(Element&& e) noexcept : base(std::move(e)) {
        this->launch(detail::required_loop(), {}, {});
    }
    ~eager_operation() {
        if (awaiter_ != nullptr) [[unlikely]] {
            awaiter* const left_alone = coil::detail::exchange(awaiter_, nullptr);
            const std::coroutine_handle<> waiter = this->node().coroutine;
            left_alone->go_on_without(this->leave() ? waiter : nullptr);
        }
    }

    class awaiter : detail::queue_node {
    public:
        explicit awaiter(eager_operation& op) noexcept : op_(&op) {}
        awaiter(const awaiter&) = delete;
        awaiter& operator=(const awaiter&) = delete;
        ~awaiter() {
            if (op_ == nullptr) {
                if (left_alone_ == by::queue && detail::current_loop != nullptr) {
                    detail::current_loop->withdraw(*this, this->coroutine);
                }
            } else if (op_->awaiter_ == this) [[unlikely]] {
                op_->awaiter_ = nullptr;
                op_->leave();
            }
        }

        [[nodiscard]] bool await_ready() noexcept {
            op_->check_awaited();
            op_->awaiter_ = this;
            return op_->is_complete();
        }
        template <class P>
        void await_suspend(std::coroutine_handle<P> waiter) noexcept {
            op_->template join<detail::io_op>(waiter, detail::stop_token_of(waiter));
        }
        result_type await_resume() noexcept {
            if (coil::detail::exchange(left_alone_, by::none) != by::none) [[unlikely]] {
                return detail::failed_with<result_type>(-ECANCELED);
            }
            op_->awaiter_ = nullptr;
            return coil::detail::exchange(op_, nullptr)->base::await_resume();
        }

        /// Replaces await_resume(): the result remains in the operation.
        void discard() noexcept {
            if (op_ != nullptr) {
                op_->awaiter_ = nullptr;
                op_->node().coroutine = nullptr; // the coroutine is no longer in the ready queue
                op_ = nullptr;
            }
            left_alone_ = by::none;
        }

    private:
        friend class eager_operation;

        /// How the waiter of a destroyed operation continues: `queue`: it is resumed through the
        /// ready queue; `itself`: it has already been resumed but has not yet fetched the result.
        enum class by : unsigned char { none, queue, itself };

        /// Called when the operation is destroyed. `waiter` is null if the waiter has already been
        /// resumed.
        void go_on_without(std::coroutine_handle<> waiter) noexcept {
            op_ = nullptr;
            left_alone_ = by::itself;
            if (waiter) {
                left_alone_ = by::queue;
                this->coroutine = waiter;
                detail::required_loop().make_ready(*this, waiter);
            }
        }

        eager_operation* op_; // null if the operation was destroyed or its result was fetched
        by left_alone_ = by::none;
    };

    /// Returns the result, once. Suspends only if it is not available yet.
    [[nodiscard]] awaiter operator co_await() noexcept {
        static_assert(detail::deferred_result<awaiter>);
        return awaiter(*this);
    }

    /// Whether the result is available.
    [[nodiscard]] bool is_complete() const noexcept { return !this->pending(); }

    /// Requests cancellation. The operation then completes with -ECANCELED, or with its real result
    /// if that came first; await it to learn which. No effect on a completed operation. Call it on
    /// the thread of its context.
    void cancel() noexcept {
        if (this->pending() && !this->loop().on_owner_thread()) [[unlikely]] {
            detail::end_with_misuse("an eager operation is cancelled on a thread other than its "
                                    "context's");
        }
        detail::io_op::cancel();
    }

    /// The user_data of its request, for io::poll_update and io::poll_remove.
    [[nodiscard]] std::uint64_t key() const noexcept { return this->first_key(); }
    /// For io::cancel.
    [[nodiscard]] detail::io_op& wait() noexcept { return *this; }

private:
    void check_awaited() const noexcept {
        if (awaiter_ != nullptr) [[unlikely]] {
            detail::end_with_misuse("two coroutines await one eager operation");
        }
        if (!this->under_way()) [[unlikely]] {
            detail::end_with_misuse("an eager operation is awaited after its result was taken");
        }
        if (this->pending() && !this->loop().on_owner_thread()) [[unlikely]] {
            detail::end_with_misuse(
                "an eager operation is awaited on a context other than its own");
        }
    }

    awaiter* awaiter_ = nullptr; // the awaiter that is suspended, or has not fetched the result
};

} // namespace coil
