#include "waiting_threads.hpp"

#include <mutex>
#include <new>
#include <vector>

#include <pthread.h>

namespace coil::detail {

namespace {

/// Never destroyed: threads may wait while the process exits.
struct list {
    std::mutex mutex;
    std::vector<const waiting_threads*> entries;
    std::uint64_t changes = 0; // of the list itself
};

list& the_list() {
    static list* const made = [] {
        auto* const one = new list;
        static list& forked = *one;
        // In the child the other threads do not exist, and their stacks may be reused.
        ::pthread_atfork([] { forked.mutex.lock(); }, [] { forked.mutex.unlock(); },
                         [] {
                             forked.entries.clear();
                             forked.mutex.unlock();
                         });
        return one;
    }();
    return *made;
}

/// Created before there are other threads. Otherwise the child of a fork() during the
/// initialisation would wait for ever for a thread that it does not have.
[[maybe_unused]] const list& made_at_start = the_list();

} // namespace

void waiting_threads::enter_list() noexcept try {
    list& to = the_list();
    const std::scoped_lock lock(to.mutex);
    ++to.changes;
    to.entries.push_back(this);
} catch (const std::bad_alloc&) { // NOLINT(*-empty-catch): see the declaration
}

void waiting_threads::leave_list() noexcept try {
    list& from = the_list();
    const std::scoped_lock lock(from.mutex);
    ++from.changes;
    std::erase(from.entries, this);
} catch (const std::bad_alloc&) { // NOLINT(*-empty-catch): then the list was never created
}

std::optional<waiting_threads::state> waiting_threads::all() noexcept try {
    list& from = the_list();
    const std::scoped_lock lock(from.mutex);
    state sum{.threads = 0, .changes = from.changes};
    for (const waiting_threads* one : from.entries) {
        const std::optional<state> part = one->now_waiting();
        if (!part) {
            return std::nullopt;
        }
        sum.threads += part->threads;
        sum.changes += part->changes;
    }
    return sum;
} catch (const std::bad_alloc&) {
    return std::nullopt;
}

} // namespace coil::detail
