#pragma once

#include "lifetimes/io_steps.hpp"

#include <array>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// Steps that use the less common operations of the ring: each kind of awaiter of coil::io.

namespace lifetime_test {

inline task<> modifiers_step(world& w, const step& s) {
    const witness here(w);
    std::array<char, 64> buffer{};
    const int in = w.pipe(s.index).in;
    switch (s.variant % 5) {
    case 0:
        co_await io::drain(io::nop());
        break;
    case 1:
        co_await coil::timeout(io::drain(io::read(in, buffer)), s.time);
        break;
    case 2:
        co_await io::force_async(io::recv(w.sockets(s.index).a, buffer));
        break;
    case 3:
        co_await coil::hard_link(io::nop(), io::recv(w.sockets(s.index).a, buffer));
        break;
    default:
        co_await coil::timeout_at(io::nop() && io::read(in, buffer) && io::nop(),
                                  std::chrono::steady_clock::now() + s.time);
    }
}

inline task<> cancel_step(world& w, const step& s) {
    const witness here(w);
    const int in = w.pipe(s.index).in;
    auto pending = coil::eager(io::poll(in, POLLIN));
    switch (s.variant % 6) {
    case 0:
        co_await io::cancel(pending);
        co_await pending;
        break;
    case 1:
        co_await io::cancel(io::descriptor(in));
        break;
    case 2:
        co_await io::cancel_all();
        break;
    case 3:
        co_await io::poll_update(pending, POLLIN | POLLPRI);
        co_await pending;
        break;
    case 4:
        co_await io::poll_remove(pending);
        break;
    default: {
        auto events = io::poll_multishot(in, POLLIN);
        static_cast<void>(co_await timeout(events.next(), short_time(s)));
        co_await io::poll_remove(events);
    }
    }
}

inline task<> futex_step(world& w, const step& s) {
    const witness here(w);
    auto& word = w.words.at(s.index % w.words.size());
    switch (s.variant % 4) {
    case 0:
        co_await io::futex_wake(&word, 2);
        break;
    case 1:
        co_await coil::timeout(io::futex_wait(&word, 0), s.time);
        break;
    case 2: {
        std::array<coil::uring::futex_waiter, 2> both{};
        for (std::size_t i = 0; i < both.size(); ++i) {
            both.at(i).uaddr = reinterpret_cast<std::uintptr_t>(&w.words.at(i));
            both.at(i).flags =
                coil::uring::futex_flag::size_u32 | coil::uring::futex_flag::private_;
        }
        co_await io::futex_waitv(both);
        break;
    }
    default:
        co_await io::futex_wait(&word, 0);
    }
}

/// Operations whose result is a descriptor, which is closed if the result is not received.
inline task<> descriptors_step(world& w, const step& s) {
    const witness here(w);
    switch (s.variant % 6) {
    case 0: {
        const io::owned_descriptor file(co_await io::open("/dev/null", O_RDWR | O_CLOEXEC));
        break;
    }
    case 1: {
        auto pending = coil::eager(io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        break; // dropped
    }
    case 2: {
        const io::owned_descriptor file(co_await coil::shield(io::open("/dev/null", O_RDWR)));
        co_await coil::yield();
        break;
    }
    case 3: {
        int ends[2] = {-1, -1};
        if (co_await io::pipe(ends, O_CLOEXEC) == 0) {
            const io::owned_descriptor in(ends[0]);
            const io::owned_descriptor out(ends[1]);
            std::array<char, 8> buffer{};
            co_await io::read(in.native_handle(), buffer);
        }
        break;
    }
    case 4: {
        const auto slot = co_await io::openat_direct(AT_FDCWD, "/dev/null", O_RDWR);
        if (slot) {
            const io::owned_descriptor plain(co_await io::fixed_fd_install(slot));
            co_await io::close_direct(slot);
        }
        break;
    }
    default: {
        const auto slot = co_await io::register_file(w.pipe(s.index).in);
        if (slot) {
            std::array<char, 8> buffer{};
            co_await coil::timeout(io::read(slot, buffer), s.time);
            co_await io::close_direct(slot);
        }
    }
    }
}

inline task<> splice_step(world& w, const step& s) {
    const witness here(w);
    const int in = w.pipe(s.index).in;
    const int out = w.pipe(s.index + 1).out;
    if (s.variant % 2 == 0) {
        co_await io::splice(in, nullptr, out, nullptr, 64);
    } else {
        co_await coil::timeout(io::tee(in, out, 64), s.time);
    }
}

/// Streams of bytes from a pipe that want more buffers than the pool has.
inline task<> read_multishot_step(world& w, const step& s) {
    const witness here(w);
    coil::buffer_pool pool(2, 64);
    auto stream = io::read_multishot(w.pipe(s.index).in, pool);
    w.stir(s.index);
    auto first = co_await timeout(stream.next(), short_time(s));
    co_await take_some(w, s, stream);
}

/// A datagram socket that is connected to itself.
inline coil::net::socket loopback() {
    auto own = coil::net::socket::create_udp(AF_INET);
    static_cast<void>(own.bind(coil::net::inet_address{"127.0.0.1", 0}));
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(own.native_handle(), reinterpret_cast<sockaddr*>(&address), &size);
    ::connect(own.native_handle(), reinterpret_cast<const sockaddr*>(&address), size);
    return own;
}

inline task<> datagrams_step(world& w, const step& s) {
    const witness here(w);
    const coil::net::socket own = loopback();
    const std::array<char, 100> bytes{};
    switch (s.variant % 4) {
    case 0:
        co_await io::send_zc(own.native_handle(), bytes);
        break;
    case 1: {
        auto pending = coil::eager(io::send_zc(own.native_handle(), bytes));
        co_await coil::yield();
        break; // dropped
    }
    case 2: {
        coil::buffer_pool pool(2, 512);
        auto incoming = coil::net::datagrams(own, pool);
        co_await coil::net::send_datagram(own, bytes, {});
        static_cast<void>(co_await incoming.next());
        static_cast<void>(co_await timeout(incoming.next(), s.time));
        break;
    }
    default: {
        coil::net::datagram_batch batch(4, 512);
        co_await coil::timeout(coil::net::receive_batch(own, batch), s.time);
        co_await coil::net::send_batch(own, batch);
    }
    }
}

inline task<> epoll_step(world& w, const step& s) {
    const witness here(w);
    const io::owned_descriptor set(::epoll_create1(EPOLL_CLOEXEC));
    ::epoll_event event{};
    event.events = EPOLLIN;
    const int in = w.pipe(s.index).in;
    co_await io::epoll_ctl(set.native_handle(), EPOLL_CTL_ADD, in, &event);
    std::array<::epoll_event, 2> events{};
    if (s.variant % 2 == 0) {
        co_await io::epoll_wait(set.native_handle(), events);
    } else {
        co_await coil::timeout(io::epoll_wait(set.native_handle(), events), s.time);
    }
}

inline task<> signals_step(world& w, const step& s) {
    const witness here(w);
    if (!w.signals) {
        co_return;
    }
    switch (s.variant % 3) {
    case 0:
        ::kill(::getpid(), world::the_signal);
        break;
    case 1:
        co_await coil::timeout(w.signals->next(), s.time);
        break;
    default:
        co_await w.signals->next();
    }
}

} // namespace lifetime_test
