#pragma once

#include <coil/base/exchange.hpp>
#include <coil/sync/detail/permit_awaiter.hpp>

#include <cstddef>

namespace coil {

namespace detail {

struct acquire_kind {
    static constexpr const char* name = "semaphore";
    static constexpr waited_object waits_for = waited_object::semaphore;
    static void give_back(permits& p) noexcept { p.release(); }
};

} // namespace detail

/// std::counting_semaphore for coroutines. acquire() takes a permit, and waits if no permit is
/// free.
///
///     coil::counting_semaphore<> slots{10};       // ten downloads at a time
///     co_await slots.acquire();
///     ...
///     slots.release();
///
/// A guard releases the permit at the end of its block, even if an exception leaves the block:
///
///     auto permit = co_await slots.acquire_guard();
///
/// A permit that is released while coroutines wait is handed to a waiter; try_acquire() cannot take
/// it. Waiters are served first come, first served, with the exception for waiters of several
/// contexts that is documented for mutex.
///
/// Threading: all members may be called from any context and any thread, including release(). A
/// waiter resumes on its own context. The semaphore may be destroyed once no coroutine waits and no
/// thread will call release().
///
/// Cancellation: if the waiting task is asked to stop, acquire() throws std::system_error with
/// std::errc::operation_canceled and takes no permit. If a coroutine is destroyed after it was
/// handed a permit and before it resumes, the permit is released again.
template <std::ptrdiff_t LeastMaxValue = PTRDIFF_MAX / 2>
class counting_semaphore {
    static_assert(LeastMaxValue >= 0);

public:
    class guard;

    /// Precondition: 0 <= desired <= max(); otherwise the program terminates with a message.
    constexpr explicit counting_semaphore(std::ptrdiff_t desired) noexcept : permits_(desired) {
        if (desired < 0 || desired > max()) [[unlikely]] {
            detail::end_with_misuse("a semaphore must be constructed with 0 to max() permits.");
        }
    }
    counting_semaphore(const counting_semaphore&) = delete;
    counting_semaphore& operator=(const counting_semaphore&) = delete;
    counting_semaphore() COIL_DELETE_COPY("pass the number of permits: counting_semaphore s(10)");
    ~counting_semaphore() = default;
    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY("acquire it: co_await s.acquire()");

    [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return LeastMaxValue; }

    /// co_await returns void; the caller then owns one permit.
    auto acquire() noexcept {
        return detail::sync_awaitable<detail::permit_awaiter<detail::acquire_kind>,
                                      detail::permits>(permits_);
    }
    /// co_await returns a guard that releases the permit when it is destroyed.
    auto acquire_guard() noexcept {
        return detail::sync_awaitable<guard_awaiter, counting_semaphore>(*this);
    }
    /// Does not wait. Returns true if the caller now owns a permit.
    [[nodiscard]] bool try_acquire() noexcept { return permits_.try_acquire(); }
    /// May be called from any thread. A negative `update`, or one that would raise the count above
    /// max(), terminates the program with a message.
    void release(std::ptrdiff_t update = 1) noexcept {
        if (update < 0 || update > max()) [[unlikely]] {
            end_with_too_many();
        }
        if (update > 0 && permits_.release(update) > max() - update) [[unlikely]] {
            end_with_too_many();
        }
    }

private:
    class guard_awaiter;

    [[noreturn]] static void end_with_too_many() noexcept {
        detail::end_with_misuse("semaphore::release() of a negative number, or beyond max().");
    }

    detail::permits permits_;
};

/// Owns a permit and releases it on destruction. Move-only. The semaphore must outlive it.
template <std::ptrdiff_t LeastMaxValue>
class [[nodiscard("the permit is released at once")]] counting_semaphore<LeastMaxValue>::guard {
public:
    guard() noexcept = default;
    /// Adopts a permit that the caller owns, for example after try_acquire().
    explicit guard(counting_semaphore& acquired) noexcept : semaphore_(&acquired) {}
    guard(guard&& other) noexcept : semaphore_(coil::detail::exchange(other.semaphore_, nullptr)) {}
    guard& operator=(guard&& other) noexcept {
        if (this != &other) {
            release();
            semaphore_ = coil::detail::exchange(other.semaphore_, nullptr);
        }
        return *this;
    }
    ~guard() { release(); }

    [[nodiscard]] bool owns_permit() const noexcept { return semaphore_ != nullptr; }
    explicit operator bool() const noexcept { return owns_permit(); }

    /// Releases the permit early. No effect if the guard owns none.
    void release() noexcept {
        if (counting_semaphore* const acquired = coil::detail::exchange(semaphore_, nullptr)) {
            acquired->release();
        }
    }
    /// Gives up the permit without releasing it: the caller owns it.
    counting_semaphore* forget() noexcept { return coil::detail::exchange(semaphore_, nullptr); }

private:
    counting_semaphore* semaphore_ = nullptr;
};

template <std::ptrdiff_t LeastMaxValue>
class counting_semaphore<LeastMaxValue>::guard_awaiter
    : public detail::permit_awaiter<detail::acquire_kind> {
public:
    explicit guard_awaiter(counting_semaphore& source) noexcept
        : permit_awaiter(source.permits_), source_(source) {}

    [[gnu::always_inline]] guard await_resume() {
        permit_awaiter::await_resume();
        return guard(source_);
    }

private:
    counting_semaphore& source_;
};

using binary_semaphore = counting_semaphore<1>;

} // namespace coil
