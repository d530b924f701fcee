#pragma once

#include "huge_pages.hpp"
#include "task_snapshot.hpp"
#include "text_output.hpp"
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

// `Text` is a std::string or a text_output.

template <class Text, class Number>
void append_number(Text& out, Number number, int base = 10) {
    std::array<char, 24> text; // NOLINT(*-member-init)
    const char* const end = std::to_chars(text.data(), text.data() + text.size(), number, base).ptr;
    out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

/// "1 child", "2 children".
template <class Text>
void append_count(Text& out, std::size_t number, std::string_view one, std::string_view many) {
    append_number(out, number);
    out += number == 1 ? one : many;
}

template <class Text>
void append_hex(Text& out, const void* address) {
    std::array<char, 2 + 2 * sizeof address> text; // NOLINT(*-member-init)
    auto rest = reinterpret_cast<std::uintptr_t>(address);
    std::size_t at = text.size();
    do {
        text[--at] = "0123456789abcdef"[rest % 16];
        rest /= 16;
    } while (rest != 0);
    text[--at] = 'x';
    text[--at] = '0';
    out.append(text.data() + at, text.size() - at);
}

/// With three decimal places.
template <class Text>
void append_seconds(Text& out, std::int64_t ns) {
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
template <class Text>
void append_seconds(Text& out, double s) {
    append_seconds(out, static_cast<std::int64_t>(s * 1e9));
}

/// ` 'name'`, or nothing.
template <class Text>
void append_name(Text& out, std::string_view name) {
    if (!name.empty()) {
        out += " '";
        out += name;
        out += '\'';
    }
}

/// Appends `text` as a JSON string. Each byte that is not part of valid UTF-8 becomes U+FFFD: names
/// of files, sockets and functions may contain any bytes.
template <class Text>
void append_quoted(Text& out, std::string_view text) {
    const auto is_plain = [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return c != '"' && c != '\\' && byte >= 0x20 && byte < 0x80;
    };
    out += '"';
    for (;;) {
        std::size_t plain = 0;
        while (plain < text.size() && is_plain(text[plain])) {
            ++plain;
        }
        out.append(text.data(), plain);
        text.remove_prefix(plain);
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
            out += std::string_view(escaped.data());
        } else {
            out += text.substr(0, size);
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
        recent& last = recent_[reinterpret_cast<std::uintptr_t>(function) / 16 % recent_.size()];
        if (last.function != function) {
            last = {function, &look_up_all(function)};
        }
        return *last.found;
    }
    const known& look_up_all(const void* function) {
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

    struct recent {
        const void* function = nullptr;
        const known* found = nullptr;
    };

    writes* write_;
    std::unordered_map<const void*, known> known_;
    std::array<recent, 64> recent_{}; // saves most look-ups in `known_`
};

/// Reserves memory for a text about all tasks.
inline void reserve_for(std::string& text, std::span<const context_snapshot> contexts,
                        std::size_t bytes_per_task) {
    std::size_t tasks = 1;
    for (const context_snapshot& context : contexts) {
        tasks += context.tasks.size();
    }
    text.reserve(bytes_per_task * tasks);
    // With the GNU C library the address shows whether the memory is a mapping of its own, which is
    // unmapped with the string. The advice is not given for heap memory, for which it would remain.
    constexpr std::size_t page = 4096;
    if (text.capacity() >= 2 * huge_page &&
        reinterpret_cast<std::uintptr_t>(text.data()) % page == 2 * sizeof(std::size_t)) {
        advise_huge_pages(text.data(), text.capacity());
    }
}

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
