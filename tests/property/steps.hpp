#pragma once

#include "property/compose_steps.hpp"
#include "property/eager_steps.hpp"
#include "property/operations.hpp"
#include "property/stream_steps.hpp"

#include <array>
#include <exception>
#include <stop_token>
#include <system_error>
#include <thread>

// The actions of a task of a random program, one step after the other.

namespace property {

inline task<> operation_step(world& w, random_source& r, unsigned) {
    std::optional<task<int>> awaiting;
    with_random_operation(w, r, [&](auto op, lease buffer, waiting kind) {
        awaiting.emplace(await_somehow(w, r, std::move(op), std::move(buffer), kind));
    });
    co_await std::move(*awaiting);
}

inline task<> sleep_step(world& w, random_source& r, unsigned) {
    await_probe probe(w);
    co_await coil::sleep_for(random_time(r));
    probe.resumed();
}

inline task<> yield_step(world& w, random_source& r, unsigned) {
    for (unsigned times = r.between(1, 3); times > 0; --times) {
        await_probe probe(w);
        co_await coil::yield();
        probe.resumed();
    }
}

inline task<> throw_step(world&, random_source&, unsigned) {
    throw planned();
    co_return;
}

inline task<> child_step(world& w, random_source& r, unsigned depth) {
    auto child = body(w, random_source(r()), depth + 1);
    switch (r.below(4)) {
    case 0:
        co_await std::move(child); // rethrows its exception
        break;
    case 1:
        break; // never started
    default:
        co_await tolerate(w, std::move(child));
    }
}

inline task<> spawn_step(world& w, random_source& r, unsigned depth) {
    if (r.one_in(3)) {
        coil::co_spawn(body(w, random_source(r()), depth + 1));
        co_return;
    }
    auto handle = coil::spawn(body(w, random_source(r()), depth + 1));
    if (r.one_in(2)) {
        co_await sleep_step(w, r, depth);
    } else if (r.one_in(2)) {
        co_await yield_step(w, r, depth);
    }
    if (r.one_in(2)) {
        handle.cancel();
    }
    if (!r.one_in(3)) {
        co_await tolerate(w, std::move(handle));
    }
}

/// A frame that is destroyed before, while or after it waits.
inline task<> destroy_step(world& w, random_source& r, unsigned depth) {
    auto style = static_cast<int>(r.below(8));
    if (style == 4 && !may_drain(w, r)) {
        style = 7;
    }
    const auto limit = random_time(r);
    std::optional<coil_test::manual> victim;
    with_random_operation(w, r, [&](auto op, lease buffer, waiting) {
        victim.emplace(await_until_destroyed(w, std::move(buffer), std::move(op), style, limit));
    });
    if (r.one_in(8)) {
        co_return;
    }
    victim->start();
    // With a low in-flight limit another operation may have to wait until the victim ends. This
    // variant is therefore used only in programs that are stopped.
    switch (r.below(w.finite ? 3 : 4)) {
    case 0:
        break;
    case 1:
        co_await yield_step(w, r, depth);
        break;
    case 2:
        co_await sleep_step(w, r, depth);
        break;
    default:
        co_await operation_step(w, r, depth);
    }
}

/// An operation that is never awaited has no effect.
inline task<> drop_step(world& w, random_source& r, unsigned) {
    with_random_operation(w, r, [&](auto op, lease, waiting) {
        if (r.one_in(2)) {
            [[maybe_unused]] const auto chain = std::move(op) && io::nop();
        }
    });
    co_return;
}

inline task<> close_step(world& w, random_source& r, unsigned) {
    const int fd = co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
    if (fd < 0) {
        co_return;
    }
    const held_descriptor held(fd);
    await_probe probe(w);
    switch (r.below(3)) {
    case 0:
        co_await (io::shutdown(fd, SHUT_RDWR) && io::close(fd));
        break;
    case 1:
        co_await coil::timeout(io::nop() && io::close(fd), random_time(r));
        break;
    default:
        co_await io::close(fd);
    }
    probe.resumed();
}

inline task<> pipe_step(world& w, random_source& r, unsigned) {
    int fds[2];
    await_probe probe(w);
    int result = 0;
    if (r.one_in(2)) {
        result = co_await io::pipe(fds, O_CLOEXEC);
    } else {
        result = co_await (io::nop() && io::pipe(fds, O_CLOEXEC));
    }
    probe.resumed();
    if (result == 0) {
        sys::close(fds[0]);
        sys::close(fds[1]);
    }
}

inline task<> connect_step(world& w, random_source& r, unsigned) {
    const auto& listener = w.listener();
    const int fd = co_await io::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
    if (fd < 0) {
        co_return;
    }
    const coil_test::descriptor client(fd);
    const auto* const address = reinterpret_cast<const ::sockaddr*>(&listener.address);
    await_probe probe(w);
    // A full backlog makes it wait.
    co_await coil::timeout(io::connect(fd, address, listener.length), random_time(r));
    probe.resumed();
}

/// Loopback connections, used sparingly, since each occupies kernel memory for a while.
inline task<> tcp_step(world& w, random_source& r, unsigned) {
    const coil_test::listener server;
    const coil_test::descriptor client = server.connect();
    // Closed with a reset, so that no port remains in TIME_WAIT.
    const ::linger hard{1, 0};
    sys::setsockopt(client, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    await_probe probe(w);
    const int fd = co_await coil::timeout(io::accept(server.socket), 1ms + random_time(r));
    probe.resumed();
    if (fd < 0) {
        co_return;
    }
    const coil_test::descriptor peer(fd);
    lease buffer(w);
    switch (r.below(4)) {
    case 0:
        co_await (io::send_zc(peer, source_data(r.between(1, 10'000))) &&
                  coil::timeout(io::recv(client, buffer.receive(200)), random_time(r)));
        break;
    case 1:
        co_await live_eagerly(w, r, std::move(buffer), result_is::a_number, true,
                              io::send_zc(peer, source_data(r.between(1, 10'000))));
        break;
    case 2:
        co_await coil::timeout(io::send_zc(peer, source_data(60'000)), random_time(r));
        break;
    default:
        co_await (io::send(peer, source_data(100)) &&
                  coil::timeout(io::recv(client, buffer.receive(200)), random_time(r)));
    }
}

/// Direct descriptors: created, used and closed in one chain or separately.
inline task<> direct_step(world& w, random_source& r, unsigned) {
    lease buffer(w);
    const auto& listener = w.listener();
    const auto* const address = reinterpret_cast<const ::sockaddr*>(&listener.address);
    await_probe probe(w);
    if (r.one_in(2)) {
        // Other tasks may use the same slot concurrently.
        const unsigned slot = r.below(3);
        const io::direct_descriptor there(static_cast<int>(slot));
        if (r.one_in(2)) {
            co_await coil::timeout(io::socket_direct(AF_UNIX, SOCK_STREAM, 0, slot) &&
                                       io::connect(there, address, listener.length) &&
                                       io::close(there),
                                   random_time(r));
        } else {
            co_await coil::hard_link(io::openat_direct(AT_FDCWD, "/dev/null", O_RDONLY, 0, slot),
                                     io::close(there));
        }
        probe.resumed();
        co_return;
    }
    const auto made = co_await io::register_file(w.file());
    probe.resumed();
    if (made < 0) {
        EXPECT_TRUE(made == -ENFILE || made == -ECANCELED || made == -ETIMEDOUT || w.faulty)
            << int{made};
        co_return;
    }
    await_probe use(w);
    if (r.one_in(3)) {
        const int plain = co_await io::fixed_fd_install(made);
        if (plain >= 0) {
            sys::close(plain);
        }
    } else {
        const int n = co_await io::read(made, buffer.receive(r.between(1, 1024)), 0);
        buffer.check_received(n);
    }
    use.resumed();
    if (!r.one_in(4)) {
        co_await close_result(w, result_is::a_direct_descriptor, made);
    }
}

/// Registered for this call only; the table may be full.
inline task<> fixed_step(world& w, random_source& r, unsigned) {
    lease buffer(w);
    const auto memory = buffer.receive(1024);
    std::optional<io::registered_buffers> registered;
    try {
        registered.emplace(std::initializer_list<coil::mutable_buffer>{memory});
    } catch (const std::system_error& e) {
        EXPECT_TRUE(e.code().value() == ENFILE || w.faulty) << e.what();
        co_return;
    }
    const auto part = (*registered)[0].first(r.between(1, 1024));
    await_probe probe(w);
    int n = 0;
    switch (r.below(4)) {
    case 0:
        n = co_await coil::timeout(io::read_fixed(w.pipe().in, part), random_time(r));
        break;
    case 1:
        n = co_await coil::timeout(io::nop() && io::read_fixed(w.sockets().a, part),
                                   random_time(r));
        break;
    case 2: {
        auto pending = coil::eager(io::read_fixed(w.file(), part, 0));
        registered.reset(); // the kernel continues with the registered pages
        n = co_await pending;
        break;
    }
    default:
        n = co_await io::read_fixed(w.file(), part, 0);
    }
    probe.resumed();
    buffer.check_received(n);
}

template <class Source>
task<> stop_later(world& w, Source source, std::chrono::microseconds time) {
    const witness here(w);
    await_probe probe(w);
    co_await coil::sleep_for(time);
    probe.resumed();
    source.request_stop();
}

/// A task with a separate stop token, stopped before it begins, from inside, or from another
/// thread.
inline task<> stop_step(world& w, random_source& r, unsigned depth) {
    std::stop_source source;
    std::jthread other; // destroyed after the awaiter of the token
    auto work = body(w, random_source(r()), depth + 1);
    if (r.one_in(8)) {
        other = sys::later(random_time(r), [source]() mutable { source.request_stop(); });
    } else if (r.one_in(6)) {
        source.request_stop();
    } else if (!r.one_in(4)) {
        coil::co_spawn(stop_later(w, source, random_time(r)));
    }
    switch (r.below(3)) {
    case 0:
        co_await tolerate(w, coil::with_stop_token(std::move(work), source.get_token()));
        break;
    case 1:
        coil::co_spawn(std::move(work), source.get_token());
        break;
    default:
        co_await tolerate(w, coil::spawn(std::move(work), source.get_token()));
    }
}

/// The kinds of steps. To add one, add a function and a line here.
struct step_kind {
    unsigned weight;
    task<> (*run)(world&, random_source&, unsigned depth);
};

inline constexpr std::array step_kinds{
    step_kind{40, &operation_step},  step_kind{6, &sleep_step},
    step_kind{6, &yield_step},       step_kind{2, &throw_step},
    step_kind{6, &child_step},       step_kind{10, &spawn_step},
    step_kind{14, &destroy_step},    step_kind{3, &drop_step},
    step_kind{4, &close_step},       step_kind{3, &pipe_step},
    step_kind{5, &connect_step},     step_kind{1, &tcp_step},
    step_kind{20, &eager_step},      step_kind{12, &receive_step},
    step_kind{6, &receive_all_step}, step_kind{4, &accept_stream_step},
    step_kind{4, &poll_stream_step}, step_kind{2, &tick_step},
    step_kind{5, &direct_step},      step_kind{4, &fixed_step},
    step_kind{4, &stop_step},        step_kind{14, &together_step},
};

inline const step_kind& random_step(random_source& r) {
    constexpr unsigned sum = [] {
        unsigned weights = 0;
        for (const step_kind& kind : step_kinds) {
            weights += kind.weight;
        }
        return weights;
    }();
    unsigned at = r.below(sum);
    for (const step_kind& kind : step_kinds) {
        if (at < kind.weight) {
            return kind;
        }
        at -= kind.weight;
    }
    return step_kinds.front();
}

/// One task. Its own random source makes its actions independent of other tasks.
inline task<> body(world& w, random_source r, unsigned depth) {
    constexpr unsigned deepest = 4;
    const witness here(w);
    for (unsigned steps = r.between(1, 5); steps > 0 && depth < deepest; --steps) {
        w.step();
        co_await random_step(r).run(w, r, depth);
    }
}

inline task<> stop_after(world& w, std::chrono::microseconds time) {
    co_await coil::sleep_for(time);
    w.context().stop();
}

inline void take_result(coil::join_handle<>& handle) {
    try {
        handle.get();
    } catch (const planned&) {
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled);
    }
}

/// Starts the tasks of one program, some of them detached; returns the handles of the others.
inline std::vector<coil::join_handle<>> start_tasks(world& w, random_source& r) {
    std::vector<coil::join_handle<>> handles;
    for (unsigned tasks = r.between(1, 4); tasks > 0; --tasks) {
        auto work = body(w, random_source(r()), 0);
        if (r.one_in(2)) {
            w.context().co_spawn(std::move(work));
        } else {
            handles.push_back(w.context().spawn(std::move(work)));
        }
    }
    return handles;
}

} // namespace property
