#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/context/detail/multishot_source.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/io_result.hpp>

#include <type_traits>
#include <utility>

namespace coil {

/// The awaitable returned by next() of a multishot stream. co_await returns the next result,
/// -ECANCELED if the task was asked to stop, or -ETIMEDOUT if a timeout() has expired first.
/// Nothing is lost in these cases: a result that arrives later is returned by a later next().
/// -ENOMEM: there was no memory for the timer, or results were discarded because there was no
/// memory to queue them.
template <class Stream>
class [[nodiscard("did you forget to co_await?")]] multishot_next
    : public detail::not_its_result<multishot_next<Stream>> {
public:
    explicit multishot_next(Stream& stream) noexcept : stream_(&stream) {}

    class awaiter : detail::multishot_awaiter {
    public:
        awaiter(Stream& stream, std::int64_t ns, sleep_awaitable::from origin) noexcept
            : multishot_awaiter(stream, ns, origin), stream_(&stream) {}

        using multishot_awaiter::await_ready;
        using multishot_awaiter::await_suspend;
        [[nodiscard]] auto await_resume() noexcept { return Stream::received(stream_, take()); }

    private:
        Stream* stream_;
    };

    [[nodiscard]] awaiter operator co_await() const noexcept {
        static_assert(detail::deferred_result<awaiter>);
        return awaiter(*stream_, ns_, origin_);
    }

    template <class Rep, class Period>
    friend multishot_next timeout(multishot_next next,
                                  std::chrono::duration<Rep, Period> limit) noexcept {
        next.ns_ = detail::saturated_ns(limit);
        return next;
    }
    template <class Clock, class Duration>
    friend multishot_next timeout_at(multishot_next next,
                                     std::chrono::time_point<Clock, Duration> deadline) noexcept {
        if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
            next.ns_ = detail::saturated_ns(deadline.time_since_epoch());
            next.origin_ = sleep_awaitable::from::epoch;
            return next;
        } else {
            return timeout(next, detail::span_until(deadline));
        }
    }

private:
    Stream* stream_;
    std::int64_t ns_ = detail::multishot_awaiter::no_limit;
    sleep_awaitable::from origin_ = sleep_awaitable::from::now;
};

/// The value of a multishot stream: a descriptor, poll events or a number of timer expirations; or
/// -errno.
///
///     while (auto peer = co_await connections.next())
///         co_spawn(session(net::socket{*peer}));
class multishot_value : public io_result {
public:
    using io_result::io_result;

    /// Whether this is a value rather than an error; zero is a value.
    [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }
    [[nodiscard]] int operator*() const noexcept { return *this; }
};

} // namespace coil
