// The sleepers on coil: one task each, one io_context.

#include "sleepers.hpp"

#include <coil/coil.hpp>

namespace {

coil::task<> sleeper(sleepers::workload& work, unsigned index) {
    for (unsigned round = 0; round < work.rounds(); ++round) {
        const auto delay = work.delay(index, round);
        const auto due = sleepers::clock::now() + delay;
        work.falls_asleep();
        co_await coil::sleep_until(due);
        work.woke(due);
    }
}

coil::task<> sampler(sleepers::workload& work) {
    work.sample_memory();
    co_return;
}

} // namespace

int main(int argc, char** argv) {
    sleepers::workload work{sleepers::parse_options(argc, argv)};
    coil::io_context_options options;
    options.timer_slack = std::chrono::microseconds(work.settings().slack_us);
    coil::io_context context(options);
    work.begin();
    for (unsigned i = 0; i < work.count(); ++i) {
        context.co_spawn(sleeper(work, i));
    }
    if (work.settings().memory) {
        context.co_spawn(sampler(work));
    }
    context.run();
    return work.report("coil");
}
