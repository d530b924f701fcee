#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace coil::detail {

enum class trace_kind : std::uint8_t {
    none,
    resumption, // begin; the duration; frame, function
    spawn,      // now; the number of the name; frame, function
    wait,       // now; wait_kind; frame
    submission, // now; opcode and descriptor; user_data, frame
    completion, // now; the CQE's flags; user_data, result
    span,       // begin; the duration; span, parent
    span_trace, // behind a span: the number of the name; the trace
};

struct trace_event {
    std::int64_t time_ns = 0;
    trace_kind kind = trace_kind::none;
    std::uint64_t detail = 0; // 56 bits
    std::uint64_t a = 0;
    std::uint64_t b = 0;
};

/// The events of one thread: the newest ones, as many as fit. The thread writes, others may read a
/// copy at any time.
class trace_ring {
public:
    explicit trace_ring(std::size_t events);

    /// Owner thread.
    void push(const trace_event& event) noexcept {
        const std::uint64_t at = end_.load(std::memory_order_relaxed);
        std::atomic<std::uint64_t>* const words = &words_[(at & mask_) * words_per_event];
        // Before the words: a reader that sees one of them knows that the old event is gone.
        begun_.store(at + 1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);
        words[0].store(static_cast<std::uint64_t>(event.time_ns), std::memory_order_relaxed);
        words[1].store(event.detail << 8U | static_cast<std::uint64_t>(event.kind),
                       std::memory_order_relaxed);
        words[2].store(event.a, std::memory_order_relaxed);
        words[3].store(event.b, std::memory_order_relaxed);
        end_.store(at + 1, std::memory_order_release);
    }

    /// Any thread: the events that are not being overwritten, the oldest first.
    [[nodiscard]] std::vector<trace_event> copy() const;

    [[nodiscard]] ::pid_t thread() const noexcept { return thread_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }

private:
    static constexpr std::size_t words_per_event = 4;

    const std::size_t mask_;
    const std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
    std::atomic<std::uint64_t> begun_{0}; // events whose writing has begun
    std::atomic<std::uint64_t> end_{0};   // events that are complete
    ::pid_t thread_;
    std::string name_;
};

/// All rings of the process, and the names in their events.
struct trace_rings {
    std::vector<std::shared_ptr<const trace_ring>> rings;
    std::vector<std::string> names;
    std::uint64_t lost_threads = 0; // without a ring, as there are too many
};
[[nodiscard]] trace_rings all_trace_rings();

} // namespace coil::detail
