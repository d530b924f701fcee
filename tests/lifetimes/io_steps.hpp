#pragma once

#include "lifetimes/world.hpp"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>

// Steps that wait for the kernel or for time.

namespace lifetime_test {

inline task<> nop_step(world& w, const step&) {
    const witness here(w);
    co_await io::nop();
}

inline task<> sleep_step(world& w, const step& s) {
    const witness here(w);
    if (s.variant % 4 == 0) {
        co_await coil::sleep_until(std::chrono::steady_clock::now() + short_time(s));
    } else {
        co_await coil::sleep_for(s.time);
    }
}

inline task<> yield_step(world& w, const step& s) {
    const witness here(w);
    for (unsigned n = s.variant % 4; n > 0; --n) {
        co_await coil::yield();
    }
}

inline task<> read_step(world& w, const step& s) {
    const witness here(w);
    std::array<char, 64> buffer{};
    switch (s.variant % 4) {
    case 0:
        co_await io::read(w.pipe(s.index).in, buffer);
        break;
    case 1:
        co_await io::recv(w.sockets(s.index).a, buffer);
        break;
    case 2:
        co_await coil::timeout(io::read(w.pipe(s.index).in, buffer), s.time);
        break;
    default:
        co_await (io::nop() && io::recv(w.sockets(s.index).b, buffer));
    }
}

inline task<> write_step(world& w, const step& s) {
    const witness here(w);
    const std::array<char, 2000> bytes{};
    switch (s.variant % 4) {
    case 0:
        co_await io::write(w.pipe(s.index).out, bytes);
        break;
    case 1:
        co_await io::send(w.sockets(s.index).b, bytes);
        break;
    case 2:
        co_await coil::timeout(io::send(w.sockets(s.index).a, bytes), s.time);
        break;
    default:
        w.stir(s.index);
        w.put(w.sockets(s.index).a);
    }
}

inline task<> poll_step(world& w, const step& s) {
    const witness here(w);
    if (s.variant % 2 == 0) {
        co_await io::poll(w.pipe(s.index).in, POLLIN);
    } else {
        co_await coil::timeout(io::poll(w.sockets(s.index).a, POLLIN), s.time);
    }
}

inline task<> eager_step(world& w, const step& s) {
    const witness here(w);
    std::array<char, 64> buffer{};
    auto pending = coil::eager(io::read(w.pipe(s.index).in, buffer));
    switch (s.variant % 4) {
    case 0:
        break; // dropped
    case 1:
        co_await coil::yield();
        pending.cancel();
        co_await pending;
        break;
    case 2:
        co_await coil::sleep_for(s.time);
        break;
    default:
        co_await pending;
    }
}

/// Takes some elements of a stream, with or without a limit.
template <class Stream>
task<> take_some(world& w, const step& s, Stream& stream) {
    const witness here(w);
    for (unsigned n = s.variant % 4; n > 0; --n) {
        if (s.index % 3 == 0) {
            static_cast<void>(co_await timeout(stream.next(), short_time(s)));
        } else if (s.index % 3 == 1) {
            static_cast<void>(
                co_await coil::when_any(stream.next(), coil::sleep_for(short_time(s))));
        } else {
            static_cast<void>(co_await stream.next());
        }
    }
}

/// A few buffers, some of them held: the stream runs out of buffers and waits for one.
inline task<> recv_multishot_step(world& w, const step& s) {
    const witness here(w);
    coil::buffer_pool pool(2, 64);
    std::vector<coil::buffer_lease> held;
    auto stream = io::recv_multishot(w.sockets(s.index).a, pool);
    for (unsigned n = s.variant % 5; n > 0; --n) {
        w.put(w.sockets(s.index).b);
        auto piece = co_await stream.next();
        if (piece && n % 2 == 0) {
            held.push_back(*std::move(piece));
        }
    }
    if (s.variant % 3 == 0) {
        static_cast<void>(co_await stream.next());
    }
}

inline task<> poll_multishot_step(world& w, const step& s) {
    const witness here(w);
    auto stream = io::poll_multishot(w.pipe(s.index).in, POLLIN);
    w.stir(s.index);
    co_await take_some(w, s, stream);
}

inline task<> ticks_step(world& w, const step& s) {
    const witness here(w);
    auto stream = io::timeout_multishot(50us + short_time(s));
    co_await take_some(w, s, stream);
}

/// A coroutine of another type: it is never asked to stop, and is destroyed while it waits.
inline coil_test::manual waits_alone(world& w, const step& s) {
    const witness here(w);
    std::array<char, 64> buffer{};
    switch (s.variant % 3) {
    case 0:
        co_await coil::sleep_for(s.time);
        break;
    case 1:
        co_await io::read(w.pipe(s.index).in, buffer);
        break;
    default:
        co_await w.events.at(s.index % w.events.size()).wait();
    }
}

inline task<> foreign_step(world& w, const step& s) {
    const witness here(w);
    const coil_test::manual other = waits_alone(w, s);
    other.start();
    co_await coil::sleep_for(short_time(s));
}

} // namespace lifetime_test
