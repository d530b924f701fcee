#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/listed_loop.hpp>
#include <coil/core/detail/backoff.hpp>

#include <mutex>
#include <utility>

#include <pthread.h>

#ifdef COIL_GDB_SCRIPT
// gdb loads this script with every program that has a loop. The section is not loaded into memory.
__asm__(R"(
    .pushsection ".debug_gdb_scripts", "MS", %progbits, 1
    .byte 1 /* a file in Python */
    .asciz ")" COIL_GDB_SCRIPT R"("
    .popsection
)");
#endif

namespace coil::detail {

namespace {

constinit std::mutex list_mutex; // protects the variables below, and the links
constinit listed_loop* first_loop = nullptr;
constinit std::uint64_t last_number = 0;

/// If another thread held the mutex during a fork(), it would stay locked in the child, which may
/// use contexts.
[[maybe_unused]] const int fork_handler = ::pthread_atfork(
    [] { list_mutex.lock(); }, [] { list_mutex.unlock(); }, [] { list_mutex.unlock(); });

} // namespace

listed_loop::listed_loop() {
    const std::scoped_lock lock(list_mutex);
    number_ = ++last_number;
    push_to(first_loop);
}

void listed_loop::leave_list() noexcept {
    const std::scoped_lock lock(list_mutex);
    if (is_linked()) {
        unlink();
    }
}

void listed_loop::end_with_destroyed_context() noexcept {
    end_with_misuse("an io_context is used after it was destroyed: a task or function is sent to "
                    "it, or what a task of it waits for has ended. It must outlive all of these.");
}

bool listed_loop::post_if_running(event_loop* loop, std::uint64_t number,
                                  queue_node& node) noexcept {
    const std::scoped_lock lock(list_mutex); // while it is held, no loop leaves the list
    for (listed_loop* one = first_loop; one != nullptr; one = one->next) {
        if (one->number_ == number) {
            const bool runs = one->is_running();
            if (runs) {
                loop->post(node);
            }
            return runs;
        }
    }
    return false;
}

bool listed_loop::for_each_running(bool (*f)(event_loop&, void*) noexcept,
                                   void* argument) noexcept {
    const std::scoped_lock lock(list_mutex);
    for (listed_loop* one = first_loop; one != nullptr; one = one->next) {
        // Acquires the construction of the loop, which ends after the loop has entered the list.
        if (one->use_.load(std::memory_order_acquire) == use::running &&
            !f(static_cast<event_loop&>(*one), argument)) {
            return false;
        }
    }
    return true;
}

bool listed_loop::begin(use what) noexcept {
    for (backoff wait;; wait.once_more()) {
        use expected = use::free;
        if (use_.compare_exchange_weak(expected, what, std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
            return true;
        }
        if (expected == use::running) {
            return false;
        }
    }
}

listed_loop* listed_loop::claim_idle(bool (*wanted)(listed_loop&) noexcept) noexcept {
    listed_loop* claimed = nullptr;
    const std::scoped_lock lock(list_mutex);
    for (listed_loop* one = first_loop; one != nullptr; one = one->next) {
        use expected = use::free;
        if (one->use_.load(std::memory_order_relaxed) == use::free && wanted(*one) &&
            one->use_.compare_exchange_strong(expected, use::serviced, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
            one->next_claimed = std::exchange(claimed, one);
        }
    }
    return claimed;
}

} // namespace coil::detail
