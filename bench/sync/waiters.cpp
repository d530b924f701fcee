// Many coroutines on one context.
//
//     wake:  COUNT coroutines wait for an event: from set() until the last has resumed and ended
//     spawn: COUNT coroutines are spawned: from the first spawn until the last has ended
//
// Their frames are created before the measurement in the first variant and within it in the second,
// because spawning includes that.

#include "measure.hpp"

#include <coil/coil.hpp>

#include <cstdio>

namespace {

constexpr const char* names = "wake|spawn";

coil::task<> waits(coil::event& e, long& ended) {
    co_await e.wait();
    ++ended;
}
coil::task<> ends(long& ended) {
    ++ended;
    co_return;
}

int check(long ended, long count) {
    if (ended != count) {
        std::fprintf(stderr, "%ld of %ld have ended\n", ended, count);
        return 1;
    }
    return 0;
}

coil::task<int> wake(long count) {
    coil::event e;
    long ended = 0;
    for (long i = 0; i < count; ++i) {
        coil::co_spawn(waits(e, ended));
    }
    co_await coil::yield(); // now all of them are waiting
    const sync_bench::stopwatch watch;
    e.set();
    while (ended < count) { // NOLINT(bugprone-infinite-loop): they count
        co_await coil::yield();
    }
    co_return check(ended, count) + watch.report(count);
}

coil::task<int> spawn(long count) {
    long ended = 0;
    const sync_bench::stopwatch watch;
    for (long i = 0; i < count; ++i) {
        coil::co_spawn(ends(ended));
    }
    while (ended < count) { // NOLINT(bugprone-infinite-loop): they count
        co_await coil::yield();
    }
    co_return check(ended, count) + watch.report(count);
}

} // namespace

int main(int argc, char** argv) {
    const variants::options o = variants::parse(argc, argv, names);
    pin_this_thread(o.cpus[0]);
    if (o.variant == "wake") {
        return coil::run(wake(o.count));
    }
    if (o.variant == "spawn") {
        return coil::run(spawn(o.count));
    }
    variants::unknown(names);
}
