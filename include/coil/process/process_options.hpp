#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/process/redirect.hpp>
#include <coil/process/terminal.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace coil {

/// Options of process::spawn().
struct process_options {
    redirect standard_input = redirect::pipe();
    redirect standard_output = redirect::pipe();
    redirect standard_error = redirect::pipe();
    /// The environment as "NAME=value" strings; nullopt: the parent's.
    std::optional<std::vector<std::string>> environment = {};
    /// The working directory; empty: the parent's.
    std::filesystem::path directory = {};
    /// Starts the child in a process group of its own. kill() then signals the whole group, which
    /// includes the child's children. Signals of the parent's terminal (Ctrl-C) do not reach it.
    bool new_process_group = false;
    /// The size of the window of a pseudoterminal; see pseudoterminal::resize().
    window_size window = {};
    /// The time between SIGTERM and SIGKILL when the process is terminated.
    std::chrono::milliseconds grace = std::chrono::seconds(5);
};

} // namespace coil
