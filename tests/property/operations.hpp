#pragma once

#include "property/world.hpp"
#include "support/run.hpp"

#include <chrono>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <poll.h>

// Single operations, and the ways to await one.

namespace property {

namespace io = coil::io;

/// Whether an operation may wait forever. For one that blocks a worker thread of the kernel, a
/// timeout inside a chain does not help: the kernel arms it only when the call returns (on
/// Linux 6.18).
enum class waiting : std::uint8_t { no, yes, in_a_worker };

/// Creates an operation from the available operands and passes it to `use`.
template <class Make>
struct single {
    waiting kind;
    Make make;
};

/// The operands of an operation.
struct operand {
    world& w;
    random_source& r;
    lease& buffer;

    std::size_t size() const { return r.between(1, 1024); }
};

/// To add a kind of single operation, add one entry here. It is then awaited alone and in chains,
/// with and without timeouts, cancelled, dropped, and destroyed while it waits.
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
    single{waiting::no,
           [](operand, auto use) { use(io::openat_direct(AT_FDCWD, "/dev/null", O_RDWR)); }},
    single{waiting::no, [](operand, auto use) { use(io::socket_direct(AF_UNIX, SOCK_STREAM)); }},
    single{waiting::no, [](operand o, auto use) { use(io::register_file(o.w.pipe().in)); }},
    single{waiting::yes,
           [](operand o, auto use) { use(io::accept_direct(o.w.listener().socket)); }},
};

inline constexpr std::size_t single_count = std::tuple_size_v<decltype(single_operations)>;

/// A random operation, passed to `use(operation, buffer, waiting)`.
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

/// What the receiver of a result must do with it.
enum class result_is : std::uint8_t { a_number, a_descriptor, a_direct_descriptor };

template <class Op>
inline constexpr result_is result_of = result_is::a_number;
template <>
inline constexpr result_is result_of<coil::descriptor_operation> = result_is::a_descriptor;
template <>
inline constexpr result_is result_of<io::direct_operation> = result_is::a_direct_descriptor;
template <>
inline constexpr result_is result_of<decltype(io::register_file(0))> =
    result_is::a_direct_descriptor;

inline task<> close_result(world& w, result_is kind, int result) {
    if (kind == result_is::a_descriptor && result >= 0) {
        sys::close(result);
    } else if (kind == result_is::a_direct_descriptor && result >= 0) {
        await_probe probe(w);
        const int closed = co_await io::close(io::direct_descriptor(result));
        probe.resumed();
        // A direct descriptor that is not closed here is closed with the ring.
        EXPECT_TRUE(closed == 0 || closed == -ECANCELED || closed == -ETIMEDOUT || w.faulty)
            << closed;
    }
}

template <class Awaitable>
task<int> await_last(world& w, lease buffer, result_is kind, Awaitable operation) {
    const witness here(w);
    await_probe probe(w);
    const int result = co_await std::move(operation);
    probe.resumed();
    buffer.check_received(result);
    EXPECT_GT(result, -4096);
    co_await close_result(w, kind, result);
    co_return result;
}

/// Awaits a chain whose result is that of another operation.
template <class Awaitable>
task<int> await_other(world& w, lease buffer, Awaitable operation) {
    const witness here(w);
    const lease kept = std::move(buffer);
    await_probe probe(w);
    const int result = co_await std::move(operation);
    probe.resumed();
    EXPECT_LE(result, 0); // a nop's or a failure
    co_return result;
}

/// A barrier may wait for everything in flight: a program without a stop() therefore uses timeouts.
inline bool may_drain(const world& w, random_source& r) { return w.finite || r.one_in(8); }

/// The ways to await an operation to its end. In a program that ends by itself, an operation that
/// may wait has a timeout.
template <class Op>
task<int> await_somehow(world& w, random_source& r, Op op, lease buffer, waiting kind) {
    constexpr result_is result = result_of<Op>;
    const bool limit = w.finite && kind != waiting::no;
    const unsigned ways = !limit ? 20 : kind == waiting::in_a_worker ? 7 : 10;
    const auto time = random_time(r);
    switch (r.below(ways)) {
    case 0:
        co_return co_await await_last(w, std::move(buffer), result,
                                      coil::timeout(std::move(op), time));
    case 1:
        co_return co_await await_last(w, std::move(buffer), result,
                                      coil::timeout(io::nop() && std::move(op), time));
    case 2:
        co_return co_await await_other(w, std::move(buffer),
                                       coil::timeout(std::move(op) && io::nop(), time));
    case 3:
        co_return co_await await_other(
            w, std::move(buffer), coil::timeout(coil::hard_link(std::move(op), io::nop()), time));
    case 4:
        co_return co_await await_last(
            w, std::move(buffer), result,
            coil::timeout(coil::hard_link(io::nop(), std::move(op)), time));
    case 5:
        if (may_drain(w, r)) {
            co_return co_await await_last(w, std::move(buffer), result,
                                          io::drain(coil::timeout(std::move(op), time)));
        }
        co_return co_await await_last(w, std::move(buffer), result,
                                      coil::timeout(std::move(op), time));
    case 6:
        co_return co_await await_last(w, std::move(buffer), result,
                                      coil::timeout(io::force_async(std::move(op)), time));
    case 7:
        co_return co_await await_other(w, std::move(buffer),
                                       coil::timeout(std::move(op), time) && io::nop());
    case 8:
        co_return co_await await_last(w, std::move(buffer), result,
                                      io::nop() && coil::timeout(std::move(op), time));
    case 9:
        co_return co_await await_other(
            w, std::move(buffer), coil::hard_link(coil::timeout(std::move(op), time), io::nop()));
    case 10:
        co_return co_await await_other(w, std::move(buffer),
                                       std::move(op) && io::fsync(w.file()) && io::nop());
    case 11:
        co_return co_await await_last(w, std::move(buffer), result, io::nop() && std::move(op));
    case 12:
        co_return co_await await_other(
            w, std::move(buffer), coil::hard_link(std::move(op), io::fsync(w.file()), io::nop()));
    case 13:
        if (may_drain(w, r)) {
            co_return co_await await_last(w, std::move(buffer), result, io::drain(std::move(op)));
        }
        co_return co_await await_last(w, std::move(buffer), result, std::move(op));
    case 14:
        co_return co_await await_last(w, std::move(buffer), result, io::force_async(std::move(op)));
    default:
        co_return co_await await_last(w, std::move(buffer), result, std::move(op));
    }
}

/// Awaits an operation in a coroutine that is destroyed before it ends.
template <class Op>
coil_test::manual await_until_destroyed(world& w, lease buffer, Op op, int style,
                                        std::chrono::microseconds limit) {
    const witness here(w);
    const lease kept = std::move(buffer);
    await_probe probe(w);
    int result = -1;
    result_is kind = result_of<Op>;
    switch (style) {
    case 0:
        result = co_await (std::move(op) && io::nop());
        kind = result_is::a_number;
        break;
    case 1:
        result = co_await coil::timeout(std::move(op), limit);
        break;
    case 2:
        result = co_await (coil::timeout(std::move(op), limit) && io::nop() && io::nop());
        kind = result_is::a_number;
        break;
    case 3:
        result = co_await coil::hard_link(std::move(op), io::nop());
        kind = result_is::a_number;
        break;
    case 4:
        result = co_await io::drain(std::move(op));
        break;
    case 5:
        result = co_await io::force_async(std::move(op));
        break;
    default:
        result = co_await std::move(op);
    }
    probe.resumed();
    if (kind == result_is::a_descriptor && result >= 0) {
        sys::close(result);
    }
}

} // namespace property
