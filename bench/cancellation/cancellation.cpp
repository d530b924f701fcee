// Cancelling or destroying N waiters of one kind together: CPU time from the request until the last
// waiter has ended. A linear algorithm takes ten times as long for ten times as many.
//
//     bench_cancellation                                  all kinds, 100 000 and 1 000 000 waiters
//     bench_cancellation --benchmark_filter=sleep
//
// cancel/KIND:  a scope is cancelled and joined; each waiter throws or reports -ECANCELED
// destroy/KIND: the context is stopped and destroys the frames
// floor/throw:  N coroutines without coil are resumed, throw an int and are destroyed: the minimum
//               for waiters whose waits throw
// floor/resume: the same without the exception

#include <coil/coil.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <coroutine>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
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
    buffer_pool* pool = nullptr; // set for streams only
};

using waiting = task<> (*)(places&);

struct kind {
    const char* name;
    waiting wait;
    unsigned most_in_flight = UINT32_MAX; ///< operations beyond it are held back
    bool needs_pool = false;              ///< whether `pool` is set
};

task<> read_pipe(places& p) {
    char byte;
    static_cast<void>(co_await io::read(p.pipe[0], {&byte, 1}));
}

constexpr kind kinds[] = {
    {"held_back_read", read_pipe, 2},
    {"read", read_pipe},
    {"recv_stream",
     [](places& p) -> task<> {
         auto stream = io::recv_multishot(p.sockets[0], *p.pool);
         static_cast<void>(co_await stream.next());
     },
     UINT32_MAX, true},
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

/// CPU time of the process, in seconds. Other processes lengthen it less than wall time.
double cpu_now() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

task<> wait_and_end(places& p, const kind& what, int waiters, bool destroys, io_context& ctx,
                    double& begin) {
    std::optional<buffer_pool> pool;
    if (what.needs_pool) {
        pool.emplace(1, 64);
        p.pool = &*pool;
    }
    scope s;
    for (int i = 0; i < waiters; ++i) {
        s.spawn(what.wait(p));
    }
    for (int i = 0; i < 2 + waiters / 200; ++i) { // every waiter has begun to wait
        co_await yield();
    }
    begin = cpu_now();
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
        double begin = 0;
        ctx.co_spawn(wait_and_end(p, what, waiters, destroys, ctx, begin));
        ctx.run();
        state.SetIterationTime(cpu_now() - begin);
    }
    state.SetItemsProcessed(state.iterations() * waiters);
}

/// A coroutine that knows nothing of coil.
struct bare {
    struct promise_type {
        std::exception_ptr error;
        bare get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { error = std::current_exception(); }
    };
    std::coroutine_handle<promise_type> handle;
};

bare bare_waiter(bool throws) {
    co_await std::suspend_always();
    if (throws) {
        throw 1;
    }
}

void end_bare(benchmark::State& state, bool throws) {
    std::vector<bare> waiters(static_cast<std::size_t>(state.range(0)));
    for ([[maybe_unused]] auto _ : state) {
        for (bare& each : waiters) {
            each = bare_waiter(throws);
            each.handle.resume();
        }
        const double begin = cpu_now();
        for (const bare& each : waiters) {
            each.handle.resume();
            each.handle.destroy();
        }
        state.SetIterationTime(cpu_now() - begin);
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
}

void set_up(benchmark::internal::Benchmark* row) {
    row->Arg(100'000)->Arg(1'000'000)->UseManualTime()->Iterations(1)->Unit(
        benchmark::kMillisecond);
}

} // namespace

int main(int argc, char** argv) {
    set_up(benchmark::RegisterBenchmark("floor/resume", end_bare, false));
    set_up(benchmark::RegisterBenchmark("floor/throw", end_bare, true));
    for (const kind& each : kinds) {
        for (const bool destroys : {false, true}) {
            const std::string name = std::string(destroys ? "destroy/" : "cancel/") + each.name;
            set_up(benchmark::RegisterBenchmark(name.c_str(), end_all, each, destroys));
        }
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
