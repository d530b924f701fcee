// A function that is called on another thread, and back: how long a round trip takes.
//   eventfd: the floor. Two threads by hand: each write(2)s to an eventfd, on whose read(2) the
//            other sleeps; the second calls the function in between
//   blocking: `co_await blocking(pool, f)`; the context waits as it does by default
//   parked:  the same on a context that sleeps at once, as the floor does
// The ways take turns, ROUNDS times COUNT round trips each. One JSON object: the median over the
// rounds of each way's nanoseconds per round trip, and of the ratio to the eventfd's of that round.

#include "../lib/usage.hpp"

#include <coil/coil.hpp>
#include <coil/exec/blocking.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace {

using clock_type = std::chrono::steady_clock;

struct options {
    unsigned rounds = 0;
    unsigned count = 0;
    int cpus[2] = {-1, -1};
};

void pin(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(cpu), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) {
        std::perror("sched_setaffinity");
        std::exit(1);
    }
}

/// What is called: it proves that it was called each time.
struct work {
    unsigned calls = 0;
    unsigned operator()() { return ++calls; }
};

class counter {
public:
    counter() : fd_(eventfd(0, EFD_CLOEXEC)) {
        if (fd_ < 0) {
            std::perror("eventfd");
            std::exit(1);
        }
    }
    ~counter() { close(fd_); }
    counter(const counter&) = delete;
    counter& operator=(const counter&) = delete;

    void send() const {
        const std::uint64_t one = 1;
        if (write(fd_, &one, sizeof one) != sizeof one) {
            std::perror("write");
            std::exit(1);
        }
    }
    void await() const {
        std::uint64_t count = 0;
        if (read(fd_, &count, sizeof count) != sizeof count || count != 1) {
            std::perror("read");
            std::exit(1);
        }
    }

private:
    int fd_;
};

struct measured {
    double ns = 0;
    double cpu_ns = 0;
};

/// `times` round trips, those before them that warm up not counted.
class measurement {
public:
    explicit measurement(unsigned count) : count_(count) {}
    static unsigned warm_up(unsigned count) { return count / 10 + 1; }

    void begin() {
        cpu_ = usage::cpu_seconds();
        begin_ = clock_type::now();
    }
    measured end() const {
        const double wall =
            std::chrono::duration<double, std::nano>(clock_type::now() - begin_).count();
        return {wall / count_, (usage::cpu_seconds() - cpu_) * 1e9 / count_};
    }

private:
    unsigned count_;
    double cpu_ = 0;
    clock_type::time_point begin_;
};

void check(unsigned called, unsigned due) {
    if (called != due) {
        std::fprintf(stderr, "call %u when %u was due\n", called, due);
        std::exit(1);
    }
}

measured by_eventfd(const options& o) {
    const unsigned warm_up = measurement::warm_up(o.count);
    counter there;
    counter back;
    work f;
    unsigned result = 0;
    std::thread other([&] {
        pin(o.cpus[1]);
        for (unsigned i = 0; i < warm_up + o.count; ++i) {
            there.await();
            result = f();
            back.send();
        }
    });
    measurement m(o.count);
    for (unsigned i = 1; i <= warm_up + o.count; ++i) {
        there.send();
        back.await();
        check(result, i);
        if (i == warm_up) {
            m.begin();
        }
    }
    const measured took = m.end();
    other.join();
    return took;
}

coil::task<measured> round_trips(const options& o, coil::blocking_pool& pool) {
    const unsigned warm_up = measurement::warm_up(o.count);
    co_await coil::blocking(pool, [&] { pin(o.cpus[1]); });
    work f;
    measurement m(o.count);
    for (unsigned i = 1; i <= warm_up + o.count; ++i) {
        check(co_await coil::blocking(pool, [&f] { return f(); }), i);
        if (i == warm_up) {
            m.begin();
        }
    }
    co_return m.end();
}

measured by_coil(const options& o, coil::idle_policy idle) {
    coil::blocking_pool pool(1);
    coil::io_context_options how;
    how.idle = idle;
    coil::io_context ctx(how);
    coil::join_handle<measured> h = ctx.spawn(round_trips(o, pool));
    ctx.run();
    return h.get();
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

struct results {
    std::vector<double> ns;
    std::vector<double> cpu_ns;
    std::vector<double> ratio;

    void add(const measured& m, double floor_ns) {
        ns.push_back(m.ns);
        cpu_ns.push_back(m.cpu_ns);
        ratio.push_back(m.ns / floor_ns);
    }
    void print(const char* key, const char* after) const {
        std::printf("\"%s\": {\"ns\": %.1f, \"cpu_ns\": %.1f, \"ratio\": %.3f}%s", key, median(ns),
                    median(cpu_ns), median(ratio), after);
    }
};

} // namespace

int main(int argc, char** argv) {
    options o;
    if (argc == 5) {
        o.rounds = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
        o.count = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
        o.cpus[0] = std::atoi(argv[3]);
        o.cpus[1] = std::atoi(argv[4]);
    }
    if (o.rounds == 0 || o.count == 0) {
        std::fprintf(stderr, "usage: %s ROUNDS COUNT CPU CPU\n", argv[0]);
        return 2;
    }
    pin(o.cpus[0]);
    results floor;
    results coil_default;
    results coil_parked;
    for (unsigned round = 0; round < o.rounds; ++round) {
        const measured bare = by_eventfd(o);
        floor.add(bare, bare.ns);
        coil_default.add(by_coil(o, coil::io_context_options().idle), bare.ns);
        coil_parked.add(by_coil(o, coil::idle_policy::park()), bare.ns);
    }
    std::printf("{");
    floor.print("eventfd", ", ");
    coil_default.print("blocking", ", ");
    coil_parked.print("parked", "}\n");
    return 0;
}
