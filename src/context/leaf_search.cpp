#include "leaf_search.hpp"

#include "copy_memory.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/multishot_source.hpp>
#include <coil/context/detail/sleep_awaiter.hpp>
#include <coil/context/detail/timed_op.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/frame_sizes.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace coil::detail {

namespace {

constexpr std::size_t coroutine_at = sizeof(queue_node*); // in a queue_node
constexpr std::size_t first_chunk = 512;
constexpr std::size_t chunk = 4096;
/// The maximum number of bytes of a frame to copy and search: more than largest_pooled_frame.
constexpr std::size_t most_bytes = std::size_t{20} * 1024;

/// A word of a frame or of its copy. Other threads may write to other words of the frame meanwhile.
std::uintptr_t word_at(const std::byte* memory, std::size_t offset) noexcept {
    return __atomic_load_n(reinterpret_cast<const std::uintptr_t*>(memory + offset),
                           __ATOMIC_RELAXED);
}

/// Adds the time limit of a call in a chain. The kernel starts it with the call and does not report
/// when.
void add_kernel_limit(wait_record& wait, const uring::sqe& request) noexcept {
    const auto& limit = *reinterpret_cast<const uring::timespec*>(request.addr);
    const std::int64_t ns = limit.tv_sec * 1'000'000'000 + limit.tv_nsec;
    const bool is_time = (request.timeout_flags & uring::timeout_flag::abs) != 0;
    (is_time ? wait.deadline_ns : wait.limit_ns) = ns;
}

/// Whether the field `fd` of a request is a descriptor; some operations use it for other values.
bool has_descriptor(std::uint8_t code) noexcept {
    switch (static_cast<uring::opcode>(code)) {
        using enum uring::opcode;
    case futex_wait: // flags
    case futex_wake:
    case futex_waitv:
    case waitid:          // a process
    case provide_buffers: // a count
    case remove_buffers:
        return false;
    default:
        return true;
    }
}

wait_record describe_calls(const io_op& op, wait_record::what kind) noexcept {
    wait_record wait{.kind = kind};
    const sqe_slot* const first = op.first();
    if (first == nullptr) {
        return wait;
    }
    if (op.state().is(op_state::phase::queued)) {
        wait.kind = wait_record::what::queued;
    }
    const sqe_slot* entry = first;
    while (entry->is_completed() && entry->next() != nullptr) { // the completed entries of a chain
        entry = entry->next();
    }
    wait.opcode = static_cast<std::uint8_t>(entry->request.opcode);
    wait.fd = has_descriptor(entry->request.opcode) ? entry->request.fd : -1;
    wait.is_direct = (entry->request.flags & uring::sqe_flag::fixed_file) != 0;
    if (entry->next() != nullptr && entry->next()->is_limit()) {
        add_kernel_limit(wait, entry->next()->request);
    }
    return wait;
}

/// Adds when the timer of a wait fires. It was armed when the wait began.
void add_timer(wait_record& wait, const timer_node& timer, std::int64_t ns,
               sleep_awaitable::from origin) noexcept {
    constexpr std::int64_t longest = std::int64_t{1} << 60; // longer ones may be saturated
    if (!timer.armed()) {
        return;
    }
    wait.deadline_ns = timer.tick() << timer_wheel::tick_shift;
    if (origin == sleep_awaitable::from::now && ns < longest) {
        wait.begun_ns = wait.deadline_ns - ns;
    }
}

/// Adds how a mutex is locked, and by which task. Does not access the task, which may have ended.
void add_holder(wait_record& wait) noexcept {
    using enum waited_object;
    if ((wait.object != mutex && wait.object != shared_mutex) || wait.address == nullptr) {
        return;
    }
    const auto& held = *static_cast<const lock_holder*>(wait.address);
    const promise_base* const root = held.root.load(std::memory_order_relaxed);
    wait.is_locked_shared = lock_holder::is_shared(root);
    if (root != nullptr && !wait.is_locked_shared) {
        wait.holder = frame_of(*const_cast<promise_base*>(root));
    }
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

const awaiter_base* leaf_search::find_awaiter(const void* frame) const noexcept {
    const auto* const begin = static_cast<const std::byte*>(frame);
    if (const std::size_t size = frame_bytes_from(frame); size > 0) {
        return search(frame, begin, size, 0);
    }
    alignas(std::uintptr_t) std::array<std::byte, most_bytes> copy; // NOLINT(*-member-init)
    std::size_t size = 0;
    for (std::size_t next = first_chunk; size < most_bytes; next = chunk) {
        const std::size_t wanted = std::min(next, most_bytes - size);
        const std::size_t copied = copy_memory(begin + size, copy.data() + size, wanted);
        const std::size_t seen = size > sizeof(awaiter_base) ? size - sizeof(awaiter_base) : 0;
        size += copied;
        if (const awaiter_base* const found = search(frame, copy.data(), size, seen)) {
            return found;
        }
        if (copied < wanted) {
            break;
        }
    }
    return nullptr;
}

wait_record leaf_search::find(const void* frame) const {
    const awaiter_base* const found = find_awaiter(frame);
    return found != nullptr ? describe(*found) : wait_record{};
}

bool leaf_search::is_pending(const void* frame) const noexcept {
    const awaiter_base* const found = find_awaiter(frame);
    return found != nullptr && found->pending();
}

wait_record leaf_search::describe_operation(const io_op& op) noexcept {
    wait_record record = describe_calls(op, wait_record::what::operation);
    if (op.state().is_timed()) {
        const auto& timed = static_cast<const timed_op&>(op);
        add_timer(record, timed, timed.ns_, timed.origin_);
    }
    return record;
}

wait_record leaf_search::describe(const awaiter_base& awaiter) noexcept {
    using what = wait_record::what;
    if (!awaiter.pending()) {
        return {.kind = what::ready};
    }
    switch (awaiter.kind()) {
    case wait_kind::operation:
        return describe_operation(static_cast<const io_op&>(awaiter));
    case wait_kind::stream: {
        const auto& wait = static_cast<const multishot_awaiter&>(awaiter);
        wait_record record{.kind = what::stream};
        if (wait.source_ != nullptr) {
            record = describe_calls(*wait.source_, what::stream);
        }
        add_timer(record, wait, wait.ns_, wait.origin_);
        return record;
    }
    case wait_kind::sleep:
        return {.kind = what::sleep,
                .deadline_ns = static_cast<const sleep_awaiter&>(awaiter).tick()
                               << timer_wheel::tick_shift};
    case wait_kind::sync: {
        const auto& wait = static_cast<const described_wait&>(awaiter);
        const auto* const words = reinterpret_cast<const void* const*>(&wait);
        const void* const address = wait.object_at() != 0 ? words[wait.object_at()] : nullptr;
        wait_record record{.kind = what::object, .object = wait.object(), .address = address};
        add_holder(record);
        if (address != nullptr && (record.object == waited_object::channel_receive ||
                                   record.object == waited_object::channel_send)) {
            record.has_fill = true;
            record.fill = fill_of_channel(address);
        }
        return record;
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
