#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/frame_sizes.hpp>
#include <coil/core/detail/list_node.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include <sys/mman.h>

namespace coil::detail {

namespace {

constexpr std::size_t span_bytes = std::size_t{256} * 1024;
constexpr std::uint32_t batch_frames = 32;

/// The maximum number of frames of one class that a thread caches: 256 KiB of them, but at least
/// two batches and at most 2048 frames.
constexpr std::uint32_t cache_limit(std::size_t frame_bytes) noexcept {
    return static_cast<std::uint32_t>(
        std::clamp<std::size_t>(span_bytes / frame_bytes, 2 * batch_frames, 2048));
}

/// The size class of each span, by address, for reports. A span is added before the first of its
/// frames is handed out and removed before it is unmapped, so the size reported for an existing
/// frame is correct.
class span_table {
public:
    /// Without memory for the entry, the sizes of these frames are unknown.
    void add(const void* span, std::size_t frame_bytes) noexcept {
        if (std::atomic<std::uint16_t>* const entry = entry_of(span, true)) {
            entry->store(static_cast<std::uint16_t>(frame_bytes / frame_alignment),
                         std::memory_order_relaxed);
        }
    }
    void remove(const void* span) noexcept {
        if (std::atomic<std::uint16_t>* const entry = entry_of(span, false)) {
            entry->store(0, std::memory_order_relaxed);
        }
    }
    /// The size in bytes of the frames in the span that contains `address`; 0 if no span does.
    [[nodiscard]] std::size_t frame_bytes(const void* address) noexcept {
        const std::atomic<std::uint16_t>* const entry = entry_of(address, false);
        return entry != nullptr ? entry->load(std::memory_order_relaxed) * frame_alignment : 0;
    }

private:
    static constexpr std::size_t address_bits = 48;
    static constexpr std::size_t part_bits = 16; // a part covers 16 GiB
    using part = std::array<std::atomic<std::uint16_t>, std::size_t{1} << part_bits>;
    static_assert(frame_classes <= UINT16_MAX);

    /// Null if there is none, or no memory for it.
    std::atomic<std::uint16_t>* entry_of(const void* address, bool make) noexcept {
        const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(address) / span_bytes;
        const std::uintptr_t which = number >> part_bits;
        if (which >= parts_.size()) {
            return nullptr;
        }
        part* at = parts_[which].load(std::memory_order_acquire);
        if (at == nullptr && make) {
            at = add_part(parts_[which]);
        }
        return at != nullptr ? &(*at)[number % (std::size_t{1} << part_bits)] : nullptr;
    }

    /// Unused pages of a part cost nothing.
    static part* add_part(std::atomic<part*>& to) noexcept {
        void* const memory = ::mmap(nullptr, sizeof(part), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            return nullptr;
        }
        part* found = nullptr;
        if (!to.compare_exchange_strong(found, static_cast<part*>(memory))) {
            ::munmap(memory, sizeof(part)); // another thread was first
            return found;
        }
        return static_cast<part*>(memory);
    }

    std::array<std::atomic<part*>, (std::size_t{1} << (address_bits - part_bits)) / span_bytes>
        parts_{};
};
constinit span_table spans;

/// A region aligned to its own size and divided into frames of one class. The header is at its
/// start, so masking a frame's address finds its span.
struct span : list_node<span> {
    free_frame* free; // frames that were freed
    std::byte* fresh; // the first byte never handed out; pages not touched yet cost nothing
    std::uint32_t used;
    std::uint32_t frame_bytes;
};
static_assert(sizeof(span) <= frame_alignment);

template <class Address>
span* span_of(Address* inside) noexcept {
    return reinterpret_cast<span*>(reinterpret_cast<std::uintptr_t>(inside) & ~(span_bytes - 1));
}

span* map_span(std::size_t frame_bytes) {
    // A mapping of twice the size contains an aligned span. The rest is unmapped immediately.
    void* raw = ::mmap(nullptr, 2 * span_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        throw std::bad_alloc();
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(raw);
    const std::uintptr_t aligned = (begin + span_bytes - 1) & ~(span_bytes - 1);
    if (aligned > begin) {
        ::munmap(raw, aligned - begin);
    }
    ::munmap(reinterpret_cast<void*>(aligned + span_bytes), begin + span_bytes - aligned);
    auto* s = reinterpret_cast<span*>(aligned);
    s->fresh = reinterpret_cast<std::byte*>(aligned) + frame_alignment;
    s->frame_bytes = static_cast<std::uint32_t>(frame_bytes);
    spans.add(s, frame_bytes);
    return s;
}

void unmap_span(span& s) noexcept {
    spans.remove(&s);
    ::munmap(&s, span_bytes);
}

/// The frames of one size class that no thread caches. The mutex is locked once per batch.
class frame_pool {
public:
    /// Returns up to `batch_frames` frames as a list that ends at no_frame. Returns at least one,
    /// or throws std::bad_alloc.
    free_frame* take(std::size_t frame_bytes) {
        const std::scoped_lock lock(mutex_);
        free_frame* head = &no_frame;
        std::uint32_t count = 0;
        while (count < batch_frames) {
            span* s = available_;
            if (s == nullptr) {
                if (count > 0) {
                    break; // map a new span only if there is no frame at all
                }
                s = map_span(frame_bytes);
                s->push_to(available_);
            }
            while (count < batch_frames && s->free != nullptr) {
                free_frame* const frame = s->free;
                s->free = frame->next;
                ++s->used;
                *frame = {head, ++count};
                head = frame;
            }
            // From the highest to the lowest address, so that frames are handed out in ascending
            // order.
            const std::size_t fresh =
                std::min<std::size_t>(batch_frames - count, fresh_bytes(*s) / frame_bytes);
            for (std::size_t i = fresh; i-- > 0;) {
                auto* const frame = reinterpret_cast<free_frame*>(s->fresh + i * frame_bytes);
                *frame = {head, ++count};
                head = frame;
            }
            s->fresh += fresh * frame_bytes;
            s->used += static_cast<std::uint32_t>(fresh);
            if (is_full(*s, frame_bytes)) {
                s->unlink();
            }
        }
        return head;
    }

    /// Unmaps the empty span that give() keeps.
    void release_empty() noexcept {
        const std::scoped_lock lock(mutex_);
        for (span* s = available_; s != nullptr;) {
            span& one = *s;
            s = one.next;
            if (one.used == 0) {
                one.unlink();
                unmap_span(one);
            }
        }
    }

    /// Takes back a list that ends at no_frame.
    void give(free_frame* head, std::size_t frame_bytes) noexcept {
        const std::scoped_lock lock(mutex_);
        while (head != &no_frame) {
            free_frame* frame = head;
            head = frame->next;
            span& s = *span_of(frame);
            if (is_full(s, frame_bytes)) {
                s.push_to(available_);
            }
            frame->next = s.free;
            s.free = frame;
            if (--s.used == 0 && (s.next != nullptr || available_ != &s)) {
                // one empty span is kept, so that a single frame does not cause mapping and
                // unmapping
                s.unlink();
                unmap_span(s);
            }
        }
    }

private:
    static bool is_full(const span& s, std::size_t frame_bytes) noexcept {
        return s.free == nullptr && fresh_bytes(s) < frame_bytes;
    }

    static std::size_t fresh_bytes(const span& s) noexcept {
        const auto* const end = reinterpret_cast<const std::byte*>(&s) + span_bytes;
        return static_cast<std::size_t>(end - s.fresh);
    }

    std::mutex mutex_;
    span* available_ = nullptr; // exactly the spans that are not full
};

/// Never destroyed: destructors of statics may free frames.
frame_pool* pools() noexcept {
    alignas(frame_pool) static std::byte storage[frame_classes * sizeof(frame_pool)];
    static frame_pool* const all = [] {
        auto* p = reinterpret_cast<frame_pool*>(storage);
        for (std::size_t i = 0; i < frame_classes; ++i) {
            new (p + i) frame_pool;
        }
        return p;
    }();
    return all;
}

/// Whether this thread's lists have been returned because the thread is exiting. Frames of its last
/// destructors come from the pool and return to it.
constinit thread_local bool ended = false;

/// Returns this thread's cached frames to the pool when the thread exits.
struct cache_flusher {
    ~cache_flusher() {
        ended = true;
        for (std::size_t c = 1; c < frame_classes; ++c) {
            frame_list& list = frame_lists[c];
            if (list.head != &no_frame) {
                pools()[c].give(list.head, c * frame_alignment);
            }
            list = {};
        }
    }
};

void flush_at_thread_exit() { thread_local cache_flusher flusher; }

/// One frame, for a thread without lists.
void* take_one(std::size_t c) {
    const std::size_t frame_bytes = c * frame_alignment;
    free_frame* const frame = pools()[c].take(frame_bytes);
    if (frame->next != &no_frame) {
        pools()[c].give(frame->next, frame_bytes);
    }
    return frame;
}

void give_one(void* memory, std::size_t c) noexcept {
    auto* const frame = static_cast<free_frame*>(memory);
    frame->next = &no_frame;
    pools()[c].give(frame, c * frame_alignment);
}

} // namespace

void trim_frame_cache() noexcept {
    frame_cache_overflowed = false;
    for (std::size_t c = 1; c < frame_classes; ++c) {
        frame_list& list = frame_lists[c];
        if (list.limit == 0) {
            continue; // never used here
        }
        if (list.head != &no_frame) {
            pools()[c].give(list.head, c * frame_alignment);
            list.head = &no_frame;
        }
        pools()[c].release_empty();
    }
}

void* allocate_frame_slow(std::size_t bytes) {
    if (bytes > largest_pooled_frame) {
        return ::operator new(bytes, std::align_val_t{frame_alignment});
    }
    const std::size_t c = frame_class(bytes);
    if (ended) {
        return take_one(c);
    }
    flush_at_thread_exit();
    const std::size_t frame_bytes = c * frame_alignment;
    free_frame* const frame = pools()[c].take(frame_bytes);
    frame_lists[c] = {frame->next, cache_limit(frame_bytes)};
    return frame;
}

void free_frame_slow(void* memory, std::size_t bytes) noexcept {
    if (bytes > largest_pooled_frame) {
        ::operator delete(memory, bytes, std::align_val_t{frame_alignment});
        return;
    }
    const std::size_t c = frame_class(bytes);
    if (ended) {
        give_one(memory, c);
        return;
    }
    flush_at_thread_exit();
    frame_list& list = frame_lists[c];
    auto* head = static_cast<free_frame*>(memory);
    if (list.limit == 0) {
        // The first frame of this class freed on this thread.
        *head = {&no_frame, 1};
        list = {head, cache_limit(c * frame_alignment)};
        return;
    }
    frame_cache_overflowed = true;
    head->next = &no_frame;
    for (std::uint32_t moved = 1; moved < batch_frames && list.head != &no_frame; ++moved) {
        free_frame* frame = list.head;
        list.head = frame->next;
        frame->next = head;
        head = frame;
    }
    pools()[c].give(head, c * frame_alignment);
}

namespace {

struct place {
    std::size_t offset; // in the frame
    std::size_t size;   // of the frame; 0: unknown
};

place place_of(const void* address) noexcept {
    const std::size_t inside = reinterpret_cast<std::uintptr_t>(address) % span_bytes;
    const std::size_t size = spans.frame_bytes(address);
    if (size == 0 || inside < frame_alignment) { // the span's header
        return {0, 0};
    }
    return {(inside - frame_alignment) % size, size};
}

} // namespace

std::size_t frame_size(const void* frame) noexcept {
    const place at = place_of(frame);
    return at.offset == 0 ? at.size : 0;
}

std::size_t frame_bytes_from(const void* address) noexcept {
    const place at = place_of(address);
    return at.size - at.offset;
}

const void* frame_around(const void* address) noexcept {
    const place at = place_of(address);
    return at.size == 0 ? nullptr : static_cast<const std::byte*>(address) - at.offset;
}

} // namespace coil::detail
