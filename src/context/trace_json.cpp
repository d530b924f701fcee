// A trace in the JSON of Chrome's trace viewer, which Perfetto reads as well.

#include "task_writing.hpp"
#include "trace_ring.hpp"

#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/trace.hpp>
#include <coil/uring/abi.hpp>
#include <coil/uring/detail/opcode_names.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <unordered_map>

#include <unistd.h>

namespace coil::detail {

namespace {

const char* wait_name(std::uint64_t kind) noexcept {
    switch (static_cast<wait_kind>(kind)) {
    case wait_kind::sleep:
        return "sleep";
    case wait_kind::sync:
        return "synchronisation";
    case wait_kind::stream:
        return "stream";
    case wait_kind::join:
        return "join";
    case wait_kind::child:
        return "child";
    case wait_kind::operation:
        return "operation";
    case wait_kind::other:
        break;
    }
    return "wait";
}

std::string hex(std::uint64_t number) {
    std::string text;
    append_hex(text, reinterpret_cast<const void*>(number));
    return text;
}

class trace_writer {
public:
    trace_writer(std::string& out, const trace_rings& all)
        : out_(out), names_(all.names), trace_(all.trace), process_(::getpid()) {
        out_ += "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
        begin("process_name", "M", 0);
        out_ += ",\"args\":{\"name\":";
        append_quoted(out_, program_invocation_short_name);
        out_ += "}}";
        for (const auto& ring : all.rings) {
            write(*ring);
        }
        out_ +=
            "\n],\"otherData\":{\"threads without events\":" + std::to_string(all.lost_threads) +
            ",\"events without their names\":" + std::to_string(all.lost_names) + "}}\n";
    }
    trace_writer(const trace_writer&) = delete;
    trace_writer& operator=(const trace_writer&) = delete;

private:
    struct operation {
        trace_event submitted;
        std::uint64_t results = 0;
    };

    void write(const trace_ring& ring) {
        thread_ = ring.thread();
        begin("thread_name", "M", 0);
        out_ += ",\"args\":{\"name\":";
        append_quoted(out_, ring.name());
        out_ += "}}";
        const std::vector<trace_event> events = ring.copy();
        // A resumption is recorded when it ends, with the time at which it began.
        std::vector<const trace_event*> in_order;
        in_order.reserve(events.size());
        for (const trace_event& event : events) {
            in_order.push_back(&event);
        }
        std::sort(in_order.begin(), in_order.end(), [](const trace_event* a, const trace_event* b) {
            return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a < b;
        });
        waits_.clear();
        operations_.clear();
        end_ns_ = in_order.empty() ? 0 : in_order.back()->time_ns;
        const trace_event* before = nullptr;
        for (const trace_event* const event : in_order) {
            write(*event, before);
            before = event;
        }
        for (const auto& [frame, wait] : waits_) {
            if (static_cast<wait_kind>(wait.detail) != wait_kind::operation) {
                write_wait(wait, end_ns_, true);
            }
        }
        for (const auto& [key, unfinished] : operations_) {
            write_operation(unfinished, end_ns_, nullptr);
        }
    }

    void write(const trace_event& event, const trace_event* before) {
        switch (event.kind) {
        case trace_kind::resumption:
            write_resumption(event);
            break;
        case trace_kind::spawn:
            write_spawn(event);
            break;
        case trace_kind::wait:
            waits_.insert_or_assign(event.a, event);
            break;
        case trace_kind::submission:
            operations_.insert_or_assign(event.a, operation{event});
            break;
        case trace_kind::completion:
            complete(event);
            break;
        case trace_kind::span_trace:
            if (before != nullptr && before->kind == trace_kind::span) {
                write_span(*before, event);
            }
            break;
        case trace_kind::span:
        case trace_kind::none:
            break;
        }
    }

    void write_resumption(const trace_event& event) {
        if (const auto wait = waits_.find(event.a); wait != waits_.end()) {
            // An operation has an event of its own.
            if (static_cast<wait_kind>(wait->second.detail) != wait_kind::operation) {
                write_wait(wait->second, event.time_ns, false);
            }
            waits_.erase(wait);
        }
        begin(function_name(event.b), "X", event.time_ns);
        out_ += ",\"cat\":\"coroutine\",\"dur\":" + microseconds(event.detail);
        out_ += ",\"args\":{\"coroutine\":\"" + hex(event.a) + "\"";
        if (const auto task = tasks_.find(event.a); task != tasks_.end()) {
            out_ += ",\"task\":";
            append_quoted(out_, task->second);
        }
        out_ += "}}";
    }

    void write_spawn(const trace_event& event) {
        const std::string& name = name_of(event.detail);
        tasks_.insert_or_assign(event.a, name);
        begin("spawn " + (name.empty() ? function_name(event.b) : name), "i", event.time_ns);
        out_ += ",\"cat\":\"task\",\"s\":\"t\",\"args\":{\"coroutine\":\"" + hex(event.a) + "\"}}";
    }

    void write_wait(const trace_event& wait, std::int64_t end_ns, bool unfinished) {
        const std::string id = "w" + std::to_string(++last_id_);
        begin_async(wait_name(wait.detail), "wait", id, wait.time_ns);
        out_ += ",\"coroutine\":\"" + hex(wait.a) + "\"}}";
        end_async(wait_name(wait.detail), "wait", id, end_ns);
        out_ += unfinished ? ",\"args\":{\"unfinished\":true}}" : "}";
    }

    void complete(const trace_event& event) {
        const auto found = operations_.find(event.a);
        if (found == operations_.end()) {
            return; // its beginning was overwritten
        }
        ++found->second.results;
        if ((event.detail & uring::cqe_flag::more) == 0) {
            write_operation(found->second, event.time_ns, &event);
            operations_.erase(found);
        }
    }

    void write_operation(const operation& op, std::int64_t end_ns, const trace_event* completion) {
        const std::string id = "o" + std::to_string(++last_id_);
        const auto opcode = static_cast<std::uint8_t>(op.submitted.detail & 0xff);
        const auto fd =
            static_cast<std::int32_t>(static_cast<std::uint32_t>(op.submitted.detail >> 8U));
        const char* const name = uring::detail::opcode_name(opcode);
        begin_async(name, "operation", id, op.submitted.time_ns);
        out_ +=
            ",\"fd\":" + std::to_string(fd) + ",\"coroutine\":\"" + hex(op.submitted.b) + "\"}}";
        end_async(name, "operation", id, std::max(end_ns, op.submitted.time_ns));
        if (completion == nullptr) {
            out_ += ",\"args\":{\"unfinished\":true}}";
            return;
        }
        out_ += ",\"args\":{\"result\":" + std::to_string(static_cast<std::int64_t>(completion->b));
        out_ += op.results > 1 ? ",\"results\":" + std::to_string(op.results) + "}}" : "}}";
    }

    void write_span(const trace_event& span, const trace_event& trace) {
        trace_context context{.trace_high = trace.a,
                              .trace_low = trace.b,
                              .span = span.a,
                              .sampled = (trace.detail & 1U) != 0};
        const std::string id = context.to_string();
        const std::string& name = name_of(trace.detail >> 1U);
        begin_async(name, "span", id, span.time_ns);
        if (span.b != 0) {
            context.span = span.b;
            out_ += ",\"parent\":\"" + context.to_string() + "\"";
        }
        out_ += "}}";
        end_async(name, "span", id, span.time_ns + static_cast<std::int64_t>(span.detail));
        out_ += "}";
    }

    /// Writes the beginning of an event, without the closing brace.
    void begin(std::string_view name, std::string_view phase, std::int64_t time_ns) {
        out_ += is_first_ ? "{\"name\":" : ",\n{\"name\":";
        is_first_ = false;
        append_quoted(out_, name);
        out_.append(",\"ph\":\"").append(phase).append("\",\"ts\":");
        out_ += microseconds(static_cast<std::uint64_t>(time_ns));
        out_ += ",\"pid\":" + std::to_string(process_) + ",\"tid\":" + std::to_string(thread_);
    }
    /// Writes the beginning of an event, without the closing braces of its arguments and of itself.
    void begin_async(std::string_view name, std::string_view category, const std::string& id,
                     std::int64_t time_ns) {
        begin(name, "b", time_ns);
        add_id(category, id);
        out_ += ",\"args\":{\"id\":\"" + id + "\"";
    }
    void end_async(std::string_view name, std::string_view category, const std::string& id,
                   std::int64_t time_ns) {
        begin(name, "e", time_ns);
        add_id(category, id);
    }
    void add_id(std::string_view category, const std::string& id) {
        out_.append(",\"cat\":\"").append(category).append("\",\"id\":\"").append(id) += '"';
    }

    [[nodiscard]] static std::string microseconds(std::uint64_t ns) {
        std::array<char, 32> text{};
        std::snprintf(text.data(), text.size(), "%llu.%03u",
                      static_cast<unsigned long long>(ns / 1000), static_cast<unsigned>(ns % 1000));
        return text.data();
    }
    [[nodiscard]] const std::string& name_of(std::uint64_t number) const {
        const std::uint64_t index = number & UINT32_MAX;
        const bool is_of_this_trace = number >> 32U == (trace_ & 0xffffU);
        return names_[is_of_this_trace && index < names_.size() ? index : 0];
    }
    [[nodiscard]] std::string function_name(std::uint64_t function) {
        const backtrace_entry* const entry = symbols_.find(reinterpret_cast<const void*>(function));
        return entry == nullptr          ? "coil"
               : entry->function.empty() ? hex(function)
                                         : entry->function;
    }

    std::string& out_;
    const std::vector<std::string>& names_;
    const std::uint64_t trace_;
    const ::pid_t process_;
    ::pid_t thread_ = 0;
    bool is_first_ = true;
    std::uint64_t last_id_ = 0;
    std::int64_t end_ns_ = 0;
    symbols symbols_;
    std::unordered_map<std::uint64_t, std::string> tasks_;    // by frame
    std::unordered_map<std::uint64_t, trace_event> waits_;    // by frame
    std::unordered_map<std::uint64_t, operation> operations_; // by user_data
};

} // namespace

} // namespace coil::detail

namespace coil::trace {

std::string to_json() {
    const detail::trace_rings all = detail::all_trace_rings();
    std::string text;
    const detail::trace_writer writer(text, all);
    return text;
}

void write(const std::string& file) {
    const std::string text = to_json();
    std::FILE* const out = std::fopen(file.c_str(), "we");
    const bool is_written =
        out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
    int error = errno;
    if (out != nullptr && std::fclose(out) != 0 && is_written) {
        error = errno;
    } else if (is_written) {
        return;
    }
    throw std::system_error(error, std::generic_category(), "coil: the trace " + file);
}

} // namespace coil::trace
