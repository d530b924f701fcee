#include <coil/context/io_context.hpp>
#include <coil/interop/foreign_loop.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <coil_c.h>
#include <sys/epoll.h>

namespace {

using clock_type = std::chrono::steady_clock;
using time_point = clock_type::time_point;

constexpr unsigned requestable = COIL_READABLE | COIL_WRITABLE;

/// A paused watch stays in the epoll set, which then reports only errors and hang-ups.
std::uint32_t to_epoll(unsigned events) noexcept {
    return ((events & COIL_READABLE) != 0 ? EPOLLIN | EPOLLRDHUP : 0U) |
           ((events & COIL_WRITABLE) != 0 ? EPOLLOUT : 0U) | EPOLLERR;
}
unsigned from_epoll(std::uint32_t events) noexcept {
    return ((events & (EPOLLIN | EPOLLPRI)) != 0 ? unsigned{COIL_READABLE} : 0U) |
           ((events & EPOLLOUT) != 0 ? unsigned{COIL_WRITABLE} : 0U) |
           ((events & (EPOLLERR | EPOLLHUP)) != 0 ? unsigned{COIL_ERROR} : 0U) |
           ((events & (EPOLLRDHUP | EPOLLHUP)) != 0 ? unsigned{COIL_HANG_UP} : 0U);
}

/// `start` plus a delay; time_point::max() if that is out of range.
time_point after(time_point start, std::uint64_t ns) noexcept {
    const auto left = static_cast<std::uint64_t>((time_point::max() - start).count());
    return ns >= left ? time_point::max()
                      : start + std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
}

} // namespace

struct coil_context {
    struct call {
        coil_callback function;
        void* user;
    };
    struct timer {
        call what;
        time_point due;
        std::uint64_t interval;
    };
    struct watched {
        coil_watch_callback function;
        void* user;
        unsigned events;
    };

    [[nodiscard]] bool has_work() {
        if (!watches.empty() || !timers.empty() || holds != 0) {
            return true;
        }
        const std::scoped_lock lock(mutex);
        return !posted.empty();
    }
    /// Returns whether a stop was requested, and clears the request, because it ends one run only.
    [[nodiscard]] bool take_stop() noexcept { return stopping.exchange(false); }

    /// One iteration: waits, then calls the callbacks that are due. Returns their number.
    coil::task<int> round(std::optional<time_point> limit) {
        const time_point next = due.empty() ? time_point::max() : due.begin()->first;
        const time_point deadline = std::min(next, limit.value_or(time_point::max()));
        if (deadline == time_point::max()) {
            loop.clear_deadline();
        } else {
            loop.set_deadline(deadline);
        }
        const coil::foreign_loop::wake_up woken = co_await loop.wait();
        int calls = 0;
        for (const auto& ready : woken.ready) { // an earlier callback may have removed this watch
            const auto found = watches.find(ready.fd);
            const unsigned events = from_epoll(ready.events);
            if (events != 0 && found != watches.end() && !stopping.load()) {
                const watched w = found->second;
                w.function(this, ready.fd, events, w.user);
                ++calls;
            }
        }
        calls += call_posted();
        calls += call_timers();
        co_return calls;
    }

    /// Calls the functions that have been posted before this call, not those posted by callbacks.
    int call_posted() {
        std::size_t left = 0;
        {
            const std::scoped_lock lock(mutex);
            left = posted.size();
        }
        int calls = 0;
        for (; left > 0 && !stopping.load(); --left, ++calls) {
            call next{};
            {
                const std::scoped_lock lock(mutex);
                next = posted.front();
                posted.pop_front();
            }
            next.function(this, next.user);
        }
        if (left > 0) {
            loop.interrupt(); // for the next round
        }
        return calls;
    }

    /// Calls the timers that are due, except those that a callback has just started.
    int call_timers() {
        const std::uint64_t end = next_id;
        const time_point now = clock_type::now();
        int calls = 0;
        while (!due.empty() && due.begin()->first <= now && !stopping.load()) {
            const auto first = std::find_if(due.begin(), due.upper_bound(now),
                                            [end](const auto& one) { return one.second < end; });
            if (first == due.end() || first->first > now) {
                break;
            }
            const std::uint64_t id = first->second;
            timer& t = timers.find(id)->second;
            const call what = t.what;
            auto node = due.extract(first);
            if (t.interval == 0) {
                timers.erase(id);
            } else {
                const auto late = static_cast<std::uint64_t>((now - t.due).count());
                t.due = after(t.due, (late / t.interval + 1) * t.interval);
                node.key() = t.due;
                due.insert(std::move(node));
            }
            what.function(this, what.user);
            ++calls;
        }
        return calls;
    }

    coil::io_context context;
    coil::foreign_loop loop;
    std::atomic<bool> running{false};
    std::atomic<bool> stopping{false};
    std::mutex mutex; // protects `posted`
    std::deque<call> posted;
    std::unordered_map<int, watched> watches;
    std::unordered_map<std::uint64_t, timer> timers;
    std::multimap<time_point, std::uint64_t> due; // timer ids, ordered by time
    std::uint64_t next_id = 1;
    std::uint64_t holds = 0;
};

namespace {

/// Calls f() and converts an exception to a negated errno number.
template <class F>
int guarded(F f) noexcept {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    } catch (const std::system_error& e) {
        return e.code().value() > 0 ? -e.code().value() : -EIO;
    } catch (...) {
        return -EIO;
    }
}

/// Runs a task to its end.
template <class F>
int run_here(coil_context* ctx, F make) noexcept {
    if (ctx == nullptr) {
        return -EINVAL;
    }
    if (ctx->running.exchange(true)) {
        return -EBUSY;
    }
    const int result = guarded([&] {
        auto handle = ctx->context.spawn(make());
        ctx->context.run();
        return handle.get();
    });
    ctx->running.store(false);
    return result;
}

coil::task<int> run_all(coil_context& ctx) {
    while (!ctx.take_stop() && ctx.has_work()) {
        co_await ctx.round(std::nullopt);
    }
    co_return 0;
}

coil::task<int> run_round(coil_context& ctx, std::optional<time_point> limit) {
    for (;;) {
        if (ctx.take_stop()) {
            co_return 0;
        }
        const int calls = co_await ctx.round(limit);
        if (calls != 0 || (limit && clock_type::now() >= *limit)) {
            static_cast<void>(ctx.take_stop());
            co_return calls;
        }
    }
}

} // namespace

int coil_c_version(void) { return COIL_C_VERSION; }

int coil_context_create(coil_context** ctx) {
    if (ctx == nullptr) {
        return -EINVAL;
    }
    return guarded([ctx] {
        *ctx = new coil_context;
        return 0;
    });
}

int coil_context_destroy(coil_context* ctx) {
    if (ctx != nullptr && ctx->running.load()) {
        return -EBUSY;
    }
    delete ctx;
    return 0;
}

int coil_context_run(coil_context* ctx) {
    return run_here(ctx, [ctx] { return run_all(*ctx); });
}

int coil_context_run_once(coil_context* ctx, int timeout_ms) {
    return run_here(ctx, [ctx, timeout_ms] {
        std::optional<time_point> limit;
        if (timeout_ms >= 0) {
            limit = clock_type::now() + std::chrono::milliseconds(timeout_ms);
        }
        return run_round(*ctx, limit);
    });
}

int coil_context_stop(coil_context* ctx) {
    if (ctx == nullptr) {
        return -EINVAL;
    }
    ctx->stopping.store(true);
    ctx->loop.interrupt();
    return 0;
}

int coil_context_post(coil_context* ctx, coil_callback f, void* user) {
    if (ctx == nullptr || f == nullptr) {
        return -EINVAL;
    }
    return guarded([=] {
        const std::scoped_lock lock(ctx->mutex);
        ctx->posted.push_back({f, user});
        ctx->loop.interrupt(); // still locked: `ctx` may be destroyed once the function has run
        return 0;
    });
}

int coil_context_hold(coil_context* ctx) {
    if (ctx == nullptr) {
        return -EINVAL;
    }
    ++ctx->holds;
    return 0;
}

int coil_context_release(coil_context* ctx) {
    if (ctx == nullptr || ctx->holds == 0) {
        return -EINVAL;
    }
    --ctx->holds;
    return 0;
}

int coil_timer_start(coil_context* ctx, uint64_t delay_ns, uint64_t interval_ns, coil_callback f,
                     void* user, uint64_t* id) {
    if (ctx == nullptr || f == nullptr) {
        return -EINVAL;
    }
    return guarded([=] {
        const std::uint64_t number = ctx->next_id;
        const time_point due = after(clock_type::now(), delay_ns);
        const auto place = ctx->due.emplace(due, number);
        try {
            ctx->timers.emplace(number, coil_context::timer{{f, user}, due, interval_ns});
        } catch (...) {
            ctx->due.erase(place);
            throw;
        }
        ++ctx->next_id;
        if (id != nullptr) {
            *id = number;
        }
        return 0;
    });
}

int coil_timer_cancel(coil_context* ctx, uint64_t id) {
    if (ctx == nullptr) {
        return -EINVAL;
    }
    const auto found = ctx->timers.find(id);
    if (found == ctx->timers.end()) {
        return -ENOENT;
    }
    auto [first, last] = ctx->due.equal_range(found->second.due);
    ctx->due.erase(std::find_if(first, last, [id](const auto& one) { return one.second == id; }));
    ctx->timers.erase(found);
    return 0;
}

int coil_watch(coil_context* ctx, int fd, unsigned events, coil_watch_callback f, void* user) {
    if (ctx == nullptr || f == nullptr || (events & ~requestable) != 0 || events == 0) {
        return -EINVAL;
    }
    return guarded([=] {
        const auto [place, is_new] =
            ctx->watches.try_emplace(fd, coil_context::watched{f, user, events});
        if (!is_new) {
            return -EEXIST;
        }
        try {
            ctx->loop.watch(fd, to_epoll(events));
        } catch (...) {
            ctx->watches.erase(place);
            throw;
        }
        return 0;
    });
}

int coil_watch_change(coil_context* ctx, int fd, unsigned events) {
    if (ctx == nullptr || (events & ~requestable) != 0) {
        return -EINVAL;
    }
    return guarded([=] {
        const auto found = ctx->watches.find(fd);
        if (found == ctx->watches.end()) {
            return -ENOENT;
        }
        ctx->loop.watch(fd, to_epoll(events));
        found->second.events = events;
        return 0;
    });
}

int coil_unwatch(coil_context* ctx, int fd) {
    if (ctx == nullptr) {
        return -EINVAL;
    }
    if (ctx->watches.erase(fd) == 0) {
        return -ENOENT;
    }
    ctx->loop.unwatch(fd);
    return 0;
}
