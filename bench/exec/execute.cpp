// The cost of submitting a small function to a pool of one thread.
//
//     coil, mutex:               COUNT calls of execute() by one thread; the pool's only thread is
//                                busy elsewhere: no contention
//     coil_stream, mutex_stream: the same while the pool runs the functions; from the first call to
//                                the end of the last function
//     coil_turns, mutex_turns:   each function is submitted after the previous one has run
//
// "mutex" is a simple pool: a mutex and a std::deque of std::functions.

#include "measure.hpp"
#include "mutex_pool.hpp"

#include <coil/exec/thread_pool.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <semaphore>

namespace {

constexpr const char* names = "coil|mutex|coil_stream|mutex_stream|coil_turns|mutex_turns";

using mutex_pool = exec_bench::mutex_pool<std::function<void()>>;

// Written by the pool's thread only.
class counter {
public:
    void add() { n_.store(n_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
    void wait_for(long n) const {
        while (n_.load(std::memory_order_acquire) != n) {
        }
    }

private:
    alignas(64) std::atomic<long> n_{0};
};

template <class Pool>
int undisturbed(long count) {
    Pool pool(1);
    counter ran;
    long given = 0;
    constexpr long lot = 1000;
    exec_bench::stopwatch watch;
    for (long measured = -lot; measured < count; measured += lot) {
        std::binary_semaphore begun(0);
        std::binary_semaphore may_end(0);
        pool.execute([&] {
            begun.release();
            may_end.acquire();
        });
        begun.acquire();
        if (measured >= 0) { // the first run warms up the allocators
            watch.start();
        }
        for (long i = 0; i < lot; ++i) {
            pool.execute([&ran] { ran.add(); });
        }
        if (measured >= 0) {
            watch.stop();
        }
        given += lot;
        may_end.release();
        ran.wait_for(given);
    }
    return watch.report(static_cast<double>(given - lot));
}

/// `turns`: each function is submitted after the previous one has run.
template <class Pool, bool turns>
int disturbed(long count) {
    Pool pool(1);
    counter ran;
    exec_bench::stopwatch watch;
    watch.start();
    for (long i = 0; i < count; ++i) {
        pool.execute([&ran] { ran.add(); });
        if (turns) {
            ran.wait_for(i + 1);
        }
    }
    ran.wait_for(count);
    watch.stop();
    return watch.report(static_cast<double>(count));
}

} // namespace

int main(int argc, char** argv) {
    const variants::options o = variants::parse(argc, argv, names);
    pin_this_thread(o.cpus[0], o.cpus[1]);
    if (o.variant == "coil") {
        return undisturbed<coil::thread_pool>(o.count);
    }
    if (o.variant == "mutex") {
        return undisturbed<mutex_pool>(o.count);
    }
    if (o.variant == "coil_stream") {
        return disturbed<coil::thread_pool, false>(o.count);
    }
    if (o.variant == "mutex_stream") {
        return disturbed<mutex_pool, false>(o.count);
    }
    if (o.variant == "coil_turns") {
        return disturbed<coil::thread_pool, true>(o.count);
    }
    if (o.variant == "mutex_turns") {
        return disturbed<mutex_pool, true>(o.count);
    }
    variants::unknown(names);
}
