// The sleepers on standalone Asio: one coroutine and one steady_timer each.

#include "sleepers.hpp"

#include <coroutine>
#include <exception>
#include <utility>

#include <asio.hpp>

namespace {

asio::awaitable<void> sleeper(sleepers::workload& work, unsigned index) {
    asio::steady_timer timer{co_await asio::this_coro::executor};
    for (unsigned round = 0; round < work.rounds(); ++round) {
        const auto delay = work.delay(index, round);
        const auto due = sleepers::clock::now() + delay;
        work.falls_asleep();
        timer.expires_at(due);
        co_await timer.async_wait(asio::use_awaitable);
        work.woke(due);
    }
}

asio::awaitable<void> sampler(sleepers::workload& work) {
    work.sample_memory();
    co_return;
}

} // namespace

int main(int argc, char** argv) {
    sleepers::workload work{sleepers::parse_options(argc, argv)};
    asio::io_context context{1};
    work.begin();
    for (unsigned i = 0; i < work.count(); ++i) {
        asio::co_spawn(context, sleeper(work, i), asio::detached);
    }
    if (work.settings().memory) {
        asio::co_spawn(context, sampler(work), asio::detached);
    }
    context.run();
    return work.report("asio");
}
