#pragma once

#include <array>
#include <charconv>
#include <source_location>
#include <string_view>

namespace coil::detail {

// The name of a task, and where it was spawned, as all messages and dumps write them. `append`
// takes each piece of the text, so that nothing has to be allocated.

/// `spawned at FILE:LINE`
template <class Append>
void write_spawn_place(const std::source_location& where, Append append) {
    append(std::string_view("spawned at "));
    append(std::string_view(where.file_name()));
    std::array<char, 16> line; // NOLINT(*-member-init)
    line[0] = ':';
    const char* const end =
        std::to_chars(line.data() + 1, line.data() + line.size(), where.line()).ptr;
    append(std::string_view(line.data(), end));
}

/// ` 'NAME' spawned at FILE:LINE`, each part only if it is known.
template <class Append>
void write_name_and_place(std::string_view name, const std::source_location* where, Append append) {
    if (!name.empty()) {
        append(std::string_view(" '"));
        append(name);
        append(std::string_view("'"));
    }
    if (where != nullptr) {
        append(std::string_view(" "));
        write_spawn_place(*where, append);
    }
}

} // namespace coil::detail
