#pragma once

#include "call.hpp"
#include "object.hpp"

#include <cstdint>

#include <poll.h>

namespace coil::sim::detail {

class machine;

/// What open(2) calls an open file description: what descriptors, tables and calls under way refer
/// to. It is closed when the last of them has let go.
class file : public object {
public:
    enum class kind : std::uint8_t { socket, on_disk, pipe, counter };

    file(machine& of, kind what) noexcept;

    /// What a call that is made now gives; `would_wait` when it has to wait for changed().
    virtual int attempt(op& call) = 0;
    /// poll(2)'s events, those included that nobody asks for.
    virtual std::uint32_t events() = 0;

    machine& home;
    const kind is;
    const std::uint64_t number;   // fstat(2)'s inode, of what is on no disk
    bool nonblocking = false;     // O_NONBLOCK
    waiting_list<waiter> waiting; // in the order in which they came

protected:
    /// Something may be possible that was not: whoever waits tries again.
    void changed() noexcept {
        while (waiter* const first = waiting.first()) {
            first->unlink();
            first->try_again();
        }
    }
};

} // namespace coil::sim::detail
