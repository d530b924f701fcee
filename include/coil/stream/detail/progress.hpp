#pragma once

#include <coil/base/minmax.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/compose/when_any.hpp>
#include <coil/context/context_clock.hpp>
#include <coil/context/detail/yield_awaiter.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>

#include <cerrno>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

namespace coil::detail {

/// Limits the time between two steps of a transfer.
class progress {
public:
    void moved() noexcept { last_ = context_clock::now(); }

    /// Awaits `work`. If moved() is not called for `idle`, cancels `work` and throws
    /// std::errc::timed_out, unless `work` has completed nevertheless.
    template <class T>
    task<T> limit(task<T> work, std::chrono::nanoseconds idle) {
        std::optional<T> result;
        const bool expired = co_await try_limit(std::move(work), idle, result);
        if (!result) {
            throw std::system_error(std::make_error_code(expired ? std::errc::timed_out
                                                                 : std::errc::operation_canceled));
        }
        co_return std::move(*result);
    }
    /// The same, but never throws timed_out: returns whether the limit has expired, and stores the
    /// result, if `work` has one, in `result`.
    template <class T>
    task<bool> try_limit(task<T> work, std::chrono::nanoseconds idle, std::optional<T>& result) {
        bool expired = false;
        co_await when_any(keep(std::move(work), result), expire(idle, expired));
        co_return expired;
    }

private:
    template <class T>
    static task<> keep(task<T> work, std::optional<T>& result) {
        result.emplace(co_await std::move(work));
    }

    /// The time at which a limit that has begun at `start` expires.
    [[nodiscard]] context_clock::time_point end(context_clock::time_point start,
                                                std::chrono::nanoseconds idle) const noexcept {
        constexpr std::chrono::nanoseconds longest = std::chrono::hours(24 * 365 * 100);
        return coil::detail::max(start, last_) + coil::detail::min(idle, longest);
    }

    /// Returns when there was no progress for the time `idle`, or when the task is asked to stop.
    task<> expire(std::chrono::nanoseconds idle, bool& expired) {
        const context_clock::time_point start = context_clock::now();
        do {
            while (context_clock::now() < end(start, idle)) {
                const int error = co_await sleep_until(end(start, idle));
                if (error == -ENOMEM) {
                    throw std::bad_alloc();
                }
                if (error < 0) {
                    co_return;
                }
            }
            // Transfers may have completed while this thread was busy. The context finds their
            // completions in its next turn, in which it resumes this task first: hence two yields.
            co_await yield_awaiter();
            co_await yield_awaiter();
        } while (context_clock::now() < end(start, idle));
        expired = true;
    }

    context_clock::time_point last_; // the epoch before the first transfer
};

/// Forwards to a stream and calls moved() for each of its transfers.
template <class Stream>
class observed_stream {
public:
    observed_stream(Stream& stream, progress& of) noexcept : stream_(stream), progress_(of) {}

    task<io_result> read_some(mutable_buffer to)
        requires coil::byte_source<Stream>
    {
        const int n = io_result(co_await stream_.read_some(to));
        co_return reported(n);
    }
    task<io_result> write_some(const_buffer from)
        requires coil::byte_sink<Stream>
    {
        const int n = io_result(co_await stream_.write_some(from));
        co_return reported(n);
    }
    auto shutdown_write()
        requires coil::byte_sink<Stream>
    {
        return stream_.shutdown_write();
    }

private:
    io_result reported(int n) noexcept {
        if (n > 0) {
            progress_.moved();
        }
        return io_result(n);
    }

    Stream& stream_;
    progress& progress_;
};

} // namespace coil::detail
