#pragma once

#include "lifetimes/world.hpp"

#include <array>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

// Steps that use the layers above single operations: connections, streams, files, processes.

namespace lifetime_test {

/// Both ends of a connection in one process, either of which may be abandoned at any moment.
inline task<> connect_step(world& w, const step& s) {
    const witness here(w);
    coil::net::acceptor ac{coil::net::inet_address{"127.0.0.1", 0}};
    const std::uint16_t port = ac.local_address().port();
    coil::scope both;
    both.spawn([](const witness inside, coil::net::acceptor& from) -> task<> {
        const coil::net::socket peer = co_await from.accept();
        static_cast<void>(inside);
    }(here, ac));
    if (s.variant % 2 == 0) {
        const coil::net::socket out = co_await coil::net::connect("127.0.0.1", port, 500ms);
    } else {
        const coil::net::socket out = co_await coil::net::connect("127.0.0.1", port);
        co_await coil::sleep_for(short_time(s));
    }
    if (s.variant % 3 == 0) {
        both.cancel();
    }
    co_await both.join();
}

inline task<> client(world& w, const std::uint16_t port) {
    const witness here(w);
    coil::net::socket out = co_await coil::net::connect("127.0.0.1", port, 500ms);
    std::array<char, 16> buffer{};
    co_await out.recv(buffer);
}

/// A stream of connections; their descriptors are closed if they are not received.
inline task<> incoming_step(world& w, const step& s) {
    const witness here(w);
    coil::net::acceptor ac{coil::net::inet_address{"127.0.0.1", 0}};
    coil::scope clients;
    for (unsigned n = s.variant % 3; n > 0; --n) {
        clients.spawn(client(w, ac.local_address().port()));
    }
    if (s.index % 2 == 0) {
        auto connections = ac.incoming();
        const auto first = co_await timeout(connections.next(), s.time);
    } else {
        auto connections = io::accept_multishot(ac.native_handle(), SOCK_CLOEXEC);
        const auto first = co_await timeout(connections.next(), s.time);
        const io::owned_descriptor peer(first ? *first : -1);
        co_await coil::sleep_for(short_time(s));
    }
    clients.cancel();
    co_await clients.join();
}

/// A server whose sessions run other tasks. It is cancelled, or its scope is left without a join.
inline task<> serve_step(world& w, const step& s) {
    const witness here(w);
    std::uint16_t port = 0;
    auto session = [&w, &s, here](coil::net::socket peer) -> task<> {
        const witness inside(w);
        co_await play(w, s.bodies.front());
        co_await peer.send(std::string_view("x"));
    };
    coil::net::serve_options options{.idle = 1ms, .grace = 1ms, .hard_deadline = 1ms};
    options.on_listening = [&port](const coil::net::endpoint& at) { port = at.port(); };
    coil::scope both;
    both.spawn(coil::net::serve(coil::net::inet_address{"127.0.0.1", 0}, session, options));
    co_await coil::yield();
    if (port != 0) {
        both.spawn(client(w, port));
    }
    co_await coil::sleep_for(short_time(s));
    if (s.variant % 2 == 0) {
        both.cancel();
        co_await both.join();
    }
}

/// A stream over a duplicate of `fd`, a socket that all tasks share.
inline coil::pipe_end end_of(int fd) { return coil::pipe_end(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

inline task<> lines_step(world& w, const step& s) {
    const witness here(w);
    coil::buffered_reader r{end_of(w.sockets(s.index).a)};
    auto lines = r.lines();
    for (unsigned n = s.variant % 4; n > 0; --n) {
        w.put(w.sockets(s.index).b);
        if (s.variant % 2 == 0) {
            static_cast<void>(co_await coil::timeout(
                [](auto& from) -> task<> { static_cast<void>(co_await from.next()); }(lines),
                short_time(s)));
        } else {
            static_cast<void>(co_await lines.next());
        }
    }
}

inline task<> duplex_step(world& w, const step& s) {
    const witness here(w);
    coil::pipe_end a = end_of(w.sockets(s.index).a);
    coil::pipe_end b = end_of(w.sockets(s.index + 1).b);
    static_cast<void>(co_await coil::timeout(coil::duplex(a, b), s.time));
}

inline task<> files_step(world& w, const step& s) {
    const witness here(w);
    switch (s.variant % 4) {
    case 0:
        static_cast<void>(co_await coil::fs::exists("/proc/self/stat"));
        break;
    case 1:
        static_cast<void>(co_await coil::fs::read_file("/proc/self/stat"));
        break;
    case 2:
        static_cast<void>(co_await coil::fs::canonical("/proc/self/fd/.."));
        break;
    default: {
        auto entries = coil::fs::read_directory("/proc/self");
        for (unsigned n = s.index % 4; n > 0; --n) {
            if (!co_await entries.next()) {
                break;
            }
        }
    }
    }
}

inline task<> resolve_step(world& w, const step&) {
    const witness here(w);
    static_cast<void>(co_await coil::net::resolve("localhost", 80));
}

/// A process that is waited for, terminated, or destroyed while it runs.
inline task<> process_step(world& w, const step& s) {
    const witness here(w);
    coil::process p = coil::process::spawn({"sleep", s.variant % 2 == 0 ? "0.001" : "60"});
    switch (s.index % 3) {
    case 0:
        static_cast<void>(co_await coil::timeout(p.wait(), short_time(s)));
        break;
    case 1:
        static_cast<void>(co_await p.terminate(10ms));
        break;
    default:
        break; // the destructor kills it
    }
}

inline task<> watch_step(world& w, const step& s) {
    const witness here(w);
    auto changes = coil::fs::watch("/dev/shm");
    static_cast<void>(co_await coil::timeout(changes.next(), short_time(s)));
}

} // namespace lifetime_test
