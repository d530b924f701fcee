// Cancelling or destroying N waiters of one kind at once: time from the request until the last
// waiter has ended. A linear algorithm takes ten times as long for ten times as many.
//
//     bench_cancellation                                  all kinds, 100 000 and 1 000 000 waiters
//     bench_cancellation --benchmark_filter=sleep
//
// cancel/KIND:  a scope is cancelled and joined; each waiter throws or reports -ECANCELED
// destroy/KIND: the context is stopped and destroys the frames

#include <coil/coil.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <string>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace coil;
using namespace std::chrono_literals;

/// One primitive of each kind, in a state in which a waiter waits.
struct places {
    explicit places(int waiters) : meeting(waiters + 1) {
        if (::pipe2(pipe, O_CLOEXEC) != 0 ||
            ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
            std::abort();
        }
        static_cast<void>(locked.try_lock());
        static_cast<void>(alone.try_lock());
        static_cast<void>(full.try_send(1));
        group.add(1);
    }
    places(const places&) = delete;
    places& operator=(const places&) = delete;
    ~places() {
        locked.unlock();
        alone.unlock();
        group.done();
        gate.count_down();
        for (const int fd : {pipe[0], pipe[1], sockets[0], sockets[1]}) {
            ::close(fd);
        }
    }

    int pipe[2] = {-1, -1};
    int sockets[2] = {-1, -1};
    mutex locked;
    shared_mutex alone;
    mutex of_condition;
    condition_variable condition;
    counting_semaphore<> permits{0};
    event happens;
    auto_reset_event happens_once;
    latch gate{1};
    barrier<> meeting;
    wait_group group;
    channel<int> empty{1};
    channel<int> full{1};
};

using waiting = task<> (*)(places&);

struct kind {
    const char* name;
    waiting wait;
    unsigned most_in_flight = UINT32_MAX; ///< operations beyond it are held back
};

task<> read_pipe(places& p) {
    char byte;
    static_cast<void>(co_await io::read(p.pipe[0], {&byte, 1}));
}

constexpr kind kinds[] = {
    {"held_back_read", read_pipe, 2},
    {"read", read_pipe},
    {"sleep", [](places&) -> task<> { co_await sleep_for(1h); }},
    {"mutex", [](places& p) -> task<> { co_await p.locked.lock(); }},
    {"shared_mutex", [](places& p) -> task<> { co_await p.alone.lock(); }},
    {"condition_variable",
     [](places& p) -> task<> {
         const auto guard = co_await p.of_condition.lock_guard();
         co_await p.condition.wait(p.of_condition);
     }},
    {"semaphore", [](places& p) -> task<> { co_await p.permits.acquire(); }},
    {"event", [](places& p) -> task<> { co_await p.happens.wait(); }},
    {"auto_reset_event", [](places& p) -> task<> { co_await p.happens_once.wait(); }},
    {"latch", [](places& p) -> task<> { co_await p.gate.wait(); }},
    {"barrier", [](places& p) -> task<> { co_await p.meeting.arrive_and_wait(); }},
    {"wait_group", [](places& p) -> task<> { co_await p.group.wait(); }},
    {"channel_recv", [](places& p) -> task<> { co_await p.empty.recv(); }},
    {"channel_send", [](places& p) -> task<> { co_await p.full.send(1); }},
};

using time_point = std::chrono::steady_clock::time_point;

task<> wait_and_end(places& p, const kind& what, int waiters, bool destroys, io_context& ctx,
                    time_point& begin) {
    scope s;
    for (int i = 0; i < waiters; ++i) {
        s.spawn(what.wait(p));
    }
    for (int i = 0; i < 2 + waiters / 200; ++i) { // every waiter has begun to wait
        co_await yield();
    }
    begin = std::chrono::steady_clock::now();
    if (destroys) {
        ctx.stop();
        co_await sleep_for(1h);
    }
    s.cancel();
    co_await s.join();
}

void end_all(benchmark::State& state, const kind& what, bool destroys) {
    const auto waiters = static_cast<int>(state.range(0));
    for ([[maybe_unused]] auto _ : state) {
        places p(waiters);
        io_context_options options;
        options.max_in_flight = what.most_in_flight;
        options.on_unhandled_exception = [](const std::exception_ptr&) {};
        io_context ctx(options);
        time_point begin;
        ctx.co_spawn(wait_and_end(p, what, waiters, destroys, ctx, begin));
        ctx.run();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        state.SetIterationTime(took.count());
    }
    state.SetItemsProcessed(state.iterations() * waiters);
}

} // namespace

int main(int argc, char** argv) {
    for (const kind& each : kinds) {
        for (const bool destroys : {false, true}) {
            const std::string name = std::string(destroys ? "destroy/" : "cancel/") + each.name;
            benchmark::RegisterBenchmark(name.c_str(), end_all, each, destroys)
                ->Arg(100'000)
                ->Arg(1'000'000)
                ->UseManualTime()
                ->Iterations(1)
                ->Unit(benchmark::kMillisecond);
        }
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
