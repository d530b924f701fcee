// Snapshots of tasks as JSON.

#include "descriptor_target.hpp"
#include "task_writing.hpp"

#include <coil/core/detail/frame_sizes.hpp>
#include <coil/uring/detail/opcode_names.hpp>

#include <string_view>

namespace coil::detail {

namespace {

std::string_view name_of(wait_record::what kind) {
    switch (kind) {
        using enum wait_record::what;
    case ready:
        return "ready";
    case operation:
        return "operation";
    case queued:
        return "queued";
    case stream:
        return "stream";
    case sleep:
        return "sleep";
    case object:
        return "object";
    case join:
        return "join";
    case child:
        return "child";
    case group:
        return "group";
    case children:
        return "children";
    case elsewhere:
        return "elsewhere";
    case unknown:
        break;
    }
    return "unknown";
}

/// Writes the members that are the same for all coroutines of a function.
void begin_coroutine(std::string& out, const backtrace_entry& entry) {
    out += R"({"function":)";
    append_quoted(out, entry.function);
    out += R"(,"module":)";
    append_quoted(out, entry.module);
    out += R"(,"offset":)";
    append_number(out, entry.offset);
}

class json_writer {
public:
    json_writer(text_output& out, std::span<const context_snapshot> contexts)
        : out_(out), targets_(contexts), times_(contexts) {}

    void write(const context_snapshot& context) {
        out_ += R"({"name":)";
        quote(context.name);
        if (context.result == context_snapshot::how::no_answer) {
            out_ += R"(,"answered":false})";
            return;
        }
        out_ += R"(,"answered":true,"count":)";
        append_number(out_, context.top_level);
        out_ += R"(,"arriving":)";
        append_number(out_, context.arriving);
        out_ += R"(,"complete":)";
        out_ += context.result == context_snapshot::how::cut ? "false" : "true";
        write(context.omitted);
        out_ += R"(,"tasks":)";
        write(context.tasks, context);
        out_ += R"(,"groups":[)";
        std::string_view separator;
        for (const group_record& group : context.groups) {
            out_ += separator;
            separator = ",";
            out_ += R"({"address":")";
            append_hex(out_, group.address);
            out_ += R"(","waiting":)";
            append_number(out_, group.waiting);
            if (group.joined_by != nullptr) {
                out_ += R"(,"joined_by":")";
                append_hex(out_, group.joined_by);
                out_ += '"';
            }
            if (group.owner != nullptr) {
                out_ += R"(,"owner":")";
                append_hex(out_, group.owner);
                out_ += '"';
            }
            write(group.omitted);
            out_ += R"(,"children":)";
            write(group.children, context);
            out_ += '}';
        }
        out_ += ']';
        if (context.has_more_groups) {
            out_ += R"(,"more_groups":true)";
        }
        out_ += '}';
    }

private:
    void write(const omission& omitted) {
        out_ += R"(,"omitted":)";
        append_number(out_, omitted.count);
        if (omitted.count > 0) {
            out_ += R"(,"omitted_behind":)";
            append_number(out_, omitted.behind);
        }
    }

    void write(const record_list<task_record>& tasks, const context_snapshot& context) {
        out_ += '[';
        std::string_view separator;
        for (const task_record& task : tasks) {
            out_ += separator;
            separator = ",";
            write(task, context);
        }
        out_ += ']';
    }

    void write(const task_record& task, const context_snapshot& context) {
        out_ += R"({"frame":")";
        append_hex(out_, task.frame);
        out_ += R"(","name":)";
        quote(task.name);
        if (task.spawned_at) {
            write(*task.spawned_at);
        }
        if (task.deadline_ns != task_owner::no_deadline) {
            out_ += R"(,"limit_s":)";
            append_seconds(out_, task.deadline_ns - context.now_ns);
        }
        if (const std::int64_t age = age_of(task, context); age >= 0) {
            out_ += R"(,"age_s":)";
            append_seconds(out_, age);
        }
        out_ += R"(,"waits_for":")";
        out_ += name_of(task.wait.kind);
        out_ += '"';
        if (const std::int64_t ns = times_.of(task, context); ns >= 0) {
            out_ += R"(,"waits_s":)";
            append_seconds(out_, ns);
        }
        write_details(task.wait, context);
        out_ += R"(,"awaits":[)";
        std::string_view separator;
        for (auto it = task.coroutines.rbegin(); it != task.coroutines.rend(); ++it) {
            if (const std::string& function = symbols_.text(it->function); !function.empty()) {
                out_ += separator;
                separator = ",";
                out_ += function;
                if (const std::size_t bytes = frame_size(it->frame); bytes > 0) {
                    out_ += R"(,"bytes":)";
                    append_number(out_, bytes);
                }
                out_ += '}';
            }
        }
        out_ += R"(],"children":)";
        write(task.children, context);
        out_ += '}';
    }

    void write(const std::source_location& where) {
        if (where.file_name() != file_name_) { // most tasks are spawned in the same file
            file_name_ = where.file_name();
            file_.clear();
            append_quoted(file_, file_name_);
        }
        out_ += R"(,"file":)";
        out_ += file_;
        out_ += R"(,"line":)";
        append_number(out_, where.line());
    }

    void write_details(const wait_record& wait, const context_snapshot& context) {
        switch (wait.kind) {
            using enum wait_record::what;
        case operation:
        case queued:
        case stream:
            out_ += R"(,"call":)";
            quote(uring::detail::opcode_name(wait.opcode));
            out_ += R"(,"fd":)";
            append_number(out_, wait.fd);
            if (wait.is_direct) {
                out_ += R"(,"direct":true)";
            }
            if (const descriptor_target* const target = targets_.find(wait, context)) {
                write(*target);
            }
            if (wait.deadline_ns != wait_record::none) {
                out_ += R"(,"call_limit_s":)";
                append_seconds(out_, wait.deadline_ns - context.now_ns);
            }
            if (wait.limit_ns != wait_record::none) {
                out_ += R"(,"call_limit_total_s":)";
                append_seconds(out_, wait.limit_ns);
            }
            break;
        case sleep:
            out_ += R"(,"left_s":)";
            append_seconds(out_, wait.deadline_ns - context.now_ns);
            break;
        case object:
            out_ += R"(,"object":)";
            quote(object_name(wait.object));
            if (wait.has_fill) {
                write(wait.fill);
            }
            [[fallthrough]];
        case group:
            if (wait.address != nullptr) {
                out_ += R"(,"address":")";
                append_hex(out_, wait.address);
                out_ += '"';
            }
            if (wait.holder != nullptr) {
                out_ += R"(,"locked_by":")";
                append_hex(out_, wait.holder);
                out_ += '"';
            }
            if (wait.is_locked_shared) {
                out_ += R"(,"locked_shared":true)";
            }
            break;
        default:
            break;
        }
    }

    void write(const channel_fill& fill) {
        if (fill.is_unbounded) {
            out_ += R"(,"unbounded":true)";
            return;
        }
        out_ += R"(,"elements":)";
        append_number(out_, fill.elements);
        out_ += R"(,"capacity":)";
        append_number(out_, fill.capacity);
    }

    void write(const descriptor_target& target) {
        switch (target.kind) {
            using enum descriptor_target::what;
        case unknown:
            return;
        case peer:
            out_ += R"(,"peer":)";
            break;
        case local:
            out_ += R"(,"local":)";
            break;
        case file:
            out_ += R"(,"path":)";
            break;
        }
        quote(target.text);
        if (target.idle_s >= 0) {
            out_ += R"(,"idle_s":)";
            append_seconds(out_, target.idle_s);
        }
    }

    void quote(std::string_view text) { append_quoted(out_, text); }

    text_output& out_;
    const descriptor_targets targets_;
    const wait_times times_;
    symbols symbols_{&begin_coroutine};
    const char* file_name_ = nullptr;
    std::string file_; // the same, quoted
};

} // namespace

std::string to_json(std::span<const context_snapshot> contexts) {
    std::string text;
    reserve_for(text, contexts, 384);
    text_output out(text);
    out += R"({"contexts":[)";
    json_writer writer(out, contexts);
    std::string_view separator;
    for (const context_snapshot& context : contexts) {
        out += separator;
        separator = ",";
        writer.write(context);
    }
    out += "]}\n";
    out.flush();
    return text;
}

} // namespace coil::detail
