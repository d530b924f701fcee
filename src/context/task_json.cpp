// Snapshots of tasks as JSON.

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

class json_writer {
public:
    explicit json_writer(std::string& out) noexcept : out_(out) {}

    void write(const context_snapshot& context) {
        constexpr std::size_t usual_bytes = 256;
        out_.reserve(out_.size() + context.tasks.size() * usual_bytes);
        out_ += R"({"name":)";
        quote(context.name);
        if (context.result == context_snapshot::how::no_answer) {
            out_ += R"(,"answered":false})";
            return;
        }
        out_ += R"(,"answered":true,"count":)" + std::to_string(context.top_level);
        out_ += R"(,"arriving":)" + std::to_string(context.arriving);
        out_ += R"(,"complete":)";
        out_ += context.result == context_snapshot::how::cut ? "false" : "true";
        out_ += R"(,"tasks":)";
        write(context.tasks, context);
        out_ += R"(,"groups":[)";
        const char* separator = "";
        for (const group_record& group : context.groups) {
            out_ += separator;
            separator = ",";
            out_ += R"({"address":")" + hex(group.address) + R"(","waiting":)" +
                    std::to_string(group.waiting);
            if (group.joined_by != nullptr) {
                out_ += R"(,"joined_by":")" + hex(group.joined_by) + '"';
            }
            out_ += R"(,"children":)";
            write(group.children, context);
            out_ += '}';
        }
        out_ += "]}";
    }

private:
    void write(const std::vector<task_record>& tasks, const context_snapshot& context) {
        out_ += '[';
        const char* separator = "";
        for (const task_record& task : tasks) {
            out_ += separator;
            separator = ",";
            write(task, context);
        }
        out_ += ']';
    }

    void write(const task_record& task, const context_snapshot& context) {
        out_ += R"({"frame":")" + hex(task.frame) + R"(","name":)";
        quote(task.name);
        if (task.spawned_at) {
            out_ += R"(,"file":)";
            quote(task.spawned_at->file_name());
            out_ += R"(,"line":)" + std::to_string(task.spawned_at->line());
        }
        if (task.deadline_ns != task_owner::no_deadline) {
            out_ += R"(,"limit_s":)" + seconds(task.deadline_ns - context.now_ns);
        }
        if (const std::int64_t age = age_of(task, context); age >= 0) {
            out_ += R"(,"age_s":)" + seconds(age);
        }
        out_ += R"(,"waits_for":")";
        out_ += name_of(task.wait.kind);
        out_ += '"';
        write_details(task.wait, context);
        out_ += R"(,"awaits":[)";
        const char* separator = "";
        for (auto it = task.coroutines.rbegin(); it != task.coroutines.rend(); ++it) {
            if (const backtrace_entry* const entry = symbols_.find(it->function)) {
                out_ += separator;
                separator = ",";
                out_ += R"({"function":)";
                quote(entry->function);
                out_ += R"(,"module":)";
                quote(entry->module);
                out_ += R"(,"offset":)" + std::to_string(entry->offset);
                if (const std::size_t bytes = sizes_.find(it->frame); bytes > 0) {
                    out_ += R"(,"bytes":)" + std::to_string(bytes);
                }
                out_ += '}';
            }
        }
        out_ += R"(],"children":)";
        write(task.children, context);
        out_ += '}';
    }

    void write_details(const wait_record& wait, const context_snapshot& context) {
        switch (wait.kind) {
            using enum wait_record::what;
        case operation:
        case queued:
        case stream:
            out_ += R"(,"call":)";
            quote(uring::detail::opcode_name(wait.opcode));
            out_ += R"(,"fd":)" + std::to_string(wait.fd);
            write(target_of(wait, context));
            break;
        case sleep:
            out_ += R"(,"left_s":)" + seconds(wait.deadline_ns - context.now_ns);
            break;
        case object:
            out_ += R"(,"object":)";
            quote(object_name(wait.object));
            [[fallthrough]];
        case group:
            if (wait.address != nullptr) {
                out_ += R"(,"address":")" + hex(wait.address) + '"';
            }
            if (wait.holder != nullptr) {
                out_ += R"(,"locked_by":")" + hex(wait.holder) + '"';
            }
            break;
        default:
            break;
        }
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
            out_ += R"(,"idle_s":)" + seconds(target.idle_s);
        }
    }

    void quote(std::string_view text) { append_quoted(out_, text); }

    std::string& out_;
    symbols symbols_;
    frame_sizes sizes_;
};

} // namespace

std::string to_json(std::span<const context_snapshot> contexts) {
    std::string text = R"({"contexts":[)";
    json_writer writer(text);
    const char* separator = "";
    for (const context_snapshot& context : contexts) {
        text += separator;
        separator = ",";
        writer.write(context);
    }
    text += "]}\n";
    return text;
}

} // namespace coil::detail
