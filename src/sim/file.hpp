#pragma once

#include "call.hpp"
#include "object.hpp"

#include <cstdint>

#include <poll.h>

namespace coil::sim::detail {

class machine;

/// A lasting subscription to the changes of a file: an epoll set's.
class watcher : public list_link {
public:
    virtual ~watcher() = default;

    /// The file's readiness may have changed; `what` are the events that this may concern.
    virtual void happened(std::uint32_t what) noexcept = 0;
    /// The file is closed for the last time: the watcher unlinks itself.
    virtual void file_has_gone() noexcept = 0;

protected:
    watcher() noexcept = default;
};

/// An open file description, as open(2) calls it: referenced by descriptors, tables and calls in
/// flight, and closed with the last reference.
class file : public object {
public:
    enum class kind : std::uint8_t { socket, on_disk, pipe, counter, timer, epoll_set };

    file(machine& of, kind what) noexcept;
    ~file() override {
        while (watcher* const first = watchers.first()) {
            first->file_has_gone();
        }
    }

    /// Attempts a call; returns its result, or `would_wait` if it has to wait for changed().
    virtual int attempt(op& call) = 0;
    /// The events of poll(2), including those that are always reported.
    virtual std::uint32_t events() = 0;
    // How it was opened.
    [[nodiscard]] virtual bool reads() const noexcept { return true; }
    [[nodiscard]] virtual bool writes() const noexcept { return true; }
    /// Opened with O_PATH: refers to a file without access to its content.
    [[nodiscard]] virtual bool is_path() const noexcept { return false; }

    machine& own_machine;
    const kind is;
    const std::uint64_t number;   // fstat(2)'s inode number, for files that are not on a disk
    bool nonblocking = false;     // O_NONBLOCK
    waiting_list<waiter> waiting; // in arrival order
    waiting_list<watcher> watchers;

protected:
    static constexpr std::uint32_t any_event = ~0U;

    /// Readiness may have changed: waiting calls are attempted again, and watchers are notified of
    /// which events are new (0: none, the change only took data away).
    void changed(std::uint32_t what = any_event) noexcept {
        while (waiter* const first = waiting.first()) {
            first->unlink();
            first->try_again();
        }
        for (watcher* w = what != 0 ? watchers.first() : nullptr; w != nullptr;
             w = watchers.after(*w)) {
            w->happened(what);
        }
    }
};

} // namespace coil::sim::detail
