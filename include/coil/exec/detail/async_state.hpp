#pragma once

#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/list_node.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/exec/any_executor.hpp>
#include <coil/exec/detail/remote_op.hpp>

#include <atomic>
#include <condition_variable>
#include <coroutine>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>

namespace coil::detail {

class async_state_base;

/// A callback added by then(), catching() or finally().
struct async_callback : frame_allocated {
    async_callback() noexcept = default;
    async_callback(const async_callback&) = delete;
    async_callback& operator=(const async_callback&) = delete;
    virtual ~async_callback() = default;
    virtual void call(async_state_base& state) = 0;

    async_callback* next = nullptr;
};

/// The state shared by an async_task and its coroutine, which both own it. It is not part of the
/// frame, which is destroyed when the coroutine has ended or was dropped by its executor, even if
/// the task object still exists.
///
/// States: running → finishing (there is a result, and the callbacks run) → done. Waiters are
/// notified when it is done. A lock protects their list, because a waiter may stop waiting; no
/// callback and no coroutine runs with the lock held.
class async_state_base : public task_owner {
public:
    virtual ~async_state_base() = default;
    async_state_base(const async_state_base&) = delete;
    async_state_base& operator=(const async_state_base&) = delete;

    struct waiter : list_node<waiter> {
        explicit waiter(remote_op& w) noexcept : op(&w) {}
        remote_op* op;
        promise_base* below = nullptr; // the nearest root above it, or null
        bool refused = false;          // notified without a result
    };
    enum class answer : unsigned char { waits, done, stopped };

    [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
    /// Whether this thread may read the result: the task is done, or this thread runs one of its
    /// callbacks.
    [[nodiscard]] bool has_result() const noexcept {
        return done() || completer_.load(std::memory_order_acquire) == std::this_thread::get_id();
    }
    void wait_blocking() noexcept;
    /// The waiter is notified later only if the answer is `waits`. `token` must have a registered
    /// callback that calls leave().
    [[nodiscard]] answer add(waiter& w, const inplace_stop_token& token) noexcept;
    /// Returns false if the waiter is about to be notified, or was.
    [[nodiscard]] bool remove(waiter& w) noexcept;
    /// Called by a stop request, on any thread: ends the wait without a result, unless the waiter
    /// is about to be notified, or was.
    void leave(waiter& w) noexcept;
    void refuse_unwanted() noexcept override;
    /// Adds a callback, or calls it immediately if the task is done.
    void add(std::unique_ptr<async_callback> callback) noexcept;

    void finished(promise_base& root) noexcept override;
    /// The executor has dropped the coroutine, or its context stops.
    void abandoned(promise_base& root) noexcept override;
    /// The coroutine could not be started.
    void fail(std::exception_ptr error) noexcept;

    void set_error(std::exception_ptr error) noexcept { error_ = std::move(error); }
    [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
    [[noreturn]] void rethrow() {
        set_received();
        std::rethrow_exception(error_);
    }
    /// Notes that the exception was received, so that it is not reported.
    void set_received() noexcept { received_.store(true, std::memory_order_relaxed); }

    /// Called once by each of the two owners.
    void release() noexcept;

protected:
    async_state_base() noexcept : task_owner({}, false) {}

    void watch(std::coroutine_handle<> coroutine) noexcept { coroutine_ = coroutine; }

private:
    void complete(const promise_base* ended) noexcept;
    static void tell(waiter* oldest) noexcept;
    void call(async_callback& callback) noexcept;

    std::coroutine_handle<> coroutine_;
    std::exception_ptr error_;
    std::atomic<bool> done_{false};
    std::atomic<bool> received_{false};
    std::atomic<unsigned> owners_{2};
    std::atomic<std::thread::id> completer_{}; // set once there is a result

    std::mutex mutex_; // protects the following members
    async_callback* first_ = nullptr;
    async_callback** last_ = &first_;
    waiter* waiters_ = nullptr; // newest first
    std::condition_variable done_now_;
};

template <class T>
struct async_stored {
    using type = T;
};
template <class T>
struct async_stored<T&> {
    using type = T*;
};
template <>
struct async_stored<void> {
    using type = std::monostate;
};

[[noreturn]] void throw_async_taken();
[[noreturn]] void throw_async_left();

template <class T>
class async_state final : public async_state_base, public frame_allocated {
public:
    using stored = typename async_stored<T>::type;

    /// `keep`: keeps the executor alive; may be empty.
    async_state(std::coroutine_handle<> coroutine, any_executor keep) noexcept
        : keep_(std::move(keep)) {
        watch(coroutine);
    }

    template <class... Args>
    void set_value(Args&&... args) {
        if constexpr (std::is_reference_v<T>) {
            value_.emplace(std::addressof(args)...);
        } else {
            value_.emplace(std::forward<Args>(args)...);
        }
    }

    /// The result of get() on a named task: a copy, if T can be copied.
    T copy() {
        if constexpr (std::is_object_v<T> && std::is_copy_constructible_v<T>) {
            if (error()) {
                rethrow();
            }
            return look();
        } else {
            return take();
        }
    }

    /// The value in place, for callbacks.
    [[nodiscard]] const stored& look() const {
        if (taken_.load(std::memory_order_acquire)) {
            throw_async_taken();
        }
        return *value_;
    }

    /// Moves the value out. May be called once.
    T take() {
        if (error()) {
            rethrow();
        }
        if constexpr (std::is_void_v<T>) {
            return;
        } else if constexpr (std::is_reference_v<T>) {
            return **value_;
        } else {
            if (taken_.exchange(true, std::memory_order_acq_rel)) {
                throw_async_taken();
            }
            return std::move(*value_);
        }
    }

    [[nodiscard]] bool has_failed() const noexcept {
        return error() != nullptr || taken_.load(std::memory_order_acquire);
    }

private:
    any_executor keep_;
    std::optional<stored> value_;
    std::atomic<bool> taken_{false};
};

} // namespace coil::detail
