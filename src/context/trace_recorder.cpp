// Records a trace: one ring per thread, and a table of names.

#include "trace_recorder.hpp"

#include "trace_ring.hpp"

#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/probes.hpp>
#include <coil/context/trace.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/task_owner.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

constexpr std::size_t most_threads = 256;
/// The limit for all names of a trace together, including the memory of their tables.
constexpr std::size_t most_name_bytes = std::size_t{16} << 20U;
constexpr std::uint64_t without_name = 0;

struct recorder {
    std::mutex mutex;
    std::atomic<std::uint64_t> trace{0};                  // the number of the current or last one
    std::vector<std::shared_ptr<const trace_ring>> rings; // of that trace
    std::map<std::string, std::uint64_t, std::less<>> numbers;
    std::vector<std::string> names{""};
    std::size_t events = trace::default_events;
    std::uint64_t lost_threads = 0;
    std::size_t name_bytes = 0;
    std::uint64_t lost_names = 0;

    static recorder& instance() {
        static auto& only = *new recorder; // threads may outlive main()
        return only;
    }
};

/// Shared with the recorder, which keeps the events of threads that have ended.
struct ring_of_thread {
    std::shared_ptr<trace_ring> ring;
    std::uint64_t trace = 0; // that of the ring, or the one that had no ring for this thread
};

trace_ring* make_ring(ring_of_thread& here) noexcept {
    recorder& all = recorder::instance();
    const std::scoped_lock lock(all.mutex);
    here.trace = all.trace;
    here.ring.reset();
    try {
        if (all.rings.size() < most_threads) {
            auto made = std::make_shared<trace_ring>(all.events);
            all.rings.push_back(made);
            here.ring = std::move(made);
            return here.ring.get();
        }
    } catch (const std::bad_alloc&) { // NOLINT(*-empty-catch): this thread is not in the trace
    }
    ++all.lost_threads;
    return nullptr;
}

trace_ring* this_ring() noexcept {
    thread_local ring_of_thread here;
    static recorder& all = recorder::instance();
    if (here.trace == all.trace.load(std::memory_order_relaxed)) [[likely]] {
        return here.ring.get();
    }
    return make_ring(here);
}

void record(const trace_event& event) noexcept {
    if (trace_ring* const ring = this_ring()) [[likely]] {
        ring->push(event);
    }
}

/// The number of a name, which includes that of the trace, because each trace has its own names.
std::uint64_t of_trace(std::uint64_t trace, std::uint64_t index) noexcept {
    return (trace & 0xffffU) << 32U | index;
}

std::uint64_t number_of(std::string_view name) noexcept {
    if (name.empty()) {
        return without_name;
    }
    try {
        recorder& all = recorder::instance();
        const std::scoped_lock lock(all.mutex);
        if (const auto known = all.numbers.find(name); known != all.numbers.end()) {
            return of_trace(all.trace, known->second);
        }
        const std::size_t bytes = 2 * (name.size() + sizeof(std::string)) + 64;
        if (all.name_bytes + bytes <= most_name_bytes) {
            all.names.emplace_back(name);
            all.name_bytes += bytes;
            return of_trace(all.trace,
                            all.numbers.emplace(name, all.names.size() - 1).first->second);
        }
        ++all.lost_names;
    } catch (const std::bad_alloc&) { // NOLINT(*-empty-catch): the event has no name
    }
    return without_name;
}

std::uint64_t number(const void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

} // namespace

trace_ring::trace_ring(std::size_t events)
    : mask_(std::bit_ceil(std::clamp<std::size_t>(events, 16, std::size_t{1} << 26)) - 1),
      words_(new std::atomic<std::uint64_t>[capacity() * words_per_event]()),
      thread_(static_cast<::pid_t>(::syscall(SYS_gettid))) {
    char text[16] = "";
    ::pthread_getname_np(::pthread_self(), text, sizeof text);
    name_ = text;
}

std::vector<trace_event> trace_ring::copy() const {
    const std::uint64_t end = end_.load(std::memory_order_acquire);
    const std::uint64_t first = end > capacity() ? end - capacity() : 0;
    std::vector<trace_event> events;
    events.reserve(end - first);
    for (std::uint64_t at = first; at < end; ++at) {
        const std::atomic<std::uint64_t>* const words = &words_[(at & mask_) * words_per_event];
        const std::uint64_t kind = words[1].load(std::memory_order_relaxed);
        events.push_back({static_cast<std::int64_t>(words[0].load(std::memory_order_relaxed)),
                          static_cast<trace_kind>(kind & 0xff), kind >> 8U,
                          words[2].load(std::memory_order_relaxed),
                          words[3].load(std::memory_order_relaxed)});
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    const std::uint64_t begun = begun_.load(std::memory_order_relaxed);
    const std::uint64_t intact = begun > capacity() ? begun - capacity() : 0;
    if (intact > first) { // these were overwritten meanwhile
        events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(
                                                          std::min(intact - first, end - first)));
    }
    return events;
}

trace_rings all_trace_rings() {
    recorder& all = recorder::instance();
    const std::scoped_lock lock(all.mutex);
    return {all.rings, all.names, all.trace, all.lost_threads, all.lost_names};
}

std::vector<std::shared_ptr<const trace_ring>> trace_rings_alone() {
    recorder& all = recorder::instance();
    const std::scoped_lock lock(all.mutex);
    return all.rings;
}

std::int64_t record_resumption(std::int64_t begin_ns, const void* frame,
                               const void* function) noexcept {
    const std::int64_t now = trace_now_ns();
    // A trace that has started in the middle of a turn does not know its beginning.
    const std::int64_t begin = begin_ns != 0 ? begin_ns : now;
    record({begin, trace_kind::resumption, static_cast<std::uint64_t>(now - begin), number(frame),
            number(function)});
    return now;
}

void record_submission(std::int64_t now_ns, const uring::sqe& entry) noexcept {
    const auto& slot = *reinterpret_cast<const sqe_slot*>(entry.user_data);
    const void* const frame = slot.owner()->node().coroutine.address();
    record({now_ns, trace_kind::submission,
            std::uint64_t{static_cast<std::uint32_t>(entry.fd)} << 8U | entry.opcode,
            entry.user_data, number(frame)});
}

void record_completion(std::int64_t now_ns, const uring::cqe& completion) noexcept {
    record({now_ns, trace_kind::completion, completion.flags, completion.user_data,
            static_cast<std::uint64_t>(std::int64_t{completion.res})});
}

void record_wait(const void* frame, unsigned kind) noexcept {
    record({trace_now_ns(), trace_kind::wait, kind, number(frame), 0});
}

void record_spawn(promise_base& task) noexcept {
    const void* const frame = frame_of(task);
    record({trace_now_ns(), trace_kind::spawn, number_of(task.owner().name()), number(frame),
            number(resume_function(frame))});
}

void record_span(const recorded_span& span) noexcept {
    record({span.begin_ns, trace_kind::span,
            static_cast<std::uint64_t>(std::max<std::int64_t>(trace_now_ns() - span.begin_ns, 0)),
            span.id, span.parent});
    record({span.begin_ns, trace_kind::span_trace,
            number_of(span.name) << 1U | (span.sampled ? 1U : 0U), span.trace_high,
            span.trace_low});
}

} // namespace coil::detail

namespace coil::trace {

void start(std::size_t events_per_thread) {
    auto& all = detail::recorder::instance();
    const std::scoped_lock lock(all.mutex);
    if (is_on()) {
        return;
    }
    all.events = events_per_thread;
    all.rings.clear();
    all.lost_threads = 0;
    all.numbers.clear();
    all.names.resize(1);
    all.name_bytes = 0;
    all.lost_names = 0;
    ++all.trace;
    __atomic_store_n(&detail::all_observers.trace, 1, __ATOMIC_RELAXED);
}

void stop() noexcept { __atomic_store_n(&detail::all_observers.trace, 0, __ATOMIC_RELAXED); }

bool is_on() noexcept { return detail::is_tracing(); }

} // namespace coil::trace
