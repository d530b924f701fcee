// The cost of a lock and its unlock.
//
//     free:          an uncontended coil::mutex
//     std_free:      an uncontended std::mutex
//     contended:     a coil::mutex, four coroutines on two contexts
//     std_contended: a std::mutex, two threads
//
// The contended variants increment a counter; all participants end when it reaches COUNT.

#include "measure.hpp"

#include <coil/coil.hpp>

#include <cstdio>
#include <functional>
#include <latch>
#include <mutex>
#include <thread>

namespace {

constexpr const char* names = "free|std_free|contended|std_contended";

coil::task<> locks_alone(coil::mutex& m, long count, long& sum) {
    for (long i = 0; i < count; ++i) {
        co_await m.lock();
        ++sum;
        m.unlock();
    }
}

coil::task<> contends(coil::mutex& m, long count, long& sum, long& mine) {
    for (;;) {
        co_await m.lock();
        const bool over = sum == count;
        if (!over) {
            ++sum;
            ++mine;
        }
        m.unlock();
        if (over) {
            break;
        }
    }
}

int check(long sum, long count) {
    if (sum != count) {
        std::fprintf(stderr, "counted to %ld, not to %ld\n", sum, count);
        return 1;
    }
    return 0;
}

int contended(const variants::options& o) {
    coil::mutex m;
    long sum = 0;
    std::vector<long> shares(4);
    coil::io_context_options pinned[2];
    pinned[0].cpu_affinity = o.cpus[0];
    pinned[1].cpu_affinity = o.cpus[1];
    coil::io_context one(pinned[0]);
    coil::io_context two(pinned[1]);
    std::latch ready(3);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        (i % 2 == 0 ? one : two).co_spawn(contends(m, o.count, sum, shares[i]));
    }
    const auto runs = [&ready](coil::io_context& ctx) {
        ready.arrive_and_wait();
        ctx.run();
    };
    std::thread first(runs, std::ref(one));
    std::thread second(runs, std::ref(two));
    const sync_bench::stopwatch watch;
    ready.arrive_and_wait();
    first.join();
    second.join();
    return check(sum, o.count) + watch.report(o.count, shares);
}

int std_contended(const variants::options& o) {
    std::mutex m;
    long sum = 0;
    std::vector<long> shares(2);
    std::latch ready(3);
    const auto locks = [&](int cpu, long& mine) {
        pin_this_thread(cpu);
        ready.arrive_and_wait();
        for (;;) {
            const std::lock_guard guard(m);
            if (sum == o.count) {
                break;
            }
            ++sum;
            ++mine;
        }
    };
    std::thread first(locks, o.cpus[0], std::ref(shares[0]));
    std::thread second(locks, o.cpus[1], std::ref(shares[1]));
    const sync_bench::stopwatch watch;
    ready.arrive_and_wait();
    first.join();
    second.join();
    return check(sum, o.count) + watch.report(o.count, shares);
}

} // namespace

int main(int argc, char** argv) {
    const variants::options o = variants::parse(argc, argv, names);
    long sum = 0;
    if (o.variant == "free") {
        pin_this_thread(o.cpus[0]);
        coil::mutex m;
        coil::run(locks_alone(m, o.count / 100 + 1, sum));
        sum = 0;
        const sync_bench::stopwatch watch;
        coil::run(locks_alone(m, o.count, sum));
        return check(sum, o.count) + watch.report(o.count);
    }
    if (o.variant == "std_free") {
        pin_this_thread(o.cpus[0]);
        std::mutex m;
        const sync_bench::stopwatch watch;
        for (long i = 0; i < o.count; ++i) {
            m.lock();
            ++sum;
            asm volatile("" : "+m"(sum));
            m.unlock();
        }
        return check(sum, o.count) + watch.report(o.count);
    }
    if (o.variant == "contended") {
        return contended(o);
    }
    if (o.variant == "std_contended") {
        return std_contended(o);
    }
    variants::unknown(names);
}
