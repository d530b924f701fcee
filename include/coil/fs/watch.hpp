#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>
#include <coil/io/owned_descriptor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <sys/inotify.h>

namespace coil::fs {

/// Something that happened to a watched file or directory: inotify(7).
struct watch_event {
    /// IN_CREATE, IN_MODIFY, IN_MOVED_TO, ..., with IN_ISDIR; or IN_Q_OVERFLOW: events were lost.
    std::uint32_t mask = 0;
    /// Joins IN_MOVED_FROM and IN_MOVED_TO of one rename; otherwise 0.
    std::uint32_t cookie = 0;
    /// The entry of a watched directory; empty when it is about what is watched itself.
    std::string name;

    /// What was watched is gone (IN_IGNORED): next() gives nothing instead.
    [[nodiscard]] bool is_end() const noexcept { return (mask & IN_IGNORED) != 0; }
    /// More happened than the kernel keeps (fs.inotify.max_queued_events): look for yourself.
    [[nodiscard]] bool has_overflowed() const noexcept { return (mask & IN_Q_OVERFLOW) != 0; }
};

/// The events of a file or directory as an asynchronous range.
///
///     fs::watcher changes = fs::watch("/etc/app");
///     while (auto event = co_await changes.next())
///         if (event->mask & IN_CLOSE_WRITE) reload(event->name);
///
/// It sees what happens from its construction on. Threading: on one context at a time. Cancellation
/// of next(): std::errc::operation_canceled; no event is lost.
class [[nodiscard("nothing would be watched")]] watcher {
public:
    watcher(watcher&&) noexcept;
    watcher& operator=(watcher&&) noexcept;
    ~watcher();

    /// The next event; nothing when what is watched is gone. Throws std::system_error when the
    /// read fails.
    [[nodiscard]] task<std::optional<watch_event>> next();

    [[nodiscard]] int native_handle() const noexcept { return inotify_.native_handle(); }

private:
    friend watcher watch(const path& p, std::uint32_t mask);
    explicit watcher(io::owned_descriptor inotify);

    struct queue;
    io::owned_descriptor inotify_;
    std::unique_ptr<queue> queue_; // read and not yet handed out
};

/// Watches a path for the events of `mask`: inotify_add_watch(2). Of a directory, its entries,
/// not what is below them. Throws filesystem_error that names the path: no_such_file_or_directory,
/// permission_denied, no_space_on_device (fs.inotify.max_user_watches), ... In a simulated world:
/// operation_not_supported.
watcher watch(const path& p,
              std::uint32_t mask = IN_ALL_EVENTS & ~(IN_ACCESS | IN_OPEN | IN_CLOSE_NOWRITE));

} // namespace coil::fs
