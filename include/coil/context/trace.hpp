#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/std_chrono.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A trace of what all contexts of the process do, for ui.perfetto.dev or chrome://tracing: each
/// resumption of a coroutine, what the coroutines wait for, operations with their durations,
/// spawned tasks, and the spans that the program opens.
///
///     COIL_TRACE=/tmp/server.json ./server     # written when the program exits
///
///     trace::start();                          // or record only a part of it
///     ...
///     trace::write("/tmp/part.json");
///
/// Each thread (of the first 256) records into a ring of its own, whose oldest events are
/// overwritten: the memory is bounded, and a trace shows the last events before it was written. All
/// functions may be called from any thread.
namespace coil::trace {

inline constexpr std::size_t default_events = 65'536;

/// Starts recording, with space for that many events per thread (32 bytes each, rounded up to a
/// power of two), and discards what was recorded before. No effect if recording is already on.
void start(std::size_t events_per_thread = default_events);
/// Stops recording. What was recorded can still be written.
void stop() noexcept;
[[nodiscard]] bool is_on() noexcept;
/// The recorded events as JSON in the format of Chrome's trace viewer. Events that other threads
/// overwrite during the call are missing.
[[nodiscard]] std::string to_json();
/// Writes to_json() to a file. Throws std::system_error.
void write(const std::string& file);

} // namespace coil::trace

namespace coil {

/// The position in a distributed trace that a protocol carries to the next program: the IDs of the
/// trace and of one of its spans.
struct trace_context {
    std::uint64_t trace_high = 0; ///< the 128 bits of the trace's id
    std::uint64_t trace_low = 0;
    std::uint64_t span = 0;
    bool sampled = true;

    /// Parses the value of the header `traceparent` (W3C Trace Context); nullopt if it is invalid.
    [[nodiscard]] static std::optional<trace_context> parse(std::string_view traceparent) noexcept;
    /// `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`
    [[nodiscard]] std::string to_string() const;

    bool operator==(const trace_context&) const = default;
};

/// A span that has ended.
struct finished_span {
    std::string name;
    trace_context context;
    std::uint64_t parent = 0; ///< the span that it is a part of; 0: none
    std::chrono::steady_clock::time_point begin;
    std::chrono::steady_clock::time_point end;
    std::vector<std::pair<std::string, std::string>> attributes;
};

/// Receives every span that ends in the process, for example to pass it to OpenTelemetry.
class span_exporter {
public:
    virtual ~span_exporter() = default;
    /// Called by the thread on which the span ends, which may run a context: must not block. Calls
    /// may be concurrent.
    virtual void on_end(const finished_span& span) noexcept = 0;
};

/// Replaces the exporter of the process; null: none. Returns when no thread uses the previous one.
void set_span_exporter(span_exporter* exporter) noexcept;

/// A part of the program's work, from construction to end(), which the destructor calls. A local
/// variable of a coroutine: it is independent of the thread, so it spans awaits and moves between
/// contexts. It may be used by one thread at a time.
///
///     task<> request(net::socket& peer, std::string_view traceparent) {
///         trace_span whole = this_task::span("request", trace_context::parse(traceparent));
///         {
///             trace_span part = this_task::span("query", whole.context());
///             co_await query();
///         }
///         ...
///     }
///
/// It appears in a trace, and is passed to the exporter. If there is neither, it costs about as
/// much as a copy of its name.
class trace_span {
public:
    /// A span of a new trace.
    explicit trace_span(std::string name);
    /// A part of `parent`, or of a new trace if there is none.
    trace_span(std::string name, const std::optional<trace_context>& parent);
    trace_span(trace_span&& other) noexcept
        : span_(std::move(other.span_)), is_open_(coil::detail::exchange(other.is_open_, false)) {}
    trace_span& operator=(trace_span&& other) noexcept;
    ~trace_span() { end(); }

    /// For the spans that are a part of this one, here or in another program.
    [[nodiscard]] const trace_context& context() const noexcept { return span_.context; }
    void set_attribute(std::string key, std::string value);
    /// A second call has no effect.
    void end() noexcept;

private:
    finished_span span_;
    bool is_open_ = true;
};

namespace this_task {

/// Opens a span of a new trace.
[[nodiscard]] inline trace_span span(std::string name) { return trace_span(std::move(name)); }
/// Opens a part of `parent`.
[[nodiscard]] inline trace_span span(std::string name, const std::optional<trace_context>& parent) {
    return {std::move(name), parent};
}

} // namespace this_task

} // namespace coil
