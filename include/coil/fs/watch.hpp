#pragma once

#include <coil/base/owned.hpp>
#include <coil/core/config.hpp>
#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>
#include <coil/io/owned_descriptor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include <sys/inotify.h>

namespace coil::fs {

class watcher;

/// Watches a path for the events of `mask`: inotify_add_watch(2). Watching a directory covers its
/// entries, but not the contents of subdirectories. Throws filesystem_error with the path:
/// no_such_file_or_directory, permission_denied, no_space_on_device (the limit
/// fs.inotify.max_user_watches was reached), ...; in a simulated world operation_not_supported.
watcher watch(const path& p,
              std::uint32_t mask = IN_ALL_EVENTS & ~(IN_ACCESS | IN_OPEN | IN_CLOSE_NOWRITE));

/// A change of a watched file or directory: inotify(7).
struct watch_event {
    /// IN_CREATE, IN_MODIFY, IN_MOVED_TO, ..., with IN_ISDIR; or IN_Q_OVERFLOW: events were lost.
    std::uint32_t mask = 0;
    /// Connects the IN_MOVED_FROM and IN_MOVED_TO of one rename; otherwise 0.
    std::uint32_t cookie = 0;
    /// The name of an entry of the watched directory; empty if the watched file or directory itself
    /// changed.
    std::string name;

    /// The watched file or directory was removed (IN_IGNORED). next() never returns this event; it
    /// returns nullopt instead.
    [[nodiscard]] bool is_end() const noexcept { return (mask & IN_IGNORED) != 0; }
    /// Events were lost, because more occurred than the kernel queues
    /// (fs.inotify.max_queued_events): read the directory again.
    [[nodiscard]] bool has_overflowed() const noexcept { return (mask & IN_Q_OVERFLOW) != 0; }
};

/// The events of a file or directory as an asynchronous range.
///
///     fs::watcher changes = fs::watch("/etc/app");
///     while (auto event = co_await changes.next())
///         if (event->mask & IN_CLOSE_WRITE) reload(event->name);
///
/// Changes are recorded from its construction on. Threading: on one context at a time. Cancellation
/// of next(): std::errc::operation_canceled; no event is lost.
class [[nodiscard("nothing would be watched")]] watcher {
public:
    watcher(watcher&&) noexcept;
    watcher& operator=(watcher&&) noexcept;
    ~watcher();

    /// The next event; nullopt once the watched file or directory was removed. Throws
    /// std::system_error if reading fails.
    [[nodiscard]] task<std::optional<watch_event>> next();

    /// Produce readable compiler errors.
    void begin() const
        COIL_DELETE_COPY("write while (auto event = co_await watcher.next()) instead of for");
    void end() const
        COIL_DELETE_COPY("write while (auto event = co_await watcher.next()) instead of for");

    [[nodiscard]] int native_handle() const noexcept { return inotify_.native_handle(); }

private:
    friend watcher watch(const path& p, std::uint32_t mask);
    explicit watcher(io::owned_descriptor inotify);

    struct queue;
    io::owned_descriptor inotify_;
    coil::detail::owned<queue> queue_; // events read and not yet returned
};

} // namespace coil::fs
