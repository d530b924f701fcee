#pragma once

#include <coil/context/event_loop.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/queue.hpp>

#include <cerrno>
#include <coroutine>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coil {

/// An operation that is under way, see eager(). It lives where it was made: it cannot be moved,
/// because the kernel knows it by its address. To keep many, make them where they stay:
///
///     std::list<eager_operation<operation::element_type>> reads;
///     reads.emplace_back(io::read(fd, buf, 0));
///
/// Threading: it is made, awaited and destroyed on one context's thread; once it is complete it may
/// be destroyed anywhere, also after its context. One coroutine at a time awaits it.
/// Cancellation: when the awaiting task is asked to stop the operation is cancelled; before it is
/// awaited nobody's stop token concerns it. cancel() asks for it at any time. Destroying one that
/// is under way cancels it and returns when the kernel has let go of its buffers; what it made (a
/// descriptor) is closed, and a coroutine that awaits it gets -ECANCELED. A coroutine that is
/// destroyed while it awaits leaves the operation as it is: another may await it.
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
            awaiter* const left_alone = std::exchange(awaiter_, nullptr);
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
            op_->template join<detail::io_wait>(waiter, detail::stop_token_of(waiter));
        }
        result_type await_resume() noexcept {
            if (std::exchange(left_alone_, by::nobody) != by::nobody) [[unlikely]] {
                return result_type(-ECANCELED);
            }
            op_->awaiter_ = nullptr;
            return std::exchange(op_, nullptr)->base::await_resume();
        }

        /// Instead of await_resume(): the result stays in the operation.
        void discard() noexcept {
            if (op_ != nullptr) {
                op_->awaiter_ = nullptr;
                op_->node().coroutine = nullptr; // nobody is in the ready queue any more
                op_ = nullptr;
            }
            left_alone_ = by::nobody;
        }

    private:
        friend class eager_operation;

        /// Who resumes the waiter of an operation that was destroyed: the ready queue, or nobody,
        /// because it went on before and has not asked for the result.
        enum class by : unsigned char { nobody, queue, itself };

        /// The operation is being destroyed. No waiter: it went on already.
        void go_on_without(std::coroutine_handle<> waiter) noexcept {
            op_ = nullptr;
            left_alone_ = by::itself;
            if (waiter) {
                left_alone_ = by::queue;
                this->coroutine = waiter;
                detail::required_loop().make_ready(*this, waiter);
            }
        }

        eager_operation* op_; // null when the operation was destroyed, or has given its result
        by left_alone_ = by::nobody;
    };

    /// The result, once. Suspends only when it is not there yet.
    [[nodiscard]] awaiter operator co_await() noexcept {
        static_assert(detail::asked_late<awaiter>);
        return awaiter(*this);
    }

    /// Whether the result is there.
    [[nodiscard]] bool is_complete() const noexcept { return !this->pending(); }

    /// Asks the kernel to give up. The operation then ends with -ECANCELED, or with its real result
    /// if that came first: await it to learn which. Nothing happens when it is complete.
    /// On its own context's thread.
    void cancel() noexcept {
        if (this->pending() && !this->loop().on_owner_thread()) [[unlikely]] {
            detail::end_with_misuse("an eager operation is cancelled on another thread than its "
                                    "context's");
        }
        detail::io_wait::cancel();
    }

    /// For io::poll_update and io::poll_remove: what the kernel knows it by.
    [[nodiscard]] std::uint64_t key() const noexcept { return this->first_key(); }
    /// For io::cancel.
    [[nodiscard]] detail::io_wait& wait() noexcept { return *this; }

private:
    void check_awaited() const noexcept {
        if (awaiter_ != nullptr) [[unlikely]] {
            detail::end_with_misuse("two coroutines await one eager operation");
        }
        if (!this->under_way()) [[unlikely]] {
            detail::end_with_misuse("an eager operation is awaited after it has given its result");
        }
        if (this->pending() && !this->loop().on_owner_thread()) [[unlikely]] {
            detail::end_with_misuse(
                "an eager operation is awaited on another context than its own");
        }
    }

    awaiter* awaiter_ = nullptr; // the one that waits for it, or has not taken its result
};

/// Starts an operation now instead of when it is awaited; it runs while the coroutine goes on.
///
///     auto pending = eager(io::read(fd, buf, 0));
///     prepare_something_else();
///     int n = co_await pending;
///
/// Works for everything that `&&` and timeout() make of operations, too. Only on a context. What
/// the operation refers to (buffers, paths) must live until it is awaited or destroyed.
template <ring_operation Op>
[[nodiscard("dropping an eager operation cancels it")]] auto eager(Op&& op) noexcept {
    static_assert(!std::is_lvalue_reference_v<Op>,
                  "an operation is started once: give eager() a temporary, or std::move() it");
    using element = typename std::remove_cvref_t<Op>::element_type;
    return eager_operation<element>(std::forward<Op>(op));
}

} // namespace coil
