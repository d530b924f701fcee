#pragma once

#include "through_ring.hpp"

#include <coil/uring/abi.hpp>
#include <coil/uring/backend.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include <sys/syscall.h>
#include <unistd.h>

// The rings of a program that runs behind the shim: see shim.cpp.

namespace liburing_shim {

using namespace coil::uring;

inline constexpr std::uint32_t getevents = 1;
inline constexpr std::uint32_t ext_arg = 8;
inline constexpr std::uint32_t registered_ring = 16;
inline constexpr std::uint32_t use_registered_ring = 1U << 31;
inline constexpr std::uint32_t sqpoll = 2;
inline constexpr unsigned most_registered = 16;

/// Makes a system call, bypassing interposed libc functions.
inline long raw(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result = n;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

struct emulated_ring {
    std::unique_ptr<backend> k;
    through_ring* through = nullptr; // `k`, or null if that is the epoll backend
    pid_t process = ::getpid();
    backend::mapping memory{};
    params setup{};
    bool polls = false; // SQPOLL: the pump submits
    bool pumped = false;
    std::atomic<bool> closed{false};
    std::recursive_timed_mutex turn;
    std::atomic<unsigned> wanting{0}; // threads that wait for the lock
    int event = -1;
    std::uint32_t reported = 0; // the tail that the eventfd has reported

    std::uint32_t word(void* base, std::uint32_t offset) const {
        auto* const at = reinterpret_cast<std::uint32_t*>(static_cast<char*>(base) + offset);
        return std::atomic_ref<std::uint32_t>(*at).load(std::memory_order_acquire);
    }
    std::uint32_t cq_tail() const { return word(memory.cq, setup.cq_off.tail); }
    std::uint32_t unread() const { return cq_tail() - word(memory.cq, setup.cq_off.head); }
    std::uint32_t published() const {
        return word(memory.sq, setup.sq_off.tail) - word(memory.sq, setup.sq_off.head);
    }
    void report() {
        const std::uint32_t tail = cq_tail();
        if (event >= 0 && tail != reported) {
            const std::uint64_t one = 1;
            constexpr std::uint32_t eventfd_disabled = 1;
            if ((word(memory.cq, setup.cq_off.flags) & eventfd_disabled) == 0) {
                raw(SYS_write, event, reinterpret_cast<long>(&one), sizeof one);
            }
        }
        reported = tail;
        if (polls) { // NEED_WAKEUP: always set
            auto* const at = reinterpret_cast<std::uint32_t*>(static_cast<char*>(memory.sq) +
                                                              setup.sq_off.flags);
            std::atomic_ref<std::uint32_t>(*at).fetch_or(1);
        }
    }
};
using ring_pointer = std::shared_ptr<emulated_ring>;

// Never destroyed: threads of the program may outlive main().
struct everything {
    std::mutex guard;
    std::map<int, ring_pointer> rings;
    std::map<void*, int> mappings;
    bool plain = std::getenv("COIL_SHIM_PLAIN") != nullptr;
    bool through_rings = std::getenv("COIL_SHIM_RING") != nullptr;
    bool pumping = false;
    pid_t process = ::getpid();
};
everything& all();

extern thread_local int registered[most_registered];
/// True while the backend runs: its calls and threads are not intercepted.
extern thread_local bool inside;
/// Whether the program has more than one thread.
extern std::atomic<bool> threaded;

ring_pointer find(int fd);
ring_pointer find(unsigned fd, bool by_registration);
void start_pump();
void close_ring(int fd);
/// Executes one of io_uring's three calls; sets `mine` to whether the call is one of them.
long ours(long n, const long* a, bool& mine);

struct my_turn {
    explicit my_turn(emulated_ring& r) : r_(r) {
        ++r_.wanting;
        r_.turn.lock();
        --r_.wanting;
        inside = true;
    }
    ~my_turn() {
        inside = false;
        if (!r_.closed) {
            r_.report();
        }
        r_.turn.unlock();
    }
    my_turn(const my_turn&) = delete;
    my_turn& operator=(const my_turn&) = delete;

private:
    emulated_ring& r_;
};

} // namespace liburing_shim
