#pragma once

#include <coil/base/assert.hpp>
#include <coil/context/detail/paced.hpp>

#include <cstddef>
#include <utility>

namespace coil::detail {

/// Runs destructors on stacks of their own. On one stack, a destructor that waits could return only
/// after those that began to wait later, so two threads whose destructors wait for each other's
/// tasks could wait for ever. On a side stack, a destructor that waits leaves the thread to the
/// code that has called run() or resume(), the *host*.
///
/// Used by one thread. The host must call resume() on that thread until none waits.
class side_stacks {
public:
    side_stacks() noexcept = default;
    side_stacks(const side_stacks&) = delete;
    side_stacks& operator=(const side_stacks&) = delete;
    ~side_stacks();

    /// Calls `f()` on a side stack, to which `f` is copied. Returns when `f` has returned or waits.
    /// On a side stack, and if there is no memory for another one, `f` is called on the current
    /// stack.
    template <class Function>
    void run(Function f) noexcept {
        static_assert(noexcept(f()));
        run(
            [](void* function) noexcept {
                Function copy = std::move(*static_cast<Function*>(function));
                copy();
            },
            &f);
    }
    /// Called on a side stack, by a destructor that cannot continue before `is_over()` returns
    /// true. Also returns at resume_all().
    template <class Predicate>
    void wait(const Predicate& is_over) noexcept {
        static_assert(noexcept(is_over()));
        wait(
            [](const void* predicate) noexcept {
                return (*static_cast<const Predicate*>(predicate))();
            },
            &is_over);
    }
    /// Continues the destructors whose waits are over, until they wait again or end. Also continues
    /// all others, but not more often than every millisecond, and for at most a ninth of the time.
    void resume() noexcept;
    /// Continues all destructors that wait.
    void resume_all() noexcept { enter_each(true); }

    /// Whether the caller runs on one of these stacks.
    [[nodiscard]] bool is_here() const noexcept { return running_ != nullptr; }
    [[nodiscard]] bool any_waits() const noexcept { return waiting_ != nullptr; }

private:
    class stack;
    using function = void (*)(void*) noexcept;
    using predicate = bool (*)(const void*) noexcept;

    void run(function f, void* argument) noexcept;
    void wait(predicate is_over, const void* argument) noexcept;
    void enter_each(bool all) noexcept;
    void enter(stack& one) noexcept;
    [[nodiscard]] stack* take() noexcept;

    stack* running_ = nullptr;
    stack* waiting_ = nullptr;
    stack* free_ = nullptr; // to be used again; at most one
    std::size_t count_ = 0; // of stacks that have memory
    paced visits_;          // of those whose waits are not over
};

} // namespace coil::detail
