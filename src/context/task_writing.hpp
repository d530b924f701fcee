#pragma once

#include "descriptor_target.hpp"
#include "task_snapshot.hpp"

#include <coil/core/backtrace.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>

// What the text and the JSON of a snapshot have in common.

namespace coil::detail {

inline std::string hex(const void* address) {
    std::array<char, 2 + 2 * sizeof address> text{'0', 'x'};
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return {text.data(), std::to_chars(text.data() + 2, text.data() + text.size(), number, 16).ptr};
}

/// With three decimal places.
inline std::string seconds(std::int64_t ns) {
    std::array<char, 32> text{};
    char* at = text.data();
    if (ns < 0) {
        *at++ = '-';
    }
    const auto ms = static_cast<std::uint64_t>(ns < 0 ? -ns : ns) / 1'000'000;
    at = std::to_chars(at, text.data() + text.size(), ms / 1000).ptr;
    *at++ = '.';
    for (std::uint64_t digit = 100; digit > 0; digit /= 10) {
        *at++ = static_cast<char>('0' + ms / digit % 10);
    }
    return {text.data(), at};
}

inline std::string seconds(double s) { return seconds(static_cast<std::int64_t>(s * 1e9)); }

/// As a string of JSON.
inline void append_quoted(std::string& out, std::string_view text) {
    const auto is_plain = [](char c) {
        return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
    };
    out += '"';
    if (std::all_of(text.begin(), text.end(), is_plain)) {
        out.append(text) += '"';
        return;
    }
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::array<char, 8> escaped{};
            std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
            out += escaped.data();
        } else {
            out += c;
        }
    }
    out += '"';
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

/// In nanoseconds; negative: unknown.
inline std::int64_t age_of(const task_record& task, const context_snapshot& context) noexcept {
    return task.spawned_ns == 0 || context.is_simulated ? -1 : context.now_ns - task.spawned_ns;
}

/// What the descriptor of an operation refers to. Descriptors of a simulated world are no real
/// ones.
inline descriptor_target target_of(const wait_record& wait, const context_snapshot& context) {
    if (wait.fd < 0 || wait.is_direct || context.is_simulated) {
        return {};
    }
    return find_target(wait.fd);
}

} // namespace coil::detail
