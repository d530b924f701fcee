#pragma once

#include <coil/sim/host.hpp>
#include <coil/sim/options.hpp>
#include <coil/sim/random.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace coil::sim {

/// What a world throws when a program breaks a rule that Linux would not notice at once: it writes
/// to a buffer that the kernel owns, or frees it (which AddressSanitizer has to tell).
class violation : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

/// A world in which a distributed program runs as it is, on one thread, with a clock that goes as
/// fast as nothing happens, and with a seed that says in which order things happen and what goes
/// wrong. The same seed gives the same run, to the last byte of the trace.
///
///     sim::world w{seed};
///     auto& server = w.host("server");
///     auto& client = w.host("client");
///     server.co_spawn(serve(net::acceptor{...}));     // made inside of a task of that host
///     client.co_spawn(ask(server.address(6379)));
///     w.run_for(1h);                                  // a few milliseconds
///
/// Time passes only when nobody has anything to do, and a little with each turn of a context
/// (world_options::turn). now(), timers and every steady clock that coil reads follow it;
/// std::chrono::steady_clock::now() does not.
///
/// Threading: everything on the thread that made it. blocking(), asyncify() and thread pools that
/// tasks use do their work on it too, some time later.
class world {
public:
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::steady_clock::time_point;

    explicit world(std::uint64_t seed, world_options options = {});
    /// Destroys the tasks of all hosts.
    ~world();
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    [[nodiscard]] std::uint64_t seed() const noexcept;
    [[nodiscard]] const world_options& options() const noexcept;

    /// The host of this name, made when it is first asked for.
    sim::host& host(std::string_view name);

    /// Until nothing is left to do: every task has ended or waits for what nobody will do. A server
    /// that waits for clients is in nobody's way; a task that wakes up again and again is, see
    /// run_for().
    void run();
    /// For so long; the clock then stands there, also when nothing happened.
    void run_for(duration time);
    /// Until `reached()`, which is asked between turns; true when it was, false when nothing is
    /// left to do or `limit` has passed.
    bool run_until(const std::function<bool()>& reached, duration limit = std::chrono::hours(24));

    /// The clock of the world; it begins at a second.
    [[nodiscard]] time_point now() const noexcept;

    /// Calls `f` between turns, when the time has come.
    void after(duration time, std::function<void()> f);
    /// For a test's own decisions.
    [[nodiscard]] random_source& random() noexcept;

    /// Nothing gets from one host to the other any more, and nobody is told: streams stall and end
    /// with ETIMEDOUT after world_options::stream_timeout, datagrams are lost.
    void partition(const sim::host& a, const sim::host& b);
    /// What stalled is sent again.
    void heal(const sim::host& a, const sim::host& b);
    /// What lies between two hosts.
    void link(const sim::host& a, const sim::host& b, const link_options& options);

    /// A number for everything that has happened: the same for the same seed, program and
    /// compiler's order of evaluation.
    [[nodiscard]] std::uint64_t trace_hash() const noexcept;
    /// The last lines of what has happened, for people: when, who, what.
    [[nodiscard]] std::string trace() const;
    /// A line of one's own in it.
    void note(std::string_view text);

    /// Calls of all hosts so far, and faults that were injected.
    [[nodiscard]] std::uint64_t operations() const noexcept;
    [[nodiscard]] std::uint64_t faults() const noexcept;

private:
    std::unique_ptr<detail::world_state> state_;
};

} // namespace coil::sim
