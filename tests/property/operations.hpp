#pragma once

#include "property/world.hpp"
#include "support/run.hpp"

#include <chrono>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <poll.h>

// Single operations, and the ways in which one can be awaited.

namespace property {

namespace io = coil::io;

/// Whether an operation may wait for ever. For one that blocks a worker thread of the kernel, a
/// limit inside of a chain does not count: measured on Linux 6.18, the kernel arms it when the call
/// returns.
enum class waiting : std::uint8_t { no, yes, in_a_worker };

/// Makes an operation out of what is there and hands it to `use`.
template <class Make>
struct single {
    waiting kind;
    Make make;
};

/// What an operation can be made of.
struct operand {
    world& w;
    random_source& r;
    lease& buffer;

    std::size_t size() const { return r.between(1, 1024); }
};

/// A new kind of single operation is one entry here. It is then awaited alone and in chains, with
/// and without limits, cancelled, dropped, and destroyed while it waits.
inline constexpr auto single_operations = std::tuple{
    single{waiting::no, [](operand, auto use) { use(io::nop()); }},
    single{waiting::yes,
           [](operand o, auto use) { use(io::read(o.w.pipe().in, o.buffer.receive(o.size()))); }},
    single{waiting::yes,
           [](operand o, auto use) { use(io::write(o.w.pipe().out, source_data(o.size()))); }},
    single{waiting::yes,
           [](operand o, auto use) {
               block& b = *o.buffer;
               const auto data = o.buffer.receive(1024);
               b.parts = {::iovec{data.data(), 10}, ::iovec{data.data() + 10, 1000}};
               use(io::readv(o.w.pipe().in, b.parts));
           }},
    single{waiting::yes,
           [](operand o, auto use) { use(io::recv(o.w.sockets().a, o.buffer.receive(o.size()))); }},
    single{waiting::yes,
           [](operand o, auto use) {
               use(io::recv(o.w.sockets().b, o.buffer.receive(o.size()), MSG_WAITALL));
           }},
    single{waiting::yes,
           [](operand o, auto use) { use(io::send(o.w.sockets().b, source_data(o.size()))); }},
    single{waiting::yes,
           [](operand o, auto use) {
               use(io::send(o.w.sockets().a, source_data(o.r.between(1, 60'000))));
           }},
    single{waiting::yes,
           [](operand o, auto use) {
               block& b = *o.buffer;
               b.address_length = sizeof b.address;
               use(io::recvfrom(o.w.sockets().a, o.buffer.receive(o.size()), 0,
                                reinterpret_cast<::sockaddr*>(&b.address), &b.address_length));
           }},
    single{waiting::yes,
           [](operand o, auto use) {
               block& b = *o.buffer;
               const auto data = o.buffer.receive(o.size());
               b.parts[0] = {data.data(), data.size()};
               b.message = {};
               b.message.msg_iov = b.parts.data();
               b.message.msg_iovlen = 1;
               use(io::recvmsg(o.w.sockets().b, &b.message));
           }},
    single{waiting::yes, [](operand o, auto use) { use(io::poll(o.w.pipe().in, POLLIN)); }},
    single{waiting::yes, [](operand o, auto use) { use(io::poll(o.w.other_pipe().in, POLLIN)); }},
    single{waiting::no,
           [](operand o, auto use) {
               use(io::read(o.w.file(), o.buffer.receive(o.size()),
                            static_cast<::off_t>(o.r.below(4096))));
           }},
    single{waiting::no,
           [](operand o, auto use) {
               use(io::write(o.w.file(), source_data(o.size()),
                             static_cast<::off_t>(o.r.below(2048))));
           }},
    single{waiting::no, [](operand o, auto use) { use(io::fsync(o.w.file())); }},
    single{waiting::no,
           [](operand o, auto use) {
               use(io::statx(o.w.file(), "", AT_EMPTY_PATH, STATX_SIZE, &o.buffer->status));
           }},
    single{waiting::no,
           [](operand, auto use) { use(io::openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC)); }},
    single{
        waiting::no,
        [](operand, auto use) { use(io::openat(AT_FDCWD, "/no/such/file", O_RDWR | O_CLOEXEC)); }},
    single{waiting::no,
           [](operand, auto use) { use(io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)); }},
    single{waiting::yes,
           [](operand o, auto use) {
               use(io::accept(o.w.listener().socket, nullptr, nullptr, SOCK_CLOEXEC));
           }},
    single{waiting::in_a_worker,
           [](operand o, auto use) {
               use(io::splice(o.w.pipe().in, nullptr, o.w.other_pipe().out, nullptr, o.size()));
           }},
    single{waiting::no,
           [](operand o, auto use) {
               use(io::tee(o.w.pipe().in, o.w.other_pipe().out, o.size(), SPLICE_F_NONBLOCK));
           }},
};

inline constexpr std::size_t single_count = std::tuple_size_v<decltype(single_operations)>;

/// A random one, handed to `use(operation, buffer, waiting)`.
template <class Use>
void with_random_operation(world& w, random_source& r, Use use) {
    const std::size_t chosen = r.below(static_cast<unsigned>(single_count));
    const auto pick = [&]<std::size_t... I>(std::index_sequence<I...>) {
        const auto one = [&](const auto& kind, std::size_t index) {
            if (index == chosen) {
                lease buffer(w);
                kind.make(operand{w, r, buffer},
                          [&](auto op) { use(std::move(op), std::move(buffer), kind.kind); });
            }
        };
        (one(std::get<I>(single_operations), I), ...);
    };
    pick(std::make_index_sequence<single_count>{});
}

inline std::chrono::microseconds random_time(random_source& r) {
    constexpr unsigned usual = 300;
    return std::chrono::microseconds(r.one_in(4) ? 0 : r.below(usual));
}

/// Whether the descriptor in a result has to be closed by whoever got it.
template <class Op>
inline constexpr bool makes_descriptor = std::is_same_v<Op, coil::descriptor_operation>;

template <class Op, class Awaitable>
task<int> await_last(world& w, lease buffer, Awaitable operation) {
    const witness here(w);
    await_probe probe(w);
    const int result = co_await std::move(operation);
    probe.resumed();
    buffer.check_received(result);
    EXPECT_GT(result, -4096);
    if (makes_descriptor<Op> && result >= 0) {
        ::close(result);
    }
    co_return result;
}

/// In a chain whose result is another's.
template <class Awaitable>
task<int> await_other(world& w, lease buffer, Awaitable operation) {
    const witness here(w);
    const lease kept = std::move(buffer);
    await_probe probe(w);
    const int result = co_await std::move(operation);
    probe.resumed();
    EXPECT_LE(result, 0) << "a nop's or a failure";
    co_return result;
}

/// The ways to await an operation to its end. In a program that ends by itself, an operation that
/// may wait has a limit.
template <class Op>
task<int> await_somehow(world& w, random_source& r, Op op, lease buffer, waiting kind) {
    const bool limit = w.finite && kind != waiting::no;
    const unsigned ways = !limit ? 9 : kind == waiting::in_a_worker ? 3 : 5;
    switch (r.below(ways)) {
    case 0:
        co_return co_await await_last<Op>(w, std::move(buffer),
                                          coil::timeout(std::move(op), random_time(r)));
    case 1:
        co_return co_await await_last<Op>(
            w, std::move(buffer), coil::timeout(io::nop() && std::move(op), random_time(r)));
    case 2:
        co_return co_await await_other(w, std::move(buffer),
                                       coil::timeout(std::move(op) && io::nop(), random_time(r)));
    case 3:
        co_return co_await await_other(w, std::move(buffer),
                                       coil::timeout(std::move(op), random_time(r)) && io::nop());
    case 4:
        co_return co_await await_last<Op>(
            w, std::move(buffer), io::nop() && coil::timeout(std::move(op), random_time(r)));
    case 5:
        co_return co_await await_other(w, std::move(buffer),
                                       std::move(op) && io::fsync(w.file()) && io::nop());
    case 6:
        co_return co_await await_last<Op>(w, std::move(buffer), io::nop() && std::move(op));
    default:
        co_return co_await await_last<Op>(w, std::move(buffer), std::move(op));
    }
}

/// The same in a coroutine that somebody destroys before it ends.
template <class Op>
coil_test::manual await_until_destroyed(world& w, lease buffer, Op op, int style,
                                        std::chrono::microseconds limit) {
    const witness here(w);
    const lease kept = std::move(buffer);
    await_probe probe(w);
    int result = -1;
    switch (style) {
    case 0:
        result = co_await (std::move(op) && io::nop());
        break;
    case 1:
        result = co_await coil::timeout(std::move(op), limit);
        break;
    case 2:
        result = co_await (coil::timeout(std::move(op), limit) && io::nop() && io::nop());
        break;
    default:
        result = co_await std::move(op);
    }
    probe.resumed();
    if (makes_descriptor<Op> && result >= 0 && style != 0 && style != 2) {
        ::close(result);
    }
}

} // namespace property
