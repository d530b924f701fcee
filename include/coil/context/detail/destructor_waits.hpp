#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/side_stacks.hpp>
#include <coil/core/detail/list_node.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

class nursery;
class promise_base;

/// The destructors on a loop's thread that wait for remote operations. While a destructor waits on
/// the thread's own stack, no coroutine of the loop runs, but other destructors do, on side stacks.
/// Owner thread, except where noted.
class destructor_waits {
public:
    /// Why a task is destroyed: a destructor that waits for it, or a request that a destructor has
    /// made or will make. Each has a cause of its own, except the outermost.
    class reason {
    public:
        reason() noexcept = default;
        reason(const reason&) = delete;
        reason& operator=(const reason&) = delete;

        /// Sets the cause. Called on the thread that makes the request. Requests that have this one
        /// as their cause are then caused by `cause` as well, even if they were made earlier.
        void because_of(const reason* cause) noexcept {
            outer_.store(cause, std::memory_order_release);
        }

        /// Whether it is a destructor that began to wait without a cause. Then a cause that it has
        /// now was found later (kill_requests::find_cause()).
        [[nodiscard]] bool began_without_cause() const noexcept { return began_without_cause_; }

    protected:
        reason(destructor_waits& at, const reason* cause) noexcept
            : at_(&at), on_side_stack_(at.aside_), began_without_cause_(cause == nullptr),
              outer_(cause) {}
        ~reason() = default;

        [[nodiscard]] const reason* outer() const noexcept {
            return outer_.load(std::memory_order_acquire);
        }

    private:
        friend class destructor_waits;

        // the waits of the loop on whose thread this destructor waits; null for a request
        destructor_waits* const at_ = nullptr;
        const bool on_side_stack_ = false;
        const bool began_without_cause_ = false;
        std::atomic<const reason*> outer_{nullptr};
    };

    /// Exists while a destructor requests the destruction of tasks, and waits for them. The
    /// destructors of these tasks request the destruction of further tasks, also on other loops.
    /// All of these tasks are below the frame of the destructor, and all of these requests record
    /// this scope as their cause.
    class scope : public reason {
    public:
        explicit scope(destructor_waits& all) noexcept
            : reason(all, all.cause_), all_(all),
              enclosing_(coil::detail::exchange(all.innermost_, this)),
              cause_before_(coil::detail::exchange(all.cause_, this)) {
            all.innermost_changes(enclosing_);
        }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;
        ~scope() {
            all_.innermost_ = enclosing_;
            all_.cause_ = cause_before_;
            all_.innermost_changes(enclosing_);
        }

    private:
        friend class destructor_waits;

        destructor_waits& all_;
        // the enclosing scope on this thread's stack, which ends later
        scope* const enclosing_;
        const reason* const cause_before_; // outer() may have been set later
    };

    /// The request to destroy a remote child, whether it has been made or not.
    class request final : public reason {};

    /// Exists while destructors run, or are about to, because of a request.
    class on_behalf_of {
    public:
        on_behalf_of(destructor_waits& all, const reason* cause) noexcept
            : all_(all), outer_(coil::detail::exchange(all.cause_, cause)) {}
        on_behalf_of(const on_behalf_of&) = delete;
        on_behalf_of& operator=(const on_behalf_of&) = delete;
        ~on_behalf_of() { all_.cause_ = outer_; }

    private:
        destructor_waits& all_;
        const reason* const outer_;
    };

    /// Exists while a remote child is being destroyed on this loop: because of the destructor that
    /// does it, or else because of the request that may follow.
    class destruction : public on_behalf_of {
    public:
        destruction(destructor_waits& all, const request& which) noexcept
            : on_behalf_of(all, all.cause_ != nullptr ? all.cause_ : &which) {}
    };

    /// Exists while a destructor waits for a remote operation that a task awaits. That task must
    /// not be destroyed meanwhile, although it may no longer own the await: it may wait in next()
    /// of a generator that another task owns and destroys.
    class use_of_task : list_node<use_of_task> {
    public:
        explicit use_of_task(const promise_base* task) noexcept : task_(task) { push_to(all); }
        use_of_task(const use_of_task&) = delete;
        use_of_task& operator=(const use_of_task&) = delete;
        ~use_of_task() { unlink(); }

        /// Whether a destructor on this thread waits for an operation that `task` awaits.
        [[nodiscard]] static bool exists(const promise_base& task) noexcept {
            const use_of_task* one = all;
            while (one != nullptr && one->task_ != &task) {
                one = one->next;
            }
            return one != nullptr;
        }

    private:
        friend list_node;

        constinit static inline thread_local use_of_task* all = nullptr;

        const promise_base* const task_;
    };

    /// Exists while the children of a nursery are being destroyed.
    class nursery_scope : list_node<nursery_scope> {
    public:
        nursery_scope(destructor_waits& all, const nursery& which) noexcept
            : which_(which),
              outermost_(all.cause_ == nullptr && all.innermost_ == nullptr && !all.aside_) {
            push_to(all.nurseries_);
        }
        nursery_scope(const nursery_scope&) = delete;
        nursery_scope& operator=(const nursery_scope&) = delete;
        ~nursery_scope() { unlink(); }

        [[nodiscard]] const nursery& which() const noexcept { return which_; }
        /// One whose destruction began earlier, or null.
        [[nodiscard]] const nursery_scope* earlier() const noexcept { return next; }
        /// Whether no destructor that waits on the thread's own stack encloses it.
        [[nodiscard]] bool is_outermost() const noexcept { return outermost_; }

    private:
        friend list_node;

        const nursery& which_;
        const bool outermost_;
    };

    destructor_waits() noexcept = default;
    destructor_waits(const destructor_waits&) = delete;
    destructor_waits& operator=(const destructor_waits&) = delete;

    /// Incremented when the first of the nested waits on the thread's own stack begins and when it
    /// ends: a task that has arrived in the current epoch, if a destructor waits, has not run.
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    /// Incremented when any wait begins and when it ends.
    [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

    // ---- side stacks

    /// side_stacks::run(). On the other stack no destructor waits yet, and nothing is the cause.
    template <class Function>
    void run_aside(Function f) noexcept {
        const own_state hosts(*this);
        aside_ = true; // also if there is no memory for another stack
        stacks_.run(f);
    }
    /// side_stacks::wait()
    template <class Predicate>
    void wait_aside(const Predicate& is_over) noexcept {
        const own_state own(*this);
        stacks_.wait(is_over);
    }
    /// side_stacks::resume()
    void resume_aside() noexcept {
        const own_state hosts(*this);
        stacks_.resume();
    }
    [[nodiscard]] bool is_aside() const noexcept { return stacks_.is_here(); }
    /// Whether a destructor waits on a side stack.
    [[nodiscard]] bool any_aside() const noexcept { return stacks_.any_waits(); }

    // ---- causes

    /// The innermost cause of the destruction in progress, or null. It exists until everything that
    /// was requested because of it has been destroyed.
    [[nodiscard]] const reason* cause() const noexcept { return cause_; }
    /// Whether the innermost cause is a destructor that waits on this loop's thread.
    [[nodiscard]] bool is_destructor_the_cause() const noexcept {
        return cause_ != nullptr && cause_->at_ == this;
    }
    /// Whether `cause`, or one of the causes above it, is a destructor on the own stack of this
    /// loop's thread. Then the requested task is below that destructor's frame in the tree of
    /// awaits, so none of its coroutines is active there. (The frame of a destructor on a side
    /// stack may be above the coroutine that is active.)
    [[nodiscard]] bool contain(const reason* cause) const noexcept {
        while (cause != nullptr && !is_on_own_stack(*cause)) {
            cause = cause->began_without_cause_ ? nullptr : cause->outer();
        }
        return cause != nullptr;
    }
    /// The same, also by causes that were found later. Two scopes whose children include each other
    /// have such causes, so the requested task may be active.
    [[nodiscard]] bool contain_by_any_cause(const reason* cause) const noexcept {
        return any_cause(cause,
                         [this](const reason& one) noexcept { return is_on_own_stack(one); });
    }
    /// Whether `cause`, or one of the causes above it, is a destructor on this loop's thread.
    [[nodiscard]] bool is_because_of_any(const reason* cause) const noexcept {
        return any_cause(cause, [this](const reason& one) noexcept { return one.at_ == this; });
    }
    /// Whether `cause`, or one of the causes above it, is `one`.
    [[nodiscard]] static bool is_because_of(const reason* cause, const reason& one) noexcept {
        return any_cause(cause, [&one](const reason& each) noexcept { return &each == &one; });
    }
    /// Calls `f` with the destructor_waits of each loop on which a destructor waits because of
    /// `cause`: `cause` itself, the causes above it, and the destructors further out on the stack
    /// of one of these, which cannot return earlier. Any thread, while the request is outstanding.
    template <class Function>
    static void visit_waiting(const reason* cause, Function f); // defined where it is used
    /// The nurseries whose destruction is in progress, the last to begin first.
    [[nodiscard]] const nursery_scope* nurseries() const noexcept { return nurseries_; }
    /// The nursery on the thread's own stack whose destruction began before that of all others, if
    /// no other destructor that waits encloses it. Otherwise null.
    [[nodiscard]] const nursery_scope* first_nursery_left() const noexcept {
        const nursery_scope* found = nullptr;
        for (const nursery_scope* one = nurseries_; one != nullptr; one = one->earlier()) {
            found = one->is_outermost() ? one : found;
        }
        return found;
    }
    /// The outermost destructor that waits on the current stack. Precondition: there is one.
    [[nodiscard]] scope& outermost() const noexcept {
        scope* found = innermost_;
        while (found->enclosing_ != nullptr) {
            found = found->enclosing_;
        }
        return *found;
    }

private:
    /// Exists while another stack runs.
    class own_state {
    public:
        explicit own_state(destructor_waits& all) noexcept
            : all_(all), cause_(coil::detail::exchange(all.cause_, nullptr)),
              innermost_(coil::detail::exchange(all.innermost_, nullptr)),
              aside_(coil::detail::exchange(all.aside_, false)) {}
        own_state(const own_state&) = delete;
        own_state& operator=(const own_state&) = delete;
        ~own_state() {
            all_.cause_ = cause_;
            all_.innermost_ = innermost_;
            all_.aside_ = aside_;
        }

    private:
        destructor_waits& all_;
        const reason* const cause_;
        scope* const innermost_;
        const bool aside_;
    };

    /// Whether `is_it` selects `cause` or one of the causes above it.
    template <class Predicate>
    [[nodiscard]] static bool any_cause(const reason* cause, Predicate is_it) noexcept {
        while (cause != nullptr && !is_it(*cause)) {
            cause = cause->outer();
        }
        return cause != nullptr;
    }

    [[nodiscard]] bool is_on_own_stack(const reason& one) const noexcept {
        return one.at_ == this && !one.on_side_stack_;
    }
    void innermost_changes(const scope* enclosing) noexcept {
        ++changes_;
        if (enclosing == nullptr && !aside_) {
            ++epoch_;
        }
    }

    // of the current stack
    const reason* cause_ = nullptr;
    scope* innermost_ = nullptr;
    bool aside_ = false;

    nursery_scope* nurseries_ = nullptr;
    std::uint64_t epoch_ = 0;
    std::uint64_t changes_ = 0;
    side_stacks stacks_;
};

} // namespace coil::detail
