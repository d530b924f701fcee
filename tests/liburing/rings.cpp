#include "rings.hpp"

#include <chrono>
#include <csignal>
#include <new>
#include <thread>

#include <pthread.h>

// The table of rings, and the pump thread.

namespace liburing_shim {

using namespace std::chrono_literals;

everything& all() {
    static auto* const one = new everything;
    return *one;
}

thread_local int registered[most_registered] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                -1, -1, -1, -1, -1, -1, -1, -1};
thread_local bool inside = false; // calls of the backend's own threads are not intercepted
std::atomic<bool> threaded{false};

ring_pointer find(int fd) {
    everything& a = all();
    const std::scoped_lock lock(a.guard);
    const auto found = a.rings.find(fd);
    return found != a.rings.end() ? found->second : nullptr;
}

ring_pointer find(unsigned fd, bool by_registration) {
    if (!by_registration) {
        return find(static_cast<int>(fd));
    }
    return fd < most_registered && registered[fd] >= 0 ? find(registered[fd]) : nullptr;
}

// ---- the pump

void pump_once() {
    everything& a = all();
    std::map<int, ring_pointer> rings;
    {
        const std::scoped_lock lock(a.guard);
        rings = a.rings;
    }
    for (auto& [fd, r] : rings) {
        if (!r->pumped || r->wanting != 0 || !r->turn.try_lock()) {
            continue;
        }
        inside = true;
        if (!r->closed && r->through != nullptr && !r->polls) {
            r->through->refresh(); // its own thread enters, or the kernel interrupts it
            r->report();
        } else if (!r->closed) {
            const unsigned submit = r->polls ? r->published() : 0;
            r->k->enter(submit, 0, getevents, nullptr, 0);
            r->report();
        }
        inside = false;
        r->turn.unlock();
    }
}

// fork(2): the child has no pump, and none of its rings is in the middle of a call.
void before_fork() {
    everything& a = all();
    a.guard.lock();
    for (auto& [fd, r] : a.rings) {
        r->turn.lock();
    }
}
void after_fork() {
    everything& a = all();
    for (auto& [fd, r] : a.rings) {
        r->turn.unlock();
    }
    a.guard.unlock();
}
void after_fork_in_child() {
    everything& a = all();
    for (auto& [fd, r] : a.rings) {
        new (&r->turn) std::recursive_timed_mutex; // the parent's thread has locked it
    }
    a.pumping = false;
    a.guard.unlock();
}

void start_pump() {
    everything& a = all();
    const std::scoped_lock lock(a.guard);
    if (a.pumping || a.plain) {
        return;
    }
    static const int registered_for_fork =
        ::pthread_atfork(&before_fork, &after_fork, &after_fork_in_child);
    static_cast<void>(registered_for_fork);
    a.pumping = true;
    inside = true;
    sigset_t everything_else;
    sigset_t before;
    ::sigfillset(&everything_else);
    ::pthread_sigmask(SIG_SETMASK, &everything_else, &before);
    std::thread([] {
        for (;;) {
            std::this_thread::sleep_for(500us);
            pump_once();
        }
    }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    inside = false;
}

void close_ring(int fd) {
    ring_pointer r;
    everything& a = all();
    bool mapped = false;
    {
        const std::scoped_lock lock(a.guard);
        const auto found = a.rings.find(fd);
        if (found == a.rings.end() || a.process != ::getpid()) {
            return;
        }
        r = found->second;
        a.rings.erase(found);
        mapped = std::erase_if(a.mappings, [fd](const auto& one) { return one.second == fd; }) != 0;
    }
    for (int& one : registered) {
        if (one == fd) {
            one = -1;
        }
    }
    r->closed = true;
    const std::scoped_lock turn(r->turn);
    r->event = -1;
    inside = true;
    if (mapped) {
        new ring_pointer(r); // never freed: the program may still access the memory
        if (r->through != nullptr) {
            r->through->close();
        }
    } else {
        r->k.reset();
    }
    inside = false;
}

} // namespace liburing_shim
