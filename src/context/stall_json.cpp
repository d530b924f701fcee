// The watchdog's reports as a JSON document.

#include "stall_places.hpp"
#include "task_writing.hpp"

namespace coil::detail {

namespace {

std::string_view name_of(stall_report::kind what) {
    using kind = stall_report::kind;
    switch (what) {
    case kind::long_turn:
        return "long_turn";
    case kind::await_loop:
        return "await_loop";
    case kind::late_resumption:
        return "late_resumption";
    case kind::late_timer:
        return "late_timer";
    case kind::full_pool:
        return "full_pool";
    }
    return "unknown";
}

void write_entries(std::string& out, std::string_view key,
                   const std::vector<backtrace_entry>& entries) {
    out.append(",\"").append(key).append("\":[");
    bool is_first = true;
    for (const backtrace_entry& entry : entries) {
        out += is_first ? R"({"function":)" : R"(,{"function":)";
        append_quoted(out, entry.function);
        out += R"(,"module":)";
        append_quoted(out, entry.module);
        out += R"(,"offset":)";
        append_number(out, entry.offset);
        out += '}';
        is_first = false;
    }
    out += ']';
}

void write(std::string& out, const stalls_of_place& stalls, std::int64_t now_ns) {
    const stall_report& report = stalls.longest;
    out.append(R"({"what":")").append(name_of(report.what)).append(R"(","where":)");
    append_quoted(out, report.where);
    out += R"(,"times":)";
    append_number(out, report.times);
    out += R"(,"longest_s":)";
    append_seconds(out, report.duration.count());
    out += R"(,"last_s":)";
    append_seconds(out, stalls.last.count());
    out += R"(,"found_s_ago":)";
    append_seconds(out, now_ns - stalls.found_ns);
    out += stalls.lasting > 0 ? R"(,"lasts":true,"task":)" : R"(,"lasts":false,"task":)";
    append_quoted(out, report.task);
    if (report.spawned_at) {
        out += R"(,"file":)";
        append_quoted(out, report.spawned_at->file_name());
        out += R"(,"line":)";
        append_number(out, report.spawned_at->line());
    }
    write_entries(out, "stack", report.stack);
    write_entries(out, "awaits", report.awaits);
    out += '}';
}

} // namespace

std::string to_json(const std::vector<stalls_of_place>& all, bool is_watching,
                    std::int64_t now_ns) {
    std::string out =
        is_watching ? R"({"watching":true,"stalls":[)" : R"({"watching":false,"stalls":[)";
    for (std::size_t i = 0; i < all.size(); ++i) {
        out += i > 0 ? ",\n" : "\n";
        write(out, all[i], now_ns);
    }
    return out + "]}\n";
}

} // namespace coil::detail
