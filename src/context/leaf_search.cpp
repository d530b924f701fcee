#include "leaf_search.hpp"

#include "copy_memory.hpp"

#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/multishot_source.hpp>
#include <coil/context/detail/sleep_awaiter.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace coil::detail {

namespace {

constexpr std::size_t coroutine_at = sizeof(queue_node*); // in a queue_node
constexpr std::size_t first_chunk = 512;
constexpr std::size_t chunk = 4096;
/// The frames of the allocator, and a part of larger ones.
constexpr std::size_t most_bytes = std::size_t{20} * 1024;

/// Of a frame, other words of which other threads may write meanwhile, or of its copy.
std::uintptr_t word_at(const std::byte* memory, std::size_t offset) noexcept {
    return __atomic_load_n(reinterpret_cast<const std::uintptr_t*>(memory + offset),
                           __ATOMIC_RELAXED);
}

wait_record describe_operation(const io_op& op, wait_record::what kind) noexcept {
    wait_record wait{.kind = kind};
    const sqe_slot* const first = op.first();
    if (first == nullptr) {
        return wait;
    }
    if (op.state().is(op_state::phase::queued)) {
        wait.kind = wait_record::what::queued;
    }
    const sqe_slot* entry = first;
    while (entry->is_completed() && entry->next != nullptr) { // of a chain
        entry = entry->next;
    }
    wait.opcode = static_cast<std::uint8_t>(entry->request.opcode);
    wait.fd = entry->request.fd;
    wait.is_direct = (entry->request.flags & uring::sqe_flag::fixed_file) != 0;
    wait.has_limit = entry->next != nullptr && entry->next->is_limit();
    return wait;
}

/// The frame of the task that has locked a mutex. Does not access the task, which may have ended.
const void* holder_of(waited_object object, const void* address) noexcept {
    if (object != waited_object::mutex || address == nullptr) {
        return nullptr;
    }
    const auto& held = *static_cast<const lock_holder*>(address);
    const promise_base* const root = held.root.load(std::memory_order_relaxed);
    return root != nullptr ? frame_of(*const_cast<promise_base*>(root)) : nullptr;
}

} // namespace

const awaiter_base* leaf_search::search(const void* frame, const std::byte* copy, std::size_t size,
                                        std::size_t from) const noexcept {
    using phase = awaiter_base::phase;
    constexpr std::size_t word_offset = sizeof(awaiter_base) - sizeof(awaiter_base::word_);
    static_assert(alignof(event_loop) > awaiter_base::flags_mask);
    const auto coroutine = reinterpret_cast<std::uintptr_t>(frame);
    const auto loop = reinterpret_cast<std::uintptr_t>(&loop_);
    for (std::size_t at = from; at + sizeof(awaiter_base) <= size; at += sizeof(void*)) {
        const std::uintptr_t word = word_at(copy, at + word_offset);
        const auto is = static_cast<phase>(word & awaiter_base::phase_mask);
        if (word_at(copy, at + coroutine_at) == coroutine &&
            (word & ~awaiter_base::flags_mask) == loop &&
            (is == phase::pending || is == phase::done)) {
            return reinterpret_cast<const awaiter_base*>(static_cast<const std::byte*>(frame) + at);
        }
    }
    return nullptr;
}

wait_record leaf_search::find(const void* frame) const {
    const auto* const begin = static_cast<const std::byte*>(frame);
    if (const std::size_t size = sizes_.bytes_from(frame); size > 0) {
        const awaiter_base* const found = search(frame, begin, size, 0);
        return found != nullptr ? describe(*found) : wait_record{};
    }
    alignas(std::uintptr_t) std::array<std::byte, most_bytes> copy; // NOLINT(*-member-init)
    std::size_t size = 0;
    for (std::size_t next = first_chunk; size < most_bytes; next = chunk) {
        const std::size_t wanted = std::min(next, most_bytes - size);
        const std::size_t copied = copy_memory(begin + size, copy.data() + size, wanted);
        const std::size_t seen = size > sizeof(awaiter_base) ? size - sizeof(awaiter_base) : 0;
        size += copied;
        if (const awaiter_base* const found = search(frame, copy.data(), size, seen)) {
            return describe(*found);
        }
        if (copied < wanted) {
            break;
        }
    }
    return {};
}

wait_record leaf_search::describe(const awaiter_base& awaiter) noexcept {
    using what = wait_record::what;
    if (!awaiter.pending()) {
        return {.kind = what::ready};
    }
    switch (awaiter.kind()) {
    case wait_kind::operation:
        return describe_operation(static_cast<const io_op&>(awaiter), what::operation);
    case wait_kind::stream: {
        const multishot_source* const source =
            static_cast<const multishot_awaiter&>(awaiter).source_;
        return source != nullptr ? describe_operation(*source, what::stream)
                                 : wait_record{.kind = what::stream};
    }
    case wait_kind::sleep:
        return {.kind = what::sleep,
                .deadline_ns = static_cast<const sleep_awaiter&>(awaiter).tick
                               << timer_wheel::tick_shift};
    case wait_kind::sync: {
        const auto& wait = static_cast<const described_wait&>(awaiter);
        const auto* const words = reinterpret_cast<const void* const*>(&wait);
        const void* const address = wait.object_at() != 0 ? words[wait.object_at()] : nullptr;
        return {.kind = what::object,
                .object = wait.object(),
                .address = address,
                .holder = holder_of(wait.object(), address)};
    }
    case wait_kind::join:
        return {.kind = what::join};
    case wait_kind::child:
        return {.kind = what::child};
    case wait_kind::other:
        break;
    }
    return {};
}

} // namespace coil::detail
