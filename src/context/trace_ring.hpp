#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace coil::detail {

/// The kinds of events. The comments name the contents of a trace_event: time_ns; detail; a, b.
enum class trace_kind : std::uint8_t {
    none,
    resumption, // begin; duration; frame, function
    spawn,      // time of the event; number of the name; frame, function
    wait,       // time of the event; wait_kind; frame
    submission, // time of the event; opcode and descriptor; user_data, frame
    completion, // time of the event; the CQE's flags; user_data, result
    span,       // begin; duration; span, parent
    // follows each span: number of the name, times two, and whether it is sampled; trace in a, b
    span_trace,
};

struct trace_event {
    std::int64_t time_ns = 0;
    trace_kind kind = trace_kind::none;
    std::uint64_t detail = 0; // 56 bits
    std::uint64_t a = 0;
    std::uint64_t b = 0;
};

/// The newest events of one thread, as many as fit. Only this thread writes them; any thread may
/// take a copy at any time.
class trace_ring {
public:
    explicit trace_ring(std::size_t events);

    /// Owner thread.
    void push(const trace_event& event) noexcept {
        const std::uint64_t at = end_.load(std::memory_order_relaxed);
        std::atomic<std::uint64_t>* const words = &words_[(at & mask_) * words_per_event];
        // Stored before the words: a reader that sees one of the new words also sees that the old
        // event is being overwritten.
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

/// The rings of the current or last trace, and the names in their events.
struct trace_rings {
    std::vector<std::shared_ptr<const trace_ring>> rings;
    std::vector<std::string> names;
    std::uint64_t trace = 0;        // its number; the numbers of names begin with its low 16 bits
    std::uint64_t lost_threads = 0; // threads without a ring: too many, or no memory
    std::uint64_t lost_names = 0;   // events without a name: all names together are too large
};
[[nodiscard]] trace_rings all_trace_rings();
/// Without the names: copying them would block threads that record a name.
[[nodiscard]] std::vector<std::shared_ptr<const trace_ring>> trace_rings_alone();

} // namespace coil::detail
