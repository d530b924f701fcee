#pragma once

#include <coil/base/exchange.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

class nursery;
class promise_base;

/// The destructors on a loop's thread that wait for remote operations. While a destructor waits, no
/// coroutine of the loop runs, but other destructors do. Owner thread, except where noted.
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

    protected:
        reason(destructor_waits& at, const reason* cause) noexcept : at_(&at), outer_(cause) {}
        ~reason() = default;

        [[nodiscard]] const reason* outer() const noexcept {
            return outer_.load(std::memory_order_acquire);
        }

    private:
        friend class destructor_waits;

        // the waits of the loop on whose thread this destructor waits; null for a request
        destructor_waits* const at_ = nullptr;
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
              enclosing_(coil::detail::exchange(all.innermost_, this)) {
            all.cause_ = this;
            ++all.epoch_;
        }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;
        ~scope() {
            all_.innermost_ = enclosing_;
            all_.cause_ = outer();
            ++all_.epoch_;
        }

    private:
        friend class destructor_waits;

        destructor_waits& all_;
        // the enclosing scope on this thread's stack, which ends later
        const scope* const enclosing_;
    };

    /// The request to destroy a remote child, whether it has been made or not.
    class request final : public reason {
    public:
        /// Numbers the request. Called when the await of the child begins: the awaits above it have
        /// begun before, and those below it begin later.
        void begin() noexcept;
        [[nodiscard]] bool is_younger_than(const request& other) const noexcept {
            return number_ > other.number_;
        }

    private:
        friend class destructor_waits;

        std::uint64_t number_ = 0; // later ones have greater numbers
    };

    /// Exists while a remote child is being destroyed on this loop.
    class destruction {
    public:
        destruction(destructor_waits& all, const request& which) noexcept
            : all_(all), outer_(all.cause_), outer_youngest_(all.youngest_) {
            if (all.cause_ == nullptr) {
                all.cause_ = &which;
            }
            if (all.youngest_ < which.number_) {
                all.youngest_ = which.number_;
            }
        }
        destruction(const destruction&) = delete;
        destruction& operator=(const destruction&) = delete;
        ~destruction() {
            all_.cause_ = outer_;
            all_.youngest_ = outer_youngest_;
        }

    private:
        destructor_waits& all_;
        const reason* const outer_;
        const std::uint64_t outer_youngest_;
    };

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

    /// Exists while a destructor waits for a remote operation that a task awaits. That task must
    /// not be destroyed meanwhile, although it may no longer own the await: it may wait in next()
    /// of a generator that another task owns and destroys.
    class use_of_task {
    public:
        explicit use_of_task(const promise_base* task) noexcept
            : task_(task), outer_(coil::detail::exchange(innermost, this)) {}
        use_of_task(const use_of_task&) = delete;
        use_of_task& operator=(const use_of_task&) = delete;
        ~use_of_task() { innermost = outer_; }

        /// Whether a destructor on this thread waits for an operation that `task` awaits.
        [[nodiscard]] static bool exists(const promise_base& task) noexcept {
            const use_of_task* one = innermost;
            while (one != nullptr && one->task_ != &task) {
                one = one->outer_;
            }
            return one != nullptr;
        }

    private:
        constinit static inline thread_local const use_of_task* innermost = nullptr;

        const promise_base* const task_;
        const use_of_task* const outer_;
    };

    /// Exists while the children of a nursery are being destroyed.
    class nursery_scope {
    public:
        nursery_scope(destructor_waits& all, const nursery& which) noexcept
            : all_(all), which_(which), outer_(coil::detail::exchange(all.nurseries_, this)) {}
        nursery_scope(const nursery_scope&) = delete;
        nursery_scope& operator=(const nursery_scope&) = delete;
        ~nursery_scope() { all_.nurseries_ = outer_; }

        [[nodiscard]] const nursery& which() const noexcept { return which_; }
        /// The nursery whose destruction was in progress when this one's began, or null.
        [[nodiscard]] const nursery_scope* outer() const noexcept { return outer_; }

    private:
        destructor_waits& all_;
        const nursery& which_;
        const nursery_scope* const outer_;
    };

    destructor_waits() noexcept = default;
    destructor_waits(const destructor_waits&) = delete;
    destructor_waits& operator=(const destructor_waits&) = delete;

    /// Incremented when a wait begins and when it ends: a task that has arrived in the current
    /// epoch has not run.
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

    /// The innermost cause of the destruction in progress, or null. It exists until everything that
    /// was requested because of it has been destroyed.
    [[nodiscard]] const reason* cause() const noexcept { return cause_; }
    /// Whether the innermost cause is a destructor that waits on this loop's thread.
    [[nodiscard]] bool is_destructor_the_cause() const noexcept {
        return cause_ != nullptr && cause_->at_ == this;
    }
    /// Whether `cause`, or one of the causes above it, is a destructor on this loop's thread. Then
    /// the requested task is below that destructor's frame in the tree of awaits, so none of its
    /// coroutines is active on this stack.
    [[nodiscard]] bool contain(const reason* cause) const noexcept {
        while (cause != nullptr && cause->at_ != this) {
            cause = cause->outer();
        }
        return cause != nullptr;
    }
    /// Whether this remote child is younger than all that are being destroyed on this loop. Then it
    /// is not above any of them, because a child is younger than those above it.
    [[nodiscard]] bool destroy_only_older_than(const request& one) const noexcept {
        return youngest_ < one.number_;
    }
    /// Whether `cause`, or one of the causes above it, is `one`.
    [[nodiscard]] static bool is_because_of(const reason* cause, const reason& one) noexcept {
        while (cause != nullptr && cause != &one) {
            cause = cause->outer();
        }
        return cause != nullptr;
    }
    /// Calls `f` with the destructor_waits of each loop on which a destructor waits because of
    /// `cause`: `cause` itself, the causes above it, and the destructors further out on the stack
    /// of one of these, which cannot return earlier. Any thread, while the request is outstanding.
    template <class Function>
    static void visit_waiting(const reason* cause, Function f); // defined where it is used
    /// The nurseries whose destruction is in progress, the innermost first.
    [[nodiscard]] const nursery_scope* nurseries() const noexcept { return nurseries_; }

private:
    const reason* cause_ = nullptr;
    const scope* innermost_ = nullptr;
    const nursery_scope* nurseries_ = nullptr;
    std::uint64_t epoch_ = 0;
    std::uint64_t youngest_ = 0; // of the remote children that are being destroyed
};

} // namespace coil::detail
