#pragma once

#include <coil/context/io_context.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/core/task.hpp>
#include <coil/net/inet_address.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil::sim {

class world;

namespace detail {
class machine;
class world_state;
struct host_state;
} // namespace detail

/// A computer in a simulated world, with its own contexts, addresses, descriptors and files.
/// Created and owned by world::host(). Single-threaded, like the whole world.
///
///     sim::host& server = w.host("server");
///     server.on_start([](sim::host& h) { h.co_spawn(serve(7)); });
///     w.after(1s, [&] { server.crash(); });
///
/// It runs the unmodified program: tasks that call coil::net, coil::io and coil::fs. Calls that
/// bypass coil (a plain write(2), std::thread, std::filesystem) reach the real system. They cannot
/// reach files of the simulation by mistake: its descriptors begin at 2^24.
class host {
public:
    host(const host&)
        COIL_DELETE_COPY("the world owns its hosts: auto& server = w.host(\"server\")");
    host& operator=(const host&) = delete;

    [[nodiscard]] const std::string& name() const noexcept;

    /// Its address in the world's network: 10.0.0.n or fd00::n.
    [[nodiscard]] net::inet_address address(std::uint16_t port, int family = AF_INET) const;

    /// Returns one of its contexts, created on first use. The world drives it; never call run() or
    /// start() on it. A crash ends it: call context() again after the restart. Throws
    /// std::logic_error while the host is down.
    [[nodiscard]] io_context& context(std::size_t index = 0);

    /// Creates another context with its own options. Only the options about the ring, direct
    /// descriptors, registered buffers and on_unhandled_exception apply.
    io_context& make_context(io_context_options options);
    [[nodiscard]] std::size_t contexts() const noexcept;
    /// Ends its contexts as their destructors do: destroys their tasks, closes their sockets and
    /// files. This is what a program does when it exits.
    void end_contexts();

    /// Starts `work` on its first context, detached or with a handle. Nothing happens before the
    /// world runs. The task must have ended before get() is called on the handle, because get()
    /// does not run the world.
    void co_spawn(task<> work COIL_CAPTURED(global),
                  std::source_location where = std::source_location::current()) {
        context().co_spawn(std::move(work), where);
    }
    template <class T>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global),
                         std::source_location where = std::source_location::current()) {
        return context().spawn(std::move(work), where);
    }
    /// The same for a task that is stopped by `token`, and for one with a name, see io_context.
    template <coil::detail::any_stop_token Token>
    void co_spawn(task<> work COIL_CAPTURED(global), Token token,
                  std::source_location where = std::source_location::current()) {
        context().co_spawn(std::move(work), std::move(token), where);
    }
    template <class T, coil::detail::any_stop_token Token>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global), Token token,
                         std::source_location where = std::source_location::current()) {
        return context().spawn(std::move(work), std::move(token), where);
    }
    void co_spawn(task<> work COIL_CAPTURED(global), const std::string& name,
                  std::source_location where = std::source_location::current()) {
        context().co_spawn(std::move(work), name, where);
    }
    template <class T>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global), const std::string& name,
                         std::source_location where = std::source_location::current()) {
        return context().spawn(std::move(work), name, where);
    }
    /// The same for a function that returns a task: its captures live as long as the task.
    template <coil::detail::void_task_function F>
    void co_spawn(F f, std::source_location where = std::source_location::current()) {
        context().co_spawn(std::move(f), where);
    }
    template <coil::detail::task_function F>
    auto spawn(F f, std::source_location where = std::source_location::current()) {
        return context().spawn(std::move(f), where);
    }
    template <coil::detail::void_task_function F>
    void co_spawn(F f, const std::string& name,
                  std::source_location where = std::source_location::current()) {
        context().co_spawn(std::move(f), name, where);
    }
    template <coil::detail::task_function F>
    auto spawn(F f, const std::string& name,
               std::source_location where = std::source_location::current()) {
        return context().spawn(std::move(f), name, where);
    }

    /// Produce readable compiler errors.
    template <class T, class... Rest>
        requires(!std::is_void_v<T>)
    void co_spawn(task<T>, Rest&&...) COIL_DELETE(
        "co_spawn takes a task<>, which has no result: spawn(t) returns a handle to the result");
    template <coil::detail::not_spawnable Work, class... Rest>
    void co_spawn(Work&&, Rest&&...)
        COIL_DELETE("co_spawn takes a task, or a function without parameters that returns one: "
                    "co_spawn(f(x))");
    template <coil::detail::not_spawnable Work, class... Rest>
    void spawn(Work&&, Rest&&...)
        COIL_DELETE("spawn takes a task, or a function without parameters that returns one: "
                    "spawn(f(x))");

    void co_spawn(...)
        COIL_DELETE("write co_spawn(f()), co_spawn(f(), \"name\") or co_spawn(f(), token)");
    void spawn(...) COIL_DELETE("write spawn(f()), spawn(f(), \"name\") or spawn(f(), token)");

    /// Simulates a power failure. Destroys its tasks where they are suspended; peers of its
    /// connections get no answer. Synchronized data of its files survives; of the rest, the seed
    /// decides whether nothing, everything, or some sectors and some names survive. If called
    /// during a turn (from a task of any host), it takes effect at the end of the turn.
    void crash();
    /// Restores power and calls the function given to on_start(); without one, nothing runs until
    /// a task is spawned. No effect on a host that is up.
    void restart();
    [[nodiscard]] bool is_up() const noexcept;
    /// Sets the boot function, replacing an earlier one: called now if the host is up, and by each
    /// restart().
    void on_start(std::function<void(host&)> boot);

    // The state of the host, for tests. These calls take no time and are subject to no faults.

    /// The content of a file, or nullopt if there is none.
    [[nodiscard]] std::optional<std::string> read_file(std::string_view path) const;
    /// Creates or replaces a file, durably; its directory must exist.
    void write_file(std::string_view path, std::string_view text);
    /// The sorted names in a directory; empty if the directory does not exist.
    [[nodiscard]] std::vector<std::string> list(std::string_view directory) const;
    /// The open descriptors of its program, in order.
    [[nodiscard]] std::vector<int> open_descriptors() const;

    /// Two connected AF_UNIX sockets of type SOCK_STREAM or SOCK_DGRAM (socketpair(2)). The caller
    /// owns the descriptors, which only tasks of this host can use and close.
    [[nodiscard]] std::pair<int, int> socket_pair(int type);
    /// The descriptor of a new counter (eventfd(2)), owned by the caller.
    [[nodiscard]] int event_fd(unsigned initial, bool semaphore = false);
    /// Executes a call synchronously on behalf of this host, without faults: see
    /// uring::backend::perform.
    int perform(const uring::sqe& request);

private:
    friend class world;
    friend class detail::world_state;
    friend struct detail::host_state;
    explicit host(detail::host_state& state) noexcept : state_(state) {}

    detail::host_state& state_;
};

} // namespace coil::sim
