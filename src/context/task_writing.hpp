#pragma once

#include "task_snapshot.hpp"
#include "utf8.hpp"

#include <coil/core/backtrace.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

// Functions used for both formats of a snapshot, text and JSON.

namespace coil::detail {

template <class Number>
void append_number(std::string& out, Number number, int base = 10) {
    std::array<char, 24> text; // NOLINT(*-member-init)
    out.append(text.data(),
               std::to_chars(text.data(), text.data() + text.size(), number, base).ptr);
}

/// "1 child", "2 children".
inline void append_count(std::string& out, std::size_t number, std::string_view one,
                         std::string_view many) {
    append_number(out, number);
    out += number == 1 ? one : many;
}

inline void append_hex(std::string& out, const void* address) {
    out += "0x";
    append_number(out, reinterpret_cast<std::uintptr_t>(address), 16);
}

/// With three decimal places.
inline void append_seconds(std::string& out, std::int64_t ns) {
    if (ns < 0) {
        out += '-';
    }
    const auto ms = static_cast<std::uint64_t>(ns < 0 ? -ns : ns) / 1'000'000;
    append_number(out, ms / 1000);
    const char decimals[] = {'.', static_cast<char>('0' + ms / 100 % 10),
                             static_cast<char>('0' + ms / 10 % 10),
                             static_cast<char>('0' + ms % 10)};
    out.append(decimals, sizeof decimals);
}
inline void append_seconds(std::string& out, double s) {
    append_seconds(out, static_cast<std::int64_t>(s * 1e9));
}

/// ` 'name'`, or nothing.
inline void append_name(std::string& out, std::string_view name) {
    if (!name.empty()) {
        out += " '";
        out += name;
        out += '\'';
    }
}

/// Appends `text` as a JSON string. Each byte that is not part of valid UTF-8 becomes U+FFFD: names
/// of files, sockets and functions may contain any bytes.
inline void append_quoted(std::string& out, std::string_view text) {
    const auto is_plain = [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return c != '"' && c != '\\' && byte >= 0x20 && byte < 0x80;
    };
    out += '"';
    for (;;) {
        const auto plain = std::find_if_not(text.begin(), text.end(), is_plain);
        out.append(text.begin(), plain);
        text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
        if (text.empty()) {
            break;
        }
        const char c = text[0];
        const std::size_t size = utf8_sequence(text);
        if (size == 0) {
            out += "\xef\xbf\xbd";
        } else if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::array<char, 8> escaped{};
            std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
            out += escaped.data();
        } else {
            out.append(text.substr(0, size));
        }
        text.remove_prefix(std::max<std::size_t>(size, 1));
    }
    out += '"';
}

/// Symbols, each looked up and written once.
class symbols {
public:
    using writes = void(std::string& to, const backtrace_entry& entry);

    explicit symbols(writes* write = &append_to) noexcept : write_(write) {}

    /// Returns null for a function that is not one of the user's coroutines.
    const backtrace_entry* find(const void* function) {
        const known& it = look_up(function);
        return it.is_internal ? nullptr : &it.entry;
    }
    /// The text that `write` produces; empty for a function that is not one of the user's
    /// coroutines.
    const std::string& text(const void* function) { return look_up(function).text; }

private:
    struct known {
        backtrace_entry entry;
        bool is_internal = false;
        std::string text{};
    };

    const known& look_up(const void* function) {
        const auto [it, is_new] = known_.try_emplace(function);
        if (is_new) {
            known& one = it->second;
            one.entry = find_symbol(function);
            one.is_internal = is_internal(one.entry);
            if (!one.is_internal) {
                write_(one.text, one.entry);
            }
        }
        return it->second;
    }

    writes* write_;
    std::unordered_map<const void*, known> known_;
};

/// In nanoseconds; negative: unknown.
inline std::int64_t age_of(const task_record& task, const context_snapshot& context) noexcept {
    return task.spawned_ns == 0 || context.is_simulated ? -1 : context.now_ns - task.spawned_ns;
}

/// How long the waits of tasks have lasted: known from their timers, or else from the trace that is
/// being recorded.
class wait_times {
public:
    explicit wait_times(std::span<const context_snapshot> contexts);

    /// In nanoseconds; negative: unknown.
    [[nodiscard]] std::int64_t of(const task_record& task, const context_snapshot& context) const;

private:
    struct wait_begin {
        ::pid_t thread;
        std::int64_t time_ns;
    };
    std::unordered_map<const void*, wait_begin> begins_; // of the frames of traced threads
};

} // namespace coil::detail
