// The round trip of a function call on another thread.
//
//     eventfd:  the floor, two threads without a runtime: each write(2)s to an eventfd on which the
//               other blocks in read(2); the second thread calls the function in between
//     blocking: `co_await blocking(pool, f)` on a context with the default idle policy
//     parked:   the same on a context that parks as soon as it is idle, like the floor's threads

#include "../lib/eventfd_counter.hpp"
#include "measure.hpp"

#include <coil/coil.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

constexpr const char* names = "eventfd|blocking|parked";

/// The function: counts its calls, so that each call can be verified.
struct work {
    long calls = 0;
    long operator()() { return ++calls; }
};

void check(long called, long due) {
    if (called != due) {
        std::fprintf(stderr, "got call %ld instead of call %ld\n", called, due);
        std::exit(1);
    }
}

/// Round trips before the measurement.
constexpr long warm_up(long count) { return count / 10 + 1; }

int by_eventfd(const variants::options& o) {
    eventfd_counter there;
    eventfd_counter back;
    work f;
    long result = 0;
    const long all = warm_up(o.count) + o.count;
    std::thread other([&] {
        pin_this_thread(o.cpus[1]);
        for (long i = 0; i < all; ++i) {
            there.await();
            result = f();
            back.send();
        }
    });
    exec_bench::stopwatch watch;
    for (long i = 1; i <= all; ++i) {
        there.send();
        back.await();
        check(result, i);
        if (i == all - o.count) {
            watch.start();
        }
    }
    watch.stop();
    other.join();
    return watch.report(static_cast<double>(o.count));
}

coil::task<int> round_trips(const variants::options& o, coil::blocking_pool& pool) {
    co_await coil::blocking(pool, [&] { pin_this_thread(o.cpus[1]); });
    work f;
    exec_bench::stopwatch watch;
    const long all = warm_up(o.count) + o.count;
    for (long i = 1; i <= all; ++i) {
        check(co_await coil::blocking(pool, [&f] { return f(); }), i);
        if (i == all - o.count) {
            watch.start();
        }
    }
    watch.stop();
    co_return watch.report(static_cast<double>(o.count));
}

int by_coil(const variants::options& o, coil::idle_policy idle) {
    coil::blocking_pool pool(1);
    coil::io_context_options how;
    how.idle = idle;
    coil::io_context ctx(how);
    coil::join_handle<int> h = ctx.spawn(round_trips(o, pool));
    ctx.run();
    return h.get();
}

} // namespace

int main(int argc, char** argv) {
    const variants::options o = variants::parse(argc, argv, names);
    pin_this_thread(o.cpus[0]);
    if (o.variant == "eventfd") {
        return by_eventfd(o);
    }
    if (o.variant == "blocking") {
        return by_coil(o, coil::io_context_options().idle);
    }
    if (o.variant == "parked") {
        return by_coil(o, coil::idle_policy::park());
    }
    variants::unknown(names);
}
