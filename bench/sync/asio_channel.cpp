// The variant "one" of channels.cpp on standalone Asio: experimental::channel with capacity 64, a
// coroutine at either end.

#include "measure.hpp"

#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>

#include <asio.hpp>
#include <asio/experimental/channel.hpp>

namespace {

using channel = asio::experimental::channel<void(asio::error_code, long)>;

asio::awaitable<void> sends(channel& out, long count) {
    for (long i = 1; i <= count; ++i) {
        co_await out.async_send(asio::error_code{}, i, asio::use_awaitable);
    }
}

asio::awaitable<void> receives(channel& in, long count, std::uint64_t& sum) {
    for (long i = 0; i < count; ++i) {
        sum += static_cast<std::uint64_t>(co_await in.async_receive(asio::use_awaitable));
    }
}

} // namespace

int main(int argc, char** argv) {
    const variants::options o = variants::parse(argc, argv, "one");
    pin_this_thread(o.cpus[0]);
    asio::io_context context{1};
    channel ch{context, 64};
    std::uint64_t sum = 0;
    asio::co_spawn(context, receives(ch, o.count, sum), asio::detached);
    asio::co_spawn(context, sends(ch, o.count), asio::detached);
    const sync_bench::stopwatch watch;
    context.run();
    const auto n = static_cast<std::uint64_t>(o.count);
    if (sum != n * (n + 1) / 2) {
        std::fprintf(stderr, "elements were lost\n");
        return 1;
    }
    return watch.report(o.count);
}
