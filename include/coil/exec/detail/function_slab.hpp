#pragma once

#include <coil/core/config.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/exec/detail/work.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// Storage for functions that one thread passes to others, which run and destroy them. The thread
/// fills one slab after the other from the beginning to the end and reads nothing that others have
/// written, so it does not wait for their cache lines, as it would with a free list. A slab is
/// freed when all of its places have been used and returned.
class function_slab {
public:
    static constexpr std::size_t place_bytes = 64;
    static constexpr std::size_t places = 63;

    struct place {
        void* memory;
        function_slab* of;
    };

    /// May throw std::bad_alloc.
    static place take() {
        cursor& c = here;
        if (c.next == c.end) [[unlikely]] {
            refill(c);
        }
        std::byte* const memory = c.next;
        // Prefetches the cache line of a later place, so that it has arrived when that place is
        // used.
        prefetch_to_write(memory + prefetched_ahead);
        c.next = memory + place_bytes;
        return {memory, c.of};
    }

    /// May be called from any thread.
    void give_back() noexcept { give_back(1); }

private:
    friend struct function_slab_end;

    /// The unused places of this thread's slab.
    struct cursor {
        std::byte* next;
        std::byte* end;
        function_slab* of;
    };
    static constexpr std::size_t prefetched_ahead = 8 * place_bytes;

    static void refill(cursor& c);
    void give_back(std::size_t count) noexcept {
        if (left_.fetch_sub(count, std::memory_order_acq_rel) == count) {
            std::destroy_at(this);
            deallocate_frame(this, sizeof(function_slab));
        }
    }

    static constinit inline thread_local cursor here{nullptr, nullptr, nullptr};

    alignas(place_bytes) std::atomic<std::size_t> left_{places};
    alignas(place_bytes) std::byte places_[places * place_bytes];
};

/// A function_work stored in a slab.
template <class F>
class slab_work final : public work {
public:
    template <class G>
    static work& make(G&& f) {
        const function_slab::place place = function_slab::take();
        try {
            return *::new (place.memory) slab_work(*place.of, std::forward<G>(f));
        } catch (...) {
            place.of->give_back();
            throw;
        }
    }

private:
    template <class G>
    slab_work(function_slab& slab, G&& f)
        : work(&finish), slab_(slab), function_(std::forward<G>(f)) {}

    static void finish(work& w, fate what) noexcept {
        auto* const self = static_cast<slab_work*>(&w);
        if (what == fate::run) {
            try {
                self->function_();
            } catch (...) {
                report_unhandled(std::current_exception());
            }
        }
        function_slab& slab = self->slab_;
        std::destroy_at(self);
        slab.give_back();
    }

    function_slab& slab_;
    F function_;
};

/// Under a sanitizer every function is allocated separately.
template <class F>
inline constexpr bool fits_a_slab =
    !COIL_SANITIZED && sizeof(slab_work<F>) <= function_slab::place_bytes &&
    alignof(slab_work<F>) <= function_slab::place_bytes;

} // namespace coil::detail
