// Snapshots of tasks as text.

#include "task_writing.hpp"

#include <coil/uring/detail/opcode_names.hpp>

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace coil::detail {

namespace {

/// ` 10.0.0.3:5123, nothing received for 4.200 s`
std::string target_text(const descriptor_target& target) {
    if (target.text.empty()) {
        return {};
    }
    std::string text = target.kind == descriptor_target::what::local ? " on " : " ";
    text += target.text;
    if (target.idle_s >= 0) {
        text += ", nothing received for " + seconds(target.idle_s) + " s";
    }
    return text;
}

std::string operation_text(const wait_record& wait, const context_snapshot& context) {
    std::string text = uring::detail::opcode_name(wait.opcode);
    if (wait.fd >= 0) {
        text += (wait.is_direct ? " direct fd " : " fd ") + std::to_string(wait.fd);
        text += target_text(target_of(wait, context));
    }
    text += wait.has_limit ? ", with a limit" : "";
    return text;
}

/// Finds the tasks of a snapshot by their frames. A frame that is not found is gone, or on a
/// context that is not shown.
class listed_tasks {
public:
    explicit listed_tasks(std::span<const context_snapshot> contexts) noexcept
        : contexts_(contexts) {}

    /// Null if it is not listed.
    [[nodiscard]] const task_record* find(const void* frame) {
        if (tasks_.empty()) { // few dumps have a holder
            for (const context_snapshot& context : contexts_) {
                add(context.tasks);
                for (const group_record& group : context.groups) {
                    add(group.children);
                }
            }
        }
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

    std::span<const context_snapshot> contexts_;
    std::unordered_map<const void*, const task_record*> tasks_;
};

std::string holder_text(const task_record& waiting, listed_tasks& tasks) {
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

std::string wait_text(const task_record& task, listed_tasks& tasks,
                      const context_snapshot& context) {
    const wait_record& wait = task.wait;
    switch (wait.kind) {
        using enum wait_record::what;
    case ready:
        return "ready to run";
    case operation:
        return operation_text(wait, context);
    case queued:
        return operation_text(wait, context) + ", waits to be submitted";
    case stream:
        return "stream of " + operation_text(wait, context);
    case sleep:
        return "sleep, " + seconds(wait.deadline_ns - context.now_ns) + " s left";
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
    text_writer(std::string& out, std::span<const context_snapshot> contexts) noexcept
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
            write("task", task, 1, context);
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
                write("child", child, 2, context);
            }
        }
    }

private:
    void write(std::string_view what, const task_record& task, std::size_t level,
               const context_snapshot& context) {
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
            if (const std::int64_t age = age_of(task, context); age >= 0) {
                out_ += ", " + seconds(age) + " s ago";
            }
        }
        out_ += ": " + wait_text(task, tasks_, context);
        if (task.deadline_ns != task_owner::no_deadline) {
            out_ += ", limit in " + seconds(task.deadline_ns - context.now_ns) + " s";
        }
        out_ += '\n';
        std::size_t number = 0;
        for (auto it = task.coroutines.rbegin(); it != task.coroutines.rend(); ++it) {
            if (const backtrace_entry* const entry = symbols_.find(it->function)) {
                out_ += indent + "  #" + std::to_string(number++) + " ";
                append_to(out_, *entry);
                out_ += '\n';
            }
        }
        for (const task_record& child : task.children) {
            write("child", child, level + 1, context);
        }
    }

    std::string& out_;
    listed_tasks tasks_;
    symbols symbols_;
};

} // namespace

std::string to_text(std::span<const context_snapshot> contexts) {
    std::string text;
    text_writer writer(text, contexts);
    for (const context_snapshot& context : contexts) {
        writer.write(context);
    }
    return text;
}

} // namespace coil::detail
