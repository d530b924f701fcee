// Stop on SIGINT or SIGTERM: take no more work, let running jobs finish, then cancel the rest.
#include <coil/coil.hpp>

#include <csignal>
#include <cstdio>
#include <system_error>

using namespace coil;
using namespace std::chrono_literals;

task<> job(std::chrono::milliseconds takes) {
    std::printf("%s\n", co_await sleep_for(takes) == 0 ? "finished" : "cancelled");
}

task<> work_comes_in(scope& jobs) {
    jobs.spawn(job(20ms));
    jobs.spawn(job(1h));
    co_await sleep_for(1ms);
    std::raise(SIGTERM); // the example signals itself
    co_await sleep_for(1h);
}

task<> co_main(const signal_set& signals) {
    scope jobs;
    co_await when_any(work_comes_in(jobs), signals.next());
    try {
        co_await timeout(jobs.join(), 100ms);
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::timed_out) {
            throw;
        }
    }
}

int main() {
    const signal_set signals{SIGINT, SIGTERM}; // before other threads are started
    coil::run(co_main(signals));
}
