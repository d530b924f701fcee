// Snapshots of tasks as text and as JSON.

#include "task_snapshot.hpp"

#include <coil/core/backtrace.hpp>
#include <coil/uring/detail/opcode_names.hpp>

#include <array>
#include <cstdio>
#include <string_view>
#include <unordered_map>

namespace coil::detail {

namespace {

std::string hex(const void* address) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "0x%zx", reinterpret_cast<std::size_t>(address));
    return text.data();
}

std::string seconds(std::int64_t ns) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.3f", static_cast<double>(ns) / 1e9);
    return text.data();
}

/// Symbols, each looked up once.
class symbols {
public:
    /// Null for what is no coroutine.
    const backtrace_entry* find(const void* function) {
        auto [it, is_new] = known_.try_emplace(function);
        if (is_new) {
            it->second = find_symbol(function);
        }
        return is_internal(it->second) ? nullptr : &it->second;
    }

private:
    std::unordered_map<const void*, backtrace_entry> known_;
};

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

std::string operation_text(const wait_record& wait) {
    std::string text = uring::detail::opcode_name(wait.opcode);
    if (wait.fd >= 0) {
        text += (wait.is_direct ? " direct fd " : " fd ") + std::to_string(wait.fd);
    }
    text += wait.has_limit ? ", with a limit" : "";
    return text;
}

/// The names of the tasks of a snapshot, by their frames. A frame that is not listed is gone, or on
/// a context that is not shown.
class listed_tasks {
public:
    explicit listed_tasks(const std::vector<context_snapshot>& contexts) {
        for (const context_snapshot& context : contexts) {
            add(context.tasks);
            for (const group_record& group : context.groups) {
                add(group.children);
            }
        }
    }

    /// Null if it is not listed.
    [[nodiscard]] const task_record* find(const void* frame) const {
        const auto it = tasks_.find(frame);
        return it != tasks_.end() ? it->second : nullptr;
    }

private:
    void add(const std::vector<task_record>& tasks) {
        for (const task_record& task : tasks) {
            tasks_.emplace(task.frame, &task);
            add(task.children);
        }
    }

    std::unordered_map<const void*, const task_record*> tasks_;
};

std::string holder_text(const task_record& waiting, const listed_tasks& tasks) {
    if (waiting.wait.holder == nullptr) {
        return {};
    }
    if (waiting.wait.holder == waiting.frame) {
        return ", locked by the task that waits";
    }
    const task_record* const holder = tasks.find(waiting.wait.holder);
    if (holder == nullptr) {
        return {};
    }
    return ", locked by task " + hex(holder->frame) +
           (holder->name.empty() ? std::string() : " '" + holder->name + "'");
}

std::string wait_text(const task_record& task, const listed_tasks& tasks, std::int64_t now_ns) {
    const wait_record& wait = task.wait;
    switch (wait.kind) {
        using enum wait_record::what;
    case ready:
        return "ready to run";
    case operation:
        return operation_text(wait);
    case queued:
        return operation_text(wait) + ", waits to be submitted";
    case stream:
        return "stream of " + operation_text(wait);
    case sleep:
        return "sleep, " + seconds(wait.deadline_ns - now_ns) + " s left";
    case object:
        return object_name(wait.object) +
               (wait.address != nullptr ? " at " + hex(wait.address) : std::string()) +
               holder_text(task, tasks);
    case join:
        return "the end of a spawned task";
    case child:
        return "a child of a scope or supervisor";
    case group:
        return "the children of the scope or supervisor at " + hex(wait.address);
    case children:
        return std::to_string(task.children.size()) + " children";
    case elsewhere:
        return "work on another thread";
    case unknown:
        break;
    }
    return "running, or suspended for an unknown reason";
}

class text_writer {
public:
    text_writer(std::string& out, const std::vector<context_snapshot>& contexts)
        : out_(out), tasks_(contexts) {}

    void write(const context_snapshot& context) {
        out_ += "context " + context.name + ": ";
        if (context.result == context_snapshot::how::no_answer) {
            out_ += "no answer within 2 s: a coroutine blocks its thread\n";
            return;
        }
        out_ += std::to_string(context.top_level) + " tasks";
        if (context.arriving > 0) {
            out_ += ", " + std::to_string(context.arriving) + " in its inbox";
        }
        out_ += context.result == context_snapshot::how::cut ? ", not all of them shown\n" : "\n";
        for (const task_record& task : context.tasks) {
            write("task", task, 1, context.now_ns);
        }
        for (const group_record& group : context.groups) {
            out_ += "  scope or supervisor " + hex(group.address) + ": " +
                    std::to_string(group.children.size()) + " children";
            if (group.waiting > 0) {
                out_ += ", " + std::to_string(group.waiting) + " more wait to begin";
            }
            if (group.joined_by != nullptr) {
                out_ += ", joined by " + hex(group.joined_by);
            }
            out_ += '\n';
            for (const task_record& child : group.children) {
                write("child", child, 2, context.now_ns);
            }
        }
    }

private:
    void write(std::string_view what, const task_record& task, std::size_t level,
               std::int64_t now_ns) {
        const std::string indent(2 * level, ' ');
        out_ += indent;
        out_ += what;
        out_ += ' ' + hex(task.frame);
        if (!task.name.empty()) {
            out_ += " '" + task.name + "'";
        }
        if (task.spawned_at) {
            out_ += std::string(" spawned at ") + task.spawned_at->file_name() + ":" +
                    std::to_string(task.spawned_at->line());
        }
        out_ += ": " + wait_text(task, tasks_, now_ns);
        if (task.deadline_ns != task_owner::no_deadline) {
            out_ += ", limit in " + seconds(task.deadline_ns - now_ns) + " s";
        }
        out_ += '\n';
        std::size_t number = 0;
        for (auto it = task.functions.rbegin(); it != task.functions.rend(); ++it) {
            if (const backtrace_entry* const entry = symbols_.find(*it)) {
                out_ += indent + "  #" + std::to_string(number++) + " ";
                append_to(out_, *entry);
                out_ += '\n';
            }
        }
        for (const task_record& child : task.children) {
            write("child", child, level + 1, now_ns);
        }
    }

    std::string& out_;
    listed_tasks tasks_;
    symbols symbols_;
};

class json_writer {
public:
    explicit json_writer(std::string& out) noexcept : out_(out) {}

    void write(const context_snapshot& context) {
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
        write(context.tasks, context.now_ns);
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
            write(group.children, context.now_ns);
            out_ += '}';
        }
        out_ += "]}";
    }

private:
    void write(const std::vector<task_record>& tasks, std::int64_t now_ns) {
        out_ += '[';
        const char* separator = "";
        for (const task_record& task : tasks) {
            out_ += separator;
            separator = ",";
            write(task, now_ns);
        }
        out_ += ']';
    }

    void write(const task_record& task, std::int64_t now_ns) {
        out_ += R"({"frame":")" + hex(task.frame) + R"(","name":)";
        quote(task.name);
        if (task.spawned_at) {
            out_ += R"(,"file":)";
            quote(task.spawned_at->file_name());
            out_ += R"(,"line":)" + std::to_string(task.spawned_at->line());
        }
        if (task.deadline_ns != task_owner::no_deadline) {
            out_ += R"(,"limit_s":)" + seconds(task.deadline_ns - now_ns);
        }
        out_ += R"(,"waits_for":")";
        out_ += name_of(task.wait.kind);
        out_ += '"';
        write_details(task.wait, now_ns);
        out_ += R"(,"awaits":[)";
        const char* separator = "";
        for (auto it = task.functions.rbegin(); it != task.functions.rend(); ++it) {
            if (const backtrace_entry* const entry = symbols_.find(*it)) {
                out_ += separator;
                separator = ",";
                out_ += R"({"function":)";
                quote(entry->function);
                out_ += R"(,"module":)";
                quote(entry->module);
                out_ += R"(,"offset":)" + std::to_string(entry->offset) + '}';
            }
        }
        out_ += R"(],"children":)";
        write(task.children, now_ns);
        out_ += '}';
    }

    void write_details(const wait_record& wait, std::int64_t now_ns) {
        switch (wait.kind) {
            using enum wait_record::what;
        case operation:
        case queued:
        case stream:
            out_ += R"(,"call":)";
            quote(uring::detail::opcode_name(wait.opcode));
            out_ += R"(,"fd":)" + std::to_string(wait.fd);
            break;
        case sleep:
            out_ += R"(,"left_s":)" + seconds(wait.deadline_ns - now_ns);
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

    void quote(std::string_view text) {
        out_ += '"';
        for (const char c : text) {
            if (c == '"' || c == '\\') {
                out_ += '\\';
                out_ += c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                std::array<char, 8> escaped{};
                std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
                out_ += escaped.data();
            } else {
                out_ += c;
            }
        }
        out_ += '"';
    }

    std::string& out_;
    symbols symbols_;
};

} // namespace

std::string to_text(const std::vector<context_snapshot>& contexts) {
    std::string text;
    text_writer writer(text, contexts);
    for (const context_snapshot& context : contexts) {
        writer.write(context);
    }
    return text;
}

std::string to_json(const std::vector<context_snapshot>& contexts) {
    std::string text = R"({"contexts":[)";
    json_writer writer(text);
    const char* separator = "";
    for (const context_snapshot& context : contexts) {
        text += separator;
        separator = ",";
        writer.write(context);
    }
    return text + "]}\n";
}

} // namespace coil::detail
