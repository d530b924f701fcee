#pragma once

#include <coil/base/owned.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/core/config.hpp>
#include <coil/sim/host.hpp>
#include <coil/sim/options.hpp>
#include <coil/sim/random.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace coil::sim {

/// Thrown by a world when a program breaks a rule that Linux would not detect immediately: it
/// writes to a buffer owned by the kernel, or frees one (detected with AddressSanitizer only).
class violation : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

/// A simulated world that runs an unmodified distributed program on one thread. Its clock skips
/// idle time; its seed decides the order of events and the faults. The same seed replays the same
/// run, down to the last byte of the trace.
///
///     sim::world w{seed};
///     auto& server = w.host("server");
///     auto& client = w.host("client");
///     server.co_spawn(serve(6379));   // a task of that host, which constructs its acceptor
///     client.co_spawn(ask(server.address(6379)));
///     w.run_for(1h);                                  // a few milliseconds
///
/// Time advances only when no context is runnable, plus a little with each turn of a context
/// (world_options::turn). now(), timers and every steady clock that coil reads follow it; so does
/// coil::context_clock::now(), but not std::chrono::steady_clock::now().
///
/// Threading: use it on the thread that constructed it. Everything runs on that thread, with one
/// exception: while a destructor waits in the middle of a turn, other turns run on a helper thread;
/// only one of the threads executes at a time. The work that tasks pass to blocking(), asyncify()
/// and thread pools also runs there, at a later simulated time.
class world {
public:
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::steady_clock::time_point;

    explicit world(std::uint64_t seed, world_options options = {});
    /// Produces a readable compiler error.
    world() COIL_DELETE_COPY("pass a seed: sim::world w(1)");
    /// Destroys the tasks of all hosts.
    ~world();
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    [[nodiscard]] std::uint64_t seed() const noexcept;
    [[nodiscard]] const world_options& options() const noexcept;

    /// Returns the host of this name, created on first use.
    sim::host& host(std::string_view name);

    /// Runs until nothing is left to do: every task has ended or waits for an event that cannot
    /// occur. A server that waits for clients does not keep it running; a task that wakes up
    /// periodically does, see run_for().
    void run();
    /// Runs for `time`; the clock then shows the end of that time even if nothing happened.
    void run_for(duration time);
    /// Produce readable compiler errors.
    template <class Work>
    void run(Work&&) COIL_DELETE("spawn the task on a host: w.host(\"a\").co_spawn(f()); w.run()");
    template <std::integral Number>
    void run_for(Number) COIL_DELETE("pass a duration with a unit: w.run_for(3s)");
    /// Runs until `reached()` returns true; it is evaluated between turns. Returns false if nothing
    /// is left to do or `limit` has passed.
    bool run_until(const std::function<bool()>& reached, duration limit = std::chrono::hours(24));

    /// The world's clock; it starts at one second.
    [[nodiscard]] time_point now() const noexcept;

    /// Calls `f` between turns once `time` has passed.
    void after(duration time, std::function<void()> f);
    /// Random numbers for the test's own decisions.
    [[nodiscard]] random_source& random() noexcept;

    /// Interrupts the link between two hosts without an error: streams stall and end with ETIMEDOUT
    /// after world_options::stream_timeout, datagrams are lost.
    void partition(const sim::host& a, const sim::host& b);
    /// Restores the link; stalled data is sent again.
    void heal(const sim::host& a, const sim::host& b);
    /// Sets the properties of the link between two hosts.
    void link(const sim::host& a, const sim::host& b, const link_options& options);

    /// A hash of everything that has happened. It depends only on the seed, the program and the
    /// order in which the compiler evaluates expressions.
    [[nodiscard]] std::uint64_t trace_hash() const noexcept;
    /// The most recent events in human-readable form: time, host, event.
    [[nodiscard]] std::string trace() const;
    /// Adds a line to the trace.
    void note(std::string_view text);

    /// The number of calls of all hosts so far, and of injected faults.
    [[nodiscard]] std::uint64_t operations() const noexcept;
    [[nodiscard]] std::uint64_t faults() const noexcept;

private:
    coil::detail::owned<detail::world_state> state_;
};

} // namespace coil::sim
