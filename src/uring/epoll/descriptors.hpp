#pragma once

#include "worker_pool.hpp"

#include <coil/uring/emulated_request.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace coil::uring::detail {

struct descriptor_state;

/// A request of the epoll backend.
class epoll_request final : public emulated_request {
public:
    enum class place : std::uint8_t {
        nowhere,
        reading, // in a queue of its descriptor
        writing,
        watching,
        orphaned, // its descriptor was closed or reused
        working,  // on a thread of the pool
    };

    place at = place::nowhere;
    bool interrupting = false; // being cancelled while a thread executes it
    bool waited = false;       // it did not complete at the first attempt
    bool sure = false;         // epoll has confirmed that the registration is for the intended file
    std::uint8_t phase = 0;    // the completed steps of a call with several steps, or on_file
    static constexpr std::uint8_t on_file = 2; // a thread reads or writes a file
    int helper = -1;                           // a descriptor created for the request (pidfd)
    descriptor_state* on = nullptr;
    descriptor_state* held = nullptr; // the descriptor that it uses while it is on a thread
    descriptor_state* held_in = nullptr;

    struct own_job final : worker_job {
        epoll_request* owner = nullptr;
    } job;
};

/// A FIFO queue of requests.
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
        if (last_ != nullptr) {
            last_->world_next = &r;
        } else {
            first_ = &r;
        }
        last_ = &r;
    }
    void remove(epoll_request& r) noexcept {
        if (r.world_previous != nullptr) {
            r.world_previous->world_next = r.world_next;
        } else {
            first_ = after(r);
        }
        if (r.world_next != nullptr) {
            r.world_next->world_previous = r.world_previous;
        } else {
            last_ = static_cast<epoll_request*>(r.world_previous);
        }
        r.world_next = r.world_previous = nullptr;
    }

private:
    epoll_request* first_ = nullptr;
    epoll_request* last_ = nullptr;
};

/// The cached state of a descriptor number. close(2) is not reported to the backend, so the number
/// may refer to another file at any time, and only what epoll_ctl(2) has confirmed is relied upon:
/// see `stale`.
struct descriptor_state {
    enum class kind : std::uint8_t {
        unknown,
        tcp,
        local_stream, // AF_UNIX; otherwise like `connection`
        connection,   // another type of socket: a read may be short although more data is available
        datagram,
        file,
        direct_file,    // O_DIRECT
        no_nowait_file, // on a file system without RWF_NOWAIT
        other,
    };

    int fd = -1;
    std::uint64_t device = 0; // the device of a file
    std::uint32_t generation = 1;
    std::uint32_t interest = 0; // the events registered with epoll; 0: not registered
    kind what = kind::unknown;
    /// Nothing to read (no space to write) until epoll reports an event.
    bool read_blocked = false;
    bool write_blocked = false;
    bool closing = false; // closed as soon as no thread uses it
    unsigned working = 0; // threads that use it, or will
    bool may_end_early =
        false; // after an end or urgent data, a short read does not mean that no data is left
    /// Ticks until the registration, for whose event a request waits, is revalidated: it may be
    /// stale. 1: at the next tick; 2: at the one after that; 0: no revalidation is due.
    std::uint8_t stale = 0;
    descriptor_state* stale_next = nullptr;
    descriptor_state* stale_previous = nullptr;
    request_queue readers;
    request_queue writers;
    request_queue watchers;

    bool is_known_file() const noexcept {
        return what == kind::file || what == kind::direct_file || what == kind::no_nowait_file;
    }
    bool has_waiters() const noexcept {
        return !readers.empty() || !writers.empty() || !watchers.empty();
    }
};

/// The table of descriptor states, by number.
class descriptor_table {
public:
    descriptor_state* find(int fd) const noexcept {
        const auto i = static_cast<std::size_t>(fd);
        return i < states_.size() ? states_[i].get() : nullptr;
    }
    /// Creates the state if necessary; null if memory is short or `fd` is not a descriptor.
    descriptor_state* get(int fd) noexcept;

    template <class F>
    void for_each(F&& f) {
        for (const auto& state : states_) {
            if (state != nullptr) {
                f(*state);
            }
        }
    }

private:
    std::vector<std::unique_ptr<descriptor_state>> states_;
};

} // namespace coil::uring::detail
