// Snapshots of tasks as text.

#include "descriptor_target.hpp"
#include "spawn_place.hpp"
#include "task_writing.hpp"

#include <coil/uring/detail/opcode_names.hpp>

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace coil::detail {

namespace {

/// ` 10.0.0.3:5123, nothing received for 4.200 s`
void append_target(text_output& out, const descriptor_target& target) {
    if (target.text.empty()) {
        return;
    }
    out += target.kind == descriptor_target::what::local ? " on " : " ";
    out += target.text;
    if (target.idle_s >= 0) {
        out += ", nothing received for ";
        append_seconds(out, target.idle_s);
        out += " s";
    }
}

/// The tasks of a snapshot that hold locks for which others wait, found by their frames. A frame
/// that is not found has been destroyed, or is on a context that is not shown.
class task_holders {
public:
    explicit task_holders(std::span<const context_snapshot> contexts) noexcept
        : contexts_(contexts) {}

    /// Null if no task with this frame is listed.
    [[nodiscard]] const task_record* find(const void* frame) {
        if (found_.empty()) { // few dumps have a holder
            index();
        }
        if (frame != last_) { // one lock often has many waiters
            const auto it = found_.find(frame);
            last_ = frame;
            last_found_ = it != found_.end() ? it->second : nullptr;
        }
        return last_found_;
    }

private:
    void index() {
        const void* previous = nullptr;
        visit([this, &previous](const task_record& task) {
            if (task.wait.holder != nullptr && task.wait.holder != previous) {
                previous = task.wait.holder;
                found_.try_emplace(previous, nullptr);
            }
        });
        visit([this](const task_record& task) {
            if (const auto it = found_.find(task.frame); it != found_.end()) {
                it->second = &task;
            }
        });
    }

    template <class Function>
    void visit(Function f) const {
        for (const context_snapshot& context : contexts_) {
            for_each_task(context, f);
        }
    }

    std::span<const context_snapshot> contexts_;
    std::unordered_map<const void*, const task_record*> found_;
    const void* last_ = nullptr;
    const task_record* last_found_ = nullptr;
};

void append_holder(text_output& out, const task_record& waiting, task_holders& all) {
    if (waiting.wait.is_locked_shared) {
        out += ", locked shared";
        return;
    }
    if (waiting.wait.holder == nullptr) {
        return;
    }
    if (waiting.wait.holder == waiting.frame) {
        out += ", locked by the task that waits";
        return;
    }
    if (const task_record* const holder = all.find(waiting.wait.holder)) {
        out += ", locked by task ";
        append_hex(out, holder->frame);
        append_name(out, holder->name);
    }
}

/// Further information for the descriptions of waits.
struct details {
    explicit details(std::span<const context_snapshot> contexts)
        : tasks(contexts), targets(contexts), times(contexts) {}

    task_holders tasks;
    const descriptor_targets targets;
    const wait_times times;
};

void append_operation(text_output& out, const wait_record& wait, const details& known,
                      const context_snapshot& context) {
    out += uring::detail::opcode_name(wait.opcode);
    if (wait.fd >= 0) {
        out += wait.is_direct ? " direct fd " : " fd ";
        append_number(out, wait.fd);
        if (const descriptor_target* const target = known.targets.find(wait, context)) {
            append_target(out, *target);
        }
    }
}

/// `, for 2.200 s, limit in 0.800 s`
void append_times(text_output& out, const task_record& task, const details& known,
                  const context_snapshot& context) {
    const wait_record& wait = task.wait;
    if (const std::int64_t ns = known.times.of(task, context); ns >= 0) {
        out += ", for ";
        append_seconds(out, ns);
        out += " s";
    }
    if (wait.kind != wait_record::what::sleep && wait.deadline_ns != wait_record::none) {
        out += ", limit in ";
        append_seconds(out, wait.deadline_ns - context.now_ns);
        out += " s";
    }
    if (wait.limit_ns != wait_record::none) { // which began at an unknown time
        out += ", limit of ";
        append_seconds(out, wait.limit_ns);
        out += " s";
    }
}

/// `, 3 of 16`
void append_fill(text_output& out, const channel_fill& fill) {
    if (fill.is_unbounded) {
        out += ", unbounded";
        return;
    }
    out += ", ";
    append_number(out, fill.elements);
    out += " of ";
    append_number(out, fill.capacity);
}

void append_wait(text_output& out, const task_record& task, details& known,
                 const context_snapshot& context) {
    const wait_record& wait = task.wait;
    switch (wait.kind) {
        using enum wait_record::what;
    case ready:
        out += "ready to run";
        return;
    case operation:
        append_operation(out, wait, known, context);
        return;
    case queued:
        append_operation(out, wait, known, context);
        out += ", waits to be submitted";
        return;
    case stream:
        out += "stream of ";
        append_operation(out, wait, known, context);
        return;
    case sleep:
        out += "sleep, ";
        append_seconds(out, wait.deadline_ns - context.now_ns);
        out += " s left";
        return;
    case object:
        out += object_name(wait.object);
        if (wait.address != nullptr) {
            out += " at ";
            append_hex(out, wait.address);
        }
        append_holder(out, task, known.tasks);
        if (wait.has_fill) {
            append_fill(out, wait.fill);
        }
        return;
    case join:
        out += "the end of a spawned task";
        return;
    case child:
        out += "a child of a scope or supervisor";
        return;
    case group:
        out += "the children of the scope or supervisor at ";
        append_hex(out, wait.address);
        return;
    case children:
        append_count(out, task.children.size(), " child", " children");
        return;
    case elsewhere:
        out += "work on another thread";
        return;
    case unknown:
        break;
    }
    out += "running, or suspended for an unknown reason";
}

class text_writer {
public:
    text_writer(text_output& out, std::span<const context_snapshot> contexts)
        : out_(out), known_(contexts) {}

    void write(const context_snapshot& context) {
        out_ += "context ";
        out_ += context.name;
        out_ += ": ";
        if (context.result == context_snapshot::how::no_answer) {
            out_ += "no answer within 2 s: a coroutine blocks its thread\n";
            return;
        }
        append_count(out_, context.top_level, " task", " tasks");
        if (context.arriving > 0) {
            out_ += ", ";
            append_number(out_, context.arriving);
            out_ += " in its inbox";
        }
        out_ += context.result == context_snapshot::how::cut ? ", not all of them shown\n" : "\n";
        write("task", context.tasks, context.omitted, 1, context);
        for (const group_record& group : context.groups) {
            out_ += "  scope or supervisor ";
            append_hex(out_, group.address);
            out_ += ": ";
            append_count(out_, group.children.size() + group.omitted.count, " child", " children");
            if (group.waiting > 0) {
                out_ += ", ";
                append_number(out_, group.waiting);
                out_ += " more wait to begin";
            }
            if (group.joined_by != nullptr) {
                out_ += ", joined by ";
                append_hex(out_, group.joined_by);
            }
            if (group.owner != nullptr) {
                out_ += ", of task ";
                append_hex(out_, group.owner);
                append_name(out_, group.owner_name);
            }
            out_ += '\n';
            write("child", group.children, group.omitted, 2, context);
        }
        if (context.has_more_groups) {
            out_ += "  and more scopes or supervisors\n";
        }
    }

private:
    void write(std::string_view what, const record_list<task_record>& tasks,
               const omission& omitted, std::size_t level, const context_snapshot& context) {
        std::size_t number = 0;
        const auto write_omission = [&] {
            if (omitted.count > 0 && number == omitted.behind) {
                out_.append(2 * level, ' ');
                out_ += "and ";
                append_number(out_, omitted.count);
                out_ += " more\n";
            }
        };
        for (const task_record& task : tasks) {
            write_omission();
            ++number;
            write(what, task, level, context);
        }
        write_omission();
    }

    void write(std::string_view what, const task_record& task, std::size_t level,
               const context_snapshot& context) {
        out_.append(2 * level, ' ');
        out_ += what;
        out_ += ' ';
        append_hex(out_, task.frame);
        write_name_and_place(task.name, task.spawned_at ? &*task.spawned_at : nullptr,
                             [this](std::string_view text) { out_ += text; });
        if (task.spawned_at) {
            if (const std::int64_t age = age_of(task, context); age >= 0) {
                out_ += ", ";
                append_seconds(out_, age);
                out_ += " s ago";
            }
        }
        out_ += ": ";
        append_wait(out_, task, known_, context);
        append_times(out_, task, known_, context);
        if (task.deadline_ns != task_owner::no_deadline) {
            out_ += ", limit in ";
            append_seconds(out_, task.deadline_ns - context.now_ns);
            out_ += " s";
        }
        out_ += '\n';
        std::size_t number = 0;
        for (auto it = task.coroutines.rbegin(); it != task.coroutines.rend(); ++it) {
            if (const std::string& name = symbols_.text(it->function); !name.empty()) {
                out_.append(2 * level + 2, ' ');
                out_ += '#';
                append_number(out_, number++);
                out_ += ' ';
                out_ += name;
                out_ += '\n';
            }
        }
        for (const task_record& child : task.children) {
            write("child", child, level + 1, context);
        }
    }

    text_output& out_;
    details known_;
    symbols symbols_;
};

} // namespace

std::string to_text(std::span<const context_snapshot> contexts) {
    std::string text;
    reserve_for(text, contexts, 192);
    text_output out(text);
    text_writer writer(out, contexts);
    for (const context_snapshot& context : contexts) {
        writer.write(context);
    }
    out.flush();
    return text;
}

} // namespace coil::detail
