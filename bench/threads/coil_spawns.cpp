// A million top-level tasks that complete immediately: from creating them to destroying the frames.
//
//     burst:  on one context, from one of its coroutines, 100 at a time: the cost of spawning alone
//     heap:   the same, but all are spawned before the first runs
//     inbox:  on one context, all spawned by the main thread before run()
//     before: on a runtime of two contexts, all spawned by the main thread before run()
//     during: the same while run() is active on another thread

#include "../lib/usage.hpp"

#include <coil/coil.hpp>
#include <coil/context/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace {

using clock = std::chrono::steady_clock;

constexpr unsigned burst = 100;

// Per thread, because a shared counter would cost more than a task.
constinit thread_local std::uint64_t ended_here = 0;
std::atomic<std::uint64_t> ended{0};

long memory_alive = -1;

coil::task<> count_up() {
    ++ended_here;
    co_return;
}

// Reaches a context after all tasks that the same thread has sent to it.
coil::task<> collect() {
    ended.fetch_add(std::exchange(ended_here, 0));
    co_return;
}

coil::task<> spawn_here(unsigned count, unsigned at_a_time) {
    while (count > 0) {
        const unsigned now = std::min(count, at_a_time);
        for (unsigned i = 0; i < now; ++i) {
            coil::co_spawn(count_up());
        }
        count -= now;
        if (count == 0 && now > burst) {
            memory_alive = usage::private_bytes();
        }
        co_await coil::yield();
    }
    coil::co_spawn(collect());
}

void on_one_context(coil::io_context& context, unsigned count, unsigned at_a_time) {
    context.co_spawn(spawn_here(count, at_a_time));
    context.run();
}

void through_inbox(coil::io_context& context, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        context.co_spawn(count_up());
    }
    context.co_spawn(collect());
    memory_alive = usage::private_bytes();
    context.run();
}

void send(coil::runtime& all, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        all.co_spawn(count_up());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        all.context(i).co_spawn(collect());
    }
}

void before_run(coil::runtime& all, unsigned count) {
    send(all, count);
    memory_alive = usage::private_bytes();
    all.run();
}

// Keeps run() from returning.
coil::task<> keep(int fd, std::atomic<bool>& runs) {
    runs = true;
    runs.notify_one();
    std::uint64_t number = 0;
    co_await coil::io::read(fd, coil::mutable_buffer(&number, sizeof number));
}

void during_run(coil::runtime& all, unsigned count) {
    const int fd = eventfd(0, EFD_CLOEXEC);
    std::atomic<bool> runs{false};
    all.co_spawn(keep(fd, runs));
    std::jthread runner([&] { all.run(); });
    runs.wait(false);
    send(all, count);
    const std::uint64_t one = 1;
    if (write(fd, &one, sizeof one) != sizeof one) {
        std::perror("write");
        std::exit(1);
    }
    runner.join();
    close(fd);
}

// Prints one JSON object. Run with a few tasks first, so that one-time allocations are not
// measured.
template <class Spawn, class WakeUps>
int measure(unsigned count, Spawn spawn, WakeUps wake_ups) {
    spawn(1000U);
    ended = 0;
    memory_alive = -1;
    const long memory_before = usage::private_bytes();
    const std::uint64_t woken = wake_ups();
    const double cpu = usage::cpu_seconds();
    const auto begin = clock::now();
    spawn(count);
    const double wall = std::chrono::duration<double>(clock::now() - begin).count();
    const double used = usage::cpu_seconds() - cpu;
    const long memory_after = usage::private_bytes();
    if (ended != count) {
        std::fprintf(stderr, "%llu of %u tasks ended\n",
                     static_cast<unsigned long long>(ended.load()), count);
        return 1;
    }
    std::printf("{\"tasks\": %u, \"cpu_ns\": %.2f, \"wall_ns\": %.2f, \"wake_ups\": %llu, "
                "\"bytes_before\": %ld, \"bytes_alive\": %ld, \"bytes_after\": %ld}\n",
                count, used * 1e9 / count, wall * 1e9 / count,
                static_cast<unsigned long long>(wake_ups() - woken), memory_before, memory_alive,
                memory_after);
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view variant = argc == 3 ? argv[1] : "";
    const unsigned count =
        argc == 3 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 0;
    if (count > 0 && (variant == "burst" || variant == "heap" || variant == "inbox")) {
        coil::io_context context;
        const auto spawn = [&](unsigned n) {
            if (variant == "inbox") {
                through_inbox(context, n);
            } else {
                on_one_context(context, n, variant == "heap" ? n : burst);
            }
        };
        return measure(count, spawn, [&] { return context.metrics().wake_ups_sent; });
    }
    if (count > 0 && (variant == "before" || variant == "during")) {
        coil::runtime all(2);
        const auto spawn = [&](unsigned n) {
            if (variant == "before") {
                before_run(all, n);
            } else {
                during_run(all, n);
            }
        };
        return measure(count, spawn, [&] {
            return all.context(0).metrics().wake_ups_sent + all.context(1).metrics().wake_ups_sent;
        });
    }
    std::fprintf(stderr, "usage: %s burst|heap|inbox|before|during TASKS\n", argv[0]);
    return 2;
}
