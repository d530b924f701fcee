#pragma once

#include "worker_pool.hpp"

#include <coil/uring/emulated_request.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace coil::uring::detail {

struct descriptor_state;

/// A request of the epoll kernel.
class epoll_request final : public emulated_request {
public:
    enum class place : std::uint8_t {
        nowhere,
        reading, // in a queue of its descriptor
        writing,
        watching,
        orphaned, // its descriptor is another file's now
        working,  // on a thread
    };

    place at = place::nowhere;
    bool interrupting = false; // asked to end while it works
    bool waited = false;       // it was not done at the first try
    bool sure = false;         // epoll has confirmed that it waits on the file it was meant for
    std::uint8_t phase = 0;    // what of a call in several steps is done, or this:
    static constexpr std::uint8_t on_file = 2; // a thread reads or writes a file
    int helper = -1;                           // a descriptor made for it (pidfd)
    descriptor_state* on = nullptr;
    descriptor_state* held = nullptr; // while it is on a thread: what it works on
    descriptor_state* held_in = nullptr;

    struct its_job final : worker_job {
        epoll_request* owner = nullptr;
    } job;
};

/// Requests in the order in which they came.
class request_queue {
public:
    bool empty() const noexcept { return first_ == nullptr; }
    epoll_request* front() const noexcept { return first_; }
    static epoll_request* after(const epoll_request& r) noexcept {
        return static_cast<epoll_request*>(r.world_next);
    }
    void push(epoll_request& r) noexcept {
        r.world_next = nullptr;
        r.world_previous = last_;
        if (last_ != nullptr)
            last_->world_next = &r;
        else
            first_ = &r;
        last_ = &r;
    }
    void remove(epoll_request& r) noexcept {
        if (r.world_previous != nullptr)
            r.world_previous->world_next = r.world_next;
        else
            first_ = after(r);
        if (r.world_next != nullptr)
            r.world_next->world_previous = r.world_previous;
        else
            last_ = static_cast<epoll_request*>(r.world_previous);
        r.world_next = r.world_previous = nullptr;
    }

private:
    epoll_request* first_ = nullptr;
    epoll_request* last_ = nullptr;
};

/// What is known of a descriptor number. It may name another file any time (close(2) says nothing
/// to us), so nothing here is relied on but what epoll_ctl(2) has confirmed: see `doubtful`.
struct descriptor_state {
    enum class kind : std::uint8_t {
        unknown,
        tcp,
        connection, // of another kind: a read may stop before what there is
        datagram,
        file,
        direct_file,    // O_DIRECT
        unaskable_file, // of a file system that does not know RWF_NOWAIT
        other,
    };

    int fd = -1;
    std::uint64_t device = 0; // a file's
    std::uint32_t generation = 1;
    std::uint32_t interest = 0; // what epoll watches of it; 0: it does not
    kind what = kind::unknown;
    /// Nothing to read (no room to write) until epoll reports.
    bool read_blocked = false;
    bool write_blocked = false;
    bool closing = false;       // as soon as no thread works on it
    unsigned working = 0;       // threads that do, or will
    bool may_end_early = false; // an end or urgent data was reported: a short read tells nothing
    /// Somebody waits for an event of a registration that may be gone. 0: nobody; 1, 2: lists of
    /// those that are looked at at the next tick, or the one after.
    std::uint8_t doubtful = 0;
    descriptor_state* doubt_next = nullptr;
    descriptor_state* doubt_previous = nullptr;
    request_queue readers;
    request_queue writers;
    request_queue watchers;

    bool is_known_file() const noexcept {
        return what == kind::file || what == kind::direct_file || what == kind::unaskable_file;
    }
    bool has_waiters() const noexcept {
        return !readers.empty() || !writers.empty() || !watchers.empty();
    }
};

/// Their table, by number.
class descriptor_table {
public:
    descriptor_state* find(int fd) const noexcept {
        const auto i = static_cast<std::size_t>(fd);
        return i < states_.size() ? states_[i].get() : nullptr;
    }
    /// Makes it if need be; null where there is no memory or `fd` is no descriptor.
    descriptor_state* get(int fd) noexcept;

    template <class F>
    void for_each(F&& f) {
        for (const auto& state : states_)
            if (state != nullptr)
                f(*state);
    }

private:
    std::vector<std::unique_ptr<descriptor_state>> states_;
};

} // namespace coil::uring::detail
