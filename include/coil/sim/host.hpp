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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coil::sim {

class world;

namespace detail {
class machine;
class world_state;
struct host_state;
} // namespace detail

/// A computer in a world: contexts, addresses, descriptors and files of its own. Made and owned by
/// world::host(). One thread, as all of the world.
///
/// What runs in it is the program as it is: tasks that call coil::net, coil::io and coil::fs. Calls
/// that such code makes of Linux itself (a plain write(2), std::thread, std::filesystem) do not
/// know of the world; plain numbers for descriptors keep them apart (they begin at 2^24).
class host {
public:
    host(const host&) = delete;
    host& operator=(const host&) = delete;

    [[nodiscard]] const std::string& name() const noexcept;

    /// Its address in the world's network: 10.0.0.n or fd00::n.
    [[nodiscard]] net::inet_address address(std::uint16_t port, int family = AF_INET) const;

    /// One of its contexts, made when it is first asked for: what a thread of a program would be.
    /// It is driven by the world alone; never run() or start() it. A crash ends it: ask again when
    /// the host is up. std::logic_error while it is not.
    [[nodiscard]] io_context& context(std::size_t index = 0);

    /// One more context, with options of its own: those about the ring, about direct descriptors
    /// and registered buffers, and on_unhandled_exception count.
    io_context& make_context(io_context_options options);
    [[nodiscard]] std::size_t contexts() const noexcept;
    /// Ends its contexts as their destructors do: their tasks are destroyed, and their sockets and
    /// files closed. What a program does when it exits.
    void end_contexts();

    /// Starts `work` on its first context, detached or with a handle. Nothing happens before the
    /// world runs. Before get() of the handle the task must have ended: nobody runs the world
    /// meanwhile.
    void co_spawn(task<> work) { context().co_spawn(std::move(work)); }
    template <class T>
    join_handle<T> spawn(task<T> work) {
        return context().spawn(std::move(work));
    }

    /// The power fails. Its tasks are destroyed where they stand, its connections are silent, and
    /// of its files there is what was synchronized, and of the rest whatever the seed says:
    /// nothing, all, or some sectors and some names. From inside of a turn (a task of any host) it
    /// takes place when the turn is over.
    void crash();
    /// The power is back, and nothing runs until something is spawned. What on_start() was given is
    /// called. Nothing happens to a host that is up.
    void restart();
    [[nodiscard]] bool is_up() const noexcept;
    /// What a host does when it starts: called now if it is up, and by each restart().
    void on_start(std::function<void(host&)> boot);

    // Its disk, from outside: for the checks of tests. Takes no time and meets no faults.

    /// A whole file, or nothing when there is none.
    [[nodiscard]] std::optional<std::string> read_file(std::string_view path) const;
    /// Makes or replaces a file, which is safe on the disk at once; its directory must exist.
    void write_file(std::string_view path, std::string_view text);
    /// The names in a directory, sorted; nothing when there is none.
    [[nodiscard]] std::vector<std::string> list(std::string_view directory) const;
    /// Descriptors that its program has open, in order.
    [[nodiscard]] std::vector<int> open_descriptors() const;

    /// Two connected sockets of AF_UNIX, of SOCK_STREAM or SOCK_DGRAM (socketpair(2)). The caller
    /// owns the descriptors, which only tasks of this host can use and close.
    [[nodiscard]] std::pair<int, int> socket_pair(int type);
    /// A counter (eventfd(2)).
    [[nodiscard]] int event_fd(unsigned initial, bool semaphore = false);
    /// Does a call at once in the name of this host, and without faults: see
    /// uring::kernel::perform.
    int perform(const uring::sqe& request);

private:
    friend class world;
    friend class detail::world_state;
    friend struct detail::host_state;
    explicit host(detail::host_state& state) noexcept : state_(state) {}

    detail::host_state& state_;
};

} // namespace coil::sim
