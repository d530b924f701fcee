#pragma once

#include <cstdint>
#include <utility>

namespace coil::detail {

/// The destructors on a loop's thread that wait for remote operations. While a destructor waits, no
/// coroutine of the loop runs, but other destructors do. Owner thread, except where noted.
class destructor_waits {
public:
    /// Exists while a destructor waits, and while it requests the destruction of the tasks that it
    /// waits for. Destroying these requests the destruction of the tasks below them, on other loops
    /// too. All of these tasks are below the frame of the destructor, and all of these requests
    /// record this scope as their cause.
    class scope {
    public:
        explicit scope(destructor_waits& all) noexcept
            : all_(all), outer_(std::exchange(all.cause_, this)) {
            ++all_.epoch_;
        }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;
        ~scope() {
            all_.cause_ = outer_;
            ++all_.epoch_;
        }

    private:
        friend class destructor_waits;

        destructor_waits& all_;
        const scope* const outer_; // the cause of the destruction that this is part of
    };

    /// Exists while destructors run, or are about to, because of a request.
    class on_behalf_of {
    public:
        on_behalf_of(destructor_waits& all, const scope* cause) noexcept
            : all_(all), outer_(std::exchange(all.cause_, cause)) {}
        on_behalf_of(const on_behalf_of&) = delete;
        on_behalf_of& operator=(const on_behalf_of&) = delete;
        ~on_behalf_of() { all_.cause_ = outer_; }

    private:
        destructor_waits& all_;
        const scope* const outer_;
    };

    destructor_waits() noexcept = default;
    destructor_waits(const destructor_waits&) = delete;
    destructor_waits& operator=(const destructor_waits&) = delete;

    /// Incremented when a wait begins and when it ends: a task that has arrived in the current
    /// epoch has not run.
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

    /// The innermost cause of the destruction in progress, or null. It is immutable, and exists
    /// until everything that was requested because of it has been destroyed.
    [[nodiscard]] const scope* cause() const noexcept { return cause_; }
    /// Whether `cause`, or one of the causes above it, is a destructor on this loop's thread. Then
    /// the requested task is below that destructor's frame, and cannot be running further down on
    /// this stack.
    [[nodiscard]] bool contain(const scope* cause) const noexcept {
        while (cause != nullptr && &cause->all_ != this) {
            cause = cause->outer_;
        }
        return cause != nullptr;
    }

private:
    const scope* cause_ = nullptr;
    std::uint64_t epoch_ = 0;
};

} // namespace coil::detail
