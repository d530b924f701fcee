// A coroutine that moves back and forth between two contexts.
//
//     spin: both contexts spin, so that a hop needs no system call
//     park: both contexts sleep as soon as they are idle, so that each hop wakes one

#include "hops.hpp"

#include <coil/coil.hpp>
#include <coil/context/resume_on.hpp>

#include <cstdint>

namespace {

// The system calls that moving can cost: to wait, and to wake a waiter.
std::uint64_t system_calls(const coil::io_context& a, const coil::io_context& b) {
    std::uint64_t sum = 0;
    for (const coil::io_context* each : {&a, &b}) {
        const coil::context_metrics m = each->metrics();
        sum += m.enters + m.wake_ups_sent;
    }
    return sum;
}

// Ends on `a`.
coil::task<double> travel(coil::io_context& a, coil::io_context& b, hops::measurement& measured) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    for (unsigned i = 0; i < measured.round_trips(); ++i) {
        co_await coil::resume_on(b);
        co_await coil::resume_on(a);
        if (measured.made(i)) {
            begin = end;
            end = system_calls(a, b);
        }
    }
    co_return static_cast<double>(end - begin);
}

} // namespace

int main(int argc, char** argv) {
    const hops::options o = hops::parse_options(argc, argv, {"spin", "park"});
    coil::io_context_options each;
    // Long enough that neither stops spinning while the other is preempted.
    each.idle = o.variant == "spin" ? coil::idle_policy::spin(std::chrono::seconds(1))
                                    : coil::idle_policy::park();
    each.cpu_affinity = o.cpus[0];
    coil::io_context a(each);
    each.cpu_affinity = o.cpus[1];
    coil::io_context b(each);
    a.start();
    b.start();
    hops::measurement measured(o);
    const double calls = a.spawn(travel(a, b, measured)).get();
    // stop() ends a long spin; join() would wait for its end.
    a.stop();
    b.stop();
    a.join();
    b.join();
    return measured.report(calls);
}
