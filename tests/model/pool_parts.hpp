#pragma once

// Shared by the models of a pool: its fences, its lock and its futexes; and those of channels,
// which use the fences.

#include "model/check.hpp"

#include <atomic>
#include <optional>
#include <source_location>

namespace coil_model {

/// A process-wide fence, as the kernel provides it: a full fence for the caller, and ordered with
/// the light fences of each other thread.
class fence_cells {
public:
    using where = std::source_location;
    static constexpr unsigned most_threads = 4;

    fence_cells() { current = this; }
    fence_cells(const fence_cells&) = delete;
    fence_cells& operator=(const fence_cells&) = delete;

    void light(where at) { cells_[rl::thread_index()].fetch_add(0, order, at); }
    void heavy(unsigned threads, where at) {
        rl::atomic_thread_fence(rl::mo_seq_cst, place(at));
        for (unsigned i = 0; i < threads; ++i) {
            cells_[i].fetch_add(0, order, at);
        }
    }

    /// The cells of the model being checked.
    static inline fence_cells* current = nullptr;

private:
    static constexpr auto order = std::memory_order_acq_rel;
    atomic<unsigned, as_written> cells_[most_threads] = {0, 0, 0, 0};
};

/// Which fences have an effect.
struct all_fences {
    static constexpr bool full = true;
    static constexpr bool light = true;
    static constexpr bool heavy = true;
};
struct no_full_fences : all_fences {
    static constexpr bool full = false;
};
struct no_light_fences : all_fences {
    static constexpr bool light = false;
};
struct no_heavy_fences : all_fences {
    static constexpr bool heavy = false;
};

/// The policy that replaces coil::detail::pool_atomics. Models with light fences contain a
/// fence_cells.
template <int Threads, class Change = as_written, class Fences = all_fences>
struct pool_atomics : atomics<Change> {
    using where = std::source_location;

    class mutex {
    public:
        void lock(where at = where::current()) { mutex_.lock(place(at)); }
        void unlock(where at = where::current()) { mutex_.unlock(place(at)); }

    private:
        rl::mutex mutex_;
    };

    static void fence(where at = where::current()) {
        if (Fences::full) {
            rl::atomic_thread_fence(rl::mo_seq_cst, place(at));
        }
    }
    static void light_fence(where at = where::current()) {
        if (Fences::light) {
            fence_cells::current->light(at);
        }
    }
    static void heavy_fence(where at = where::current()) {
        if (Fences::heavy) {
            fence_cells::current->heavy(Threads, at);
        }
    }

    /// The kernel compares with the current value, not with one that a relaxed load may see.
    static void sleep_while(atomic<unsigned, Change>& word, unsigned value,
                            where at = where::current()) {
        if (word.fetch_add(0, std::memory_order_seq_cst, at) == value) {
            word.sleep(at);
        }
    }
    static void wake(atomic<unsigned, Change>& word, where at = where::current()) { word.wake(at); }
    static void wake_all(atomic<unsigned, Change>& word, where at = where::current()) {
        word.wake_all(at);
    }
};

/// Channels are biased to the first thread that uses them. The other models' channels are shared
/// from the beginning, because the bias multiplies the interleavings.
template <class Fences = all_fences>
struct biased : without_spurious_failures {};

template <class Change>
struct channel_atomics : atomics<Change> {
    static bool can_bias() { return false; }
    static void light_fence() {}
    static void heavy_fence() {}
};
template <class Fences>
struct channel_atomics<biased<Fences>> : pool_atomics<2, biased<Fences>, Fences> {
    static bool can_bias() { return true; }
};

} // namespace coil_model
