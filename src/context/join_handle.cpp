#include "deadlock.hpp"
#include "futex.hpp"
#include "spawn_place.hpp"
#include "waiting_threads.hpp"

#include <coil/context/join_handle.hpp>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string_view>

namespace coil::detail {

void join_state_base::mark_done() noexcept {
    if (waiter* w = handshake_.mark_done()) {
        w->notify(*w);
    }
}

bool join_state_base::register_waiter(waiter& w) noexcept { return handshake_.register_waiter(w); }

bool join_state_base::withdraw_waiter(waiter& w) noexcept { return handshake_.withdraw_waiter(w); }

namespace {

/// A thread that sleeps in get(). The futex is woken by its address only: its memory is not
/// accessed after `woken` is set, so get() may return immediately.
struct blocking_waiter : join_state_base::waiter {
    blocking_waiter() noexcept
        : waiter{[](waiter& base) noexcept {
              std::atomic<int>& word = static_cast<blocking_waiter&>(base).woken;
              const void* const address = &word;
              word.store(1, std::memory_order_release);
              futex_wake(address, 1);
          }} {}

    std::atomic<int> woken{0};
};
static_assert(sizeof(std::atomic<int>) == sizeof(int));

/// The thread that sleeps, for the detection of deadlocks.
class blocked_thread final : waiting_threads {
public:
    explicit blocked_thread(const blocking_waiter& waiter) noexcept : waiter_(waiter) {
        enter_list();
    }
    blocked_thread(const blocked_thread&) = delete;
    blocked_thread& operator=(const blocked_thread&) = delete;
    ~blocked_thread() { leave_list(); }

    [[nodiscard]] std::optional<state> now_waiting() const noexcept override {
        if (waiter_.woken.load(std::memory_order_acquire) != 0) {
            return std::nullopt;
        }
        return state{.threads = 1};
    }

private:
    const blocking_waiter& waiter_;
};

} // namespace

void join_state_base::wait_blocking() noexcept {
    blocking_waiter w;
    if (!register_waiter(w)) {
        return;
    }
    if (w.woken.load(std::memory_order_acquire) != 0) {
        return;
    }
    const blocked_thread blocked(w);
    // The first waits are short, to see twice whether there is a thread that could run the task.
    bool is_alone = true;
    for (int looks = 0; looks < 2; ++looks) {
        constexpr std::timespec a_while{0, 50'000'000};
        futex_wait(&w.woken, 0, &a_while);
        if (w.woken.load(std::memory_order_acquire) != 0) {
            return;
        }
        is_alone = is_alone && deadlock_detection::nothing_runs();
    }
    if (is_alone) {
        report_never_run();
    }
    while (w.woken.load(std::memory_order_acquire) == 0) {
        futex_wait(&w.woken, 0);
    }
}

void join_state_base::report_never_run() const noexcept {
    std::fputs("coil: join_handle::get() waits for ever for the task", stderr);
    write_name_and_place(name(), spawned_at(), [](std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stderr);
    });
    std::fputs(": no thread of the process runs its context. Call start() before get(), or "
               "coil::run(task); in a simulated world, run the world first.\n",
               stderr);
}

} // namespace coil::detail
