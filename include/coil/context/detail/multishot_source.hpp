#pragma once

#include <coil/base/owned.hpp>
#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/sqe_slot.hpp>
#include <coil/context/detail/timer_wheel.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/this_task.hpp>
#include <coil/uring/abi.hpp>

#include <array>
#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

class multishot_awaiter;
class leaf_search;

/// One completion of a multishot request. `extra` is what its source recorded on arrival.
struct multishot_result {
    int value = 0;
    std::uint32_t flags = 0;
    std::uint64_t extra = 0;

    /// Flag in `extra`: the result owns memory of a buffer_pool.
    static constexpr std::uint64_t buffer_mark = std::uint64_t{1} << 63;
    [[nodiscard]] bool has_buffer() const noexcept { return (extra & buffer_mark) != 0; }
};

/// Results not taken yet, oldest first. A few are stored inline.
class multishot_results {
public:
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }

    /// Returns false if there is no memory.
    [[nodiscard]] bool push(const multishot_result& r) noexcept {
        if (count_ == capacity_ && !grow()) [[unlikely]] {
            return false;
        }
        at(count_++) = r;
        return true;
    }
    multishot_result pop() noexcept {
        const multishot_result r = at(0);
        first_ = (first_ + 1) & (capacity_ - 1);
        --count_;
        return r;
    }

private:
    multishot_result& at(std::uint32_t i) noexcept {
        return (more_ ? more_.get() : inside_.data())[(first_ + i) & (capacity_ - 1)];
    }
    bool grow() noexcept;

    std::array<multishot_result, 2> inside_;
    owned<multishot_result[]> more_;
    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
    std::uint32_t capacity_ = 2; // a power of two
};

/// A multishot request and its results that were not taken yet. The first next() submits it. So
/// does the first next() after the request has ended, because the kernel also ends a multishot
/// request without an error (completions overflowed, or buffers ran out).
///
/// It belongs to the context of the first next(), and everything happens on that context's thread.
///
/// A derived class calls close() in its destructor and provides
/// - `prepare()`: fills in the request. Returns 0; or -errno, which next() then returns, and
/// nothing
///   is submitted; or `deferred` if resume() will be called later;
/// - `arrived()`: a completion has arrived. Returns false to ignore it;
/// - `discard()`: destroys a result that will not be taken;
/// - `is_scarce()`: whether others may soon wait for the resources of its results.
class multishot_source : io_op {
public:
    /// The number of waiting results at which the request is cancelled. It is submitted again when
    /// they have been taken, so that a slow consumer slows the kernel down instead of filling
    /// memory.
    static constexpr std::size_t high_water = 64;
    /// The same limit while is_scarce().
    static constexpr std::size_t scarce_water = 4;

    multishot_source(const multishot_source&) = delete;
    multishot_source& operator=(const multishot_source&) = delete;

    [[nodiscard]] bool is_active() const noexcept { return pending(); }
    [[nodiscard]] std::uint64_t key() const noexcept {
        return user_data_of(&entry_, completion_kind::entry); // of the request
    }

protected:
    static constexpr int deferred = 1;

    multishot_source() noexcept : io_op(op_state::kind::multishot) {}
    ~multishot_source() = default;

    virtual int prepare(prepared_sqe& request) noexcept = 0;
    virtual bool arrived(multishot_result& /*r*/) noexcept { return true; }
    virtual void discard(const multishot_result& /*r*/) noexcept {}
    [[nodiscard]] virtual bool is_scarce() const noexcept { return false; }

    /// Cancels the request, waits until the kernel has finished, and discards results that were not
    /// taken.
    void close() noexcept;
    /// The resource that prepare() waited for may be available.
    void resume() noexcept;
    /// Submits the request on this loop although no next() waits, and again whenever it has ended,
    /// until the loop's run ends or close() is called. Precondition: it is not active.
    void keep_active(event_loop& loop) noexcept;
    // For a source whose request is in another ring than the loop's: prepare() returns `deferred`.
    /// Adds a result.
    void deliver(multishot_result r) noexcept;
    /// Sets the request that dumps of tasks show. Precondition: it is not active.
    void describe(const prepared_sqe& request) noexcept {
        entry_.reset(request);
        set_submission(entry_, 1);
    }
    [[nodiscard]] bool is_waited_for() const noexcept;
    [[nodiscard]] multishot_results& results() noexcept { return results_; }
    [[nodiscard]] event_loop& owner_loop() const noexcept { return *owner_loop_; }
    /// For a queue of the derived class, while nothing is in flight.
    [[nodiscard]] queue_node& idle_node() noexcept { return node(); }
    [[nodiscard]] static multishot_source& from_idle_node(queue_node& node) noexcept {
        return static_cast<multishot_source&>(static_cast<io_op&>(static_cast<ready_node&>(node)));
    }

private:
    friend class io_op;
    friend class leaf_search;
    friend class multishot_awaiter;

    void arm() noexcept;
    void on_result(const uring::cqe& completion) noexcept;
    void on_early_end() noexcept;
    void on_end() noexcept;
    [[nodiscard]] bool should_pause() const noexcept;

    sqe_slot entry_;
    event_loop* owner_loop_ = nullptr;
    multishot_awaiter* awaiter_ = nullptr; // from its suspension to its resumption
    multishot_results results_;
    int error_ = 0;        // -ENOMEM: results after those in results_ were lost
    bool pausing_ = false; // cancelled because of high_water
    bool kept_active_ = false;
};

/// Waits for a source's next result, optionally with a timeout.
class multishot_awaiter : awaiter_base, timer_call {
public:
    static constexpr std::int64_t no_limit = INT64_MAX;

    multishot_awaiter(multishot_source& source, std::int64_t ns,
                      sleep_awaitable::from origin) noexcept
        : timer_call(&expire), source_(&source), ns_(ns), origin_(origin) {}
    multishot_awaiter(const multishot_awaiter&) = delete;
    multishot_awaiter& operator=(const multishot_awaiter&) = delete;
    ~multishot_awaiter();

    [[nodiscard]] static bool await_ready() noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        return begin_waiting(required_loop(), waiter, stop_token_of(waiter));
    }

protected:
    /// Returns the result after the await. If there is none, returns -ENOMEM after a lack of memory
    /// (for a result or for the timer), -ETIMEDOUT if the timeout has expired, otherwise
    /// -ECANCELED.
    [[nodiscard]] multishot_result take() noexcept;

private:
    friend class multishot_source;
    friend class awaiter_base;
    friend class leaf_search;

    bool begin_waiting(event_loop& loop, std::coroutine_handle<> waiter,
                       inplace_stop_token token) noexcept;
    void cancel() noexcept;
    void end() noexcept;
    static void expire(timer_node& node) noexcept;

    multishot_source* source_; // null if it was destroyed meanwhile
    std::int64_t ns_;
    sleep_awaitable::from origin_;
    int error_ = -ECANCELED; // why it returns no result
    bool refused_ = false;   // it returns the error even if there is a result
};

} // namespace coil::detail
