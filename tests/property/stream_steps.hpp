#pragma once

#include "property/eager_steps.hpp"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

// Multishot streams, and the buffers that they return.

namespace property {

/// The next result, perhaps with a timeout; always with one in programs without a stop().
template <class Stream>
auto next_of(world& w, random_source& r, Stream& stream) {
    return w.finite || r.one_in(2) ? timeout(stream.next(), random_time(r)) : stream.next();
}

/// Holds a buffer for a while, filled with a pattern of its own: neither the kernel nor another
/// holder may write to it meanwhile (G2).
class buffer_holder {
public:
    buffer_holder(coil::buffer_lease data, random_source& r)
        : lease_(std::move(data)), mark_(static_cast<std::byte>(r.below(256))) {
        std::ranges::fill(lease_.bytes(), mark_);
    }
    buffer_holder(buffer_holder&&) noexcept = default;
    buffer_holder& operator=(buffer_holder&&) = delete;
    ~buffer_holder() {
        if (lease_) {
            EXPECT_TRUE(all_are(lease_.bytes(), mark_)) << "G2: a held buffer was written to";
        }
    }

private:
    coil::buffer_lease lease_;
    std::byte mark_;
};

inline task<> hold_for_a_while(world& w, buffer_holder held, std::chrono::microseconds time) {
    const witness here(w);
    const buffer_holder mine = std::move(held);
    await_probe probe(w);
    co_await coil::sleep_for(time);
    probe.resumed();
}

/// Keeps a buffer here, passes it to another task or thread, or returns it.
inline void keep(world& w, random_source& r, std::vector<buffer_holder>& here,
                 coil::buffer_lease data) {
    switch (r.below(8)) {
    case 0:
        coil::co_spawn(hold_for_a_while(w, {std::move(data), r}, random_time(r)));
        break;
    case 1:
        if (r.one_in(8)) {
            std::thread([held = buffer_holder(std::move(data), r)]() mutable {
                const buffer_holder last = std::move(held);
            }).join();
        }
        break;
    case 2:
    case 3:
        break;
    default:
        here.emplace_back(std::move(data), r);
        if (here.size() > 2) {
            here.pop_back();
        }
    }
}

/// Awaits next() in a coroutine that is destroyed meanwhile, or whose stream is destroyed.
template <class Stream>
coil_test::manual await_next(world& w, Stream& stream, bool closes) {
    const witness here(w);
    await_probe probe(w);
    const auto got = co_await stream.next();
    probe.resumed();
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(got)>, coil::multishot_value>) {
        if (closes && got) {
            sys::close(*got);
        }
    }
}

template <class Stream>
task<> disturb(world& w, random_source& r, std::optional<Stream>& stream, bool closes) {
    std::optional<coil_test::manual> victim;
    victim.emplace(await_next(w, *stream, closes));
    victim->start();
    co_await pause(w, r);
    if (r.one_in(4)) {
        stream.reset();
        co_await pause(w, r);
    }
}

/// Constructs a stream in place.
template <class Make>
struct maker {
    Make& make;
    operator decltype(std::declval<Make&>()())() const { return make(); } // NOLINT: in place
};

/// Receives any bytes of the world: they are all the same.
template <class Make>
task<> receive_some(world& w, random_source& r, Make make) {
    const witness here(w);
    std::vector<buffer_holder> held;
    std::optional<decltype(make())> stream;
    stream.emplace(maker<Make>{make});
    for (unsigned pieces = r.between(1, 5); pieces > 0 && stream; --pieces) {
        if (r.one_in(2)) {
            w.stir(r.between(1, 400));
        }
        if (r.one_in(10)) {
            co_await disturb(w, r, stream, false);
            continue;
        }
        await_probe probe(w);
        auto piece = co_await next_of(w, r, *stream);
        probe.resumed();
        if (piece) {
            const auto bytes = piece->bytes();
            EXPECT_TRUE(all_are(bytes, written)) << "not what was sent";
            EXPECT_EQ(piece.result(), static_cast<int>(bytes.size()));
            if constexpr (requires { *piece; }) {
                keep(w, r, held, *std::move(piece));
            }
        } else {
            EXPECT_LE(piece.result(), 0);
        }
        if (r.one_in(3)) {
            co_await pause(w, r);
        }
    }
}

inline task<> receive_step(world& w, random_source& r, unsigned) {
    switch (r.below(5)) {
    case 0:
        co_await receive_some(w, r, [&w] { return io::read_multishot(w.pipe().in, w.pool()); });
        break;
    case 1:
        co_await receive_some(
            w, r, [&w] { return io::recvmsg_multishot(w.sockets().b, w.pool(), 0, 0, 0); });
        break;
    case 2:
        co_await receive_some(w, r, [&w] { return io::recv_multishot(w.sockets().b, w.pool()); });
        break;
    default:
        co_await receive_some(w, r, [&w] { return io::recv_multishot(w.sockets().a, w.pool()); });
    }
}

inline std::byte in_sequence(std::size_t i) { return static_cast<std::byte>(i % 251); }

/// Receives from the first byte to the last: whatever is cancelled in between, nothing is lost or
/// duplicated, and the order is kept.
template <class Make>
task<> receive_all(world& w, random_source& r, std::size_t total, Make make) {
    const witness here(w);
    std::vector<buffer_holder> held;
    auto stream = make();
    std::size_t at = 0;
    for (unsigned attempts = 40; attempts > 0; --attempts) {
        await_probe probe(w);
        auto piece = co_await next_of(w, r, stream);
        probe.resumed();
        if (piece) {
            bool right = true;
            for (const std::byte b : piece->bytes()) {
                right = right && b == in_sequence(at++);
            }
            EXPECT_TRUE(right) << "lost, twice, or out of order, before byte " << at;
            EXPECT_LE(at, total);
            keep(w, r, held, *std::move(piece));
        } else if (piece.result() == 0) {
            EXPECT_EQ(at, total) << "the end before the last byte";
            break;
        } else {
            EXPECT_TRUE(piece.result() == -ECANCELED || piece.result() == -ETIMEDOUT || w.faulty)
                << piece.result();
            held.clear(); // the stream may have waited for one of these buffers
        }
        if (r.one_in(8)) {
            co_await pause(w, r);
        }
    }
}

inline task<> receive_all_step(world& w, random_source& r, unsigned) {
    std::vector<std::byte> data(r.between(1, 2000));
    for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = in_sequence(i);
    }
    if (r.one_in(2)) {
        coil_test::pipe_pair pipe;
        EXPECT_EQ(sys::write(pipe.out, data.data(), data.size()), std::ssize(data));
        pipe.out.reset();
        co_await receive_all(w, r, data.size(),
                             [&] { return io::read_multishot(pipe.in, w.pool()); });
    } else {
        const coil_test::socket_pair sockets;
        EXPECT_EQ(sys::send(sockets.a, data.data(), data.size(), MSG_NOSIGNAL), std::ssize(data));
        sys::shutdown(sockets.a, SHUT_WR);
        co_await receive_all(w, r, data.size(),
                             [&] { return io::recv_multishot(sockets.b, w.pool()); });
    }
}

inline task<> accept_stream_step(world& w, random_source& r, unsigned) {
    const auto& listener = w.listener();
    const bool direct = r.one_in(4);
    std::vector<coil_test::descriptor> clients;
    std::optional<io::accept_stream> stream;
    const auto make = [&] {
        return direct ? io::accept_multishot_direct(listener.socket)
                      : io::accept_multishot(listener.socket, SOCK_CLOEXEC);
    };
    stream.emplace(maker<decltype(make)>{make});
    for (unsigned peers = r.between(1, 4); peers > 0 && stream; --peers) {
        for (unsigned more = r.below(3); more > 0; --more) {
            const auto& client = clients.emplace_back(
                sys::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK));
            sys::connect(client, reinterpret_cast<const ::sockaddr*>(&listener.address),
                         listener.length);
        }
        if (r.one_in(8)) {
            co_await disturb(w, r, stream, !direct);
            continue;
        }
        await_probe probe(w);
        const int peer = co_await next_of(w, r, *stream);
        probe.resumed();
        co_await close_result(w, direct ? result_is::a_direct_descriptor : result_is::a_descriptor,
                              peer);
    }
}

inline task<> poll_stream_step(world& w, random_source& r, unsigned) {
    const auto make = [&] { return io::poll_multishot(w.pipe().in, POLLIN); };
    std::optional<io::poll_stream> stream;
    stream.emplace(maker<decltype(make)>{make});
    for (unsigned times = r.between(1, 4); times > 0 && stream; --times) {
        if (r.one_in(2)) {
            w.stir(16);
        }
        await_probe probe(w);
        switch (r.below(8)) {
        case 0:
            co_await disturb(w, r, stream, false);
            break;
        case 1:
            co_await io::poll_update(*stream, POLLIN | POLLRDHUP);
            break;
        case 2:
            co_await io::poll_remove(*stream);
            break;
        default: {
            const int events = co_await next_of(w, r, *stream);
            EXPECT_TRUE(events < 0 || (events & (POLLIN | POLLHUP | POLLERR)) != 0) << events;
        }
        }
        probe.resumed();
    }
}

inline task<> tick_step(world& w, random_source& r, unsigned) {
    auto ticks = io::timeout_multishot(50us + random_time(r));
    for (unsigned times = r.between(1, 3); times > 0; --times) {
        await_probe probe(w);
        const int passed = co_await next_of(w, r, ticks);
        probe.resumed();
        EXPECT_TRUE(passed > 0 || passed == -ECANCELED || passed == -ETIMEDOUT || w.faulty)
            << passed;
    }
}

} // namespace property
