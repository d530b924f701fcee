#pragma once

#include <string>

namespace coil {

/// How a process has ended: waitid(2).
///
///     const exit_status status = co_await child.wait();
///     if (!status.success())
///         std::fprintf(stderr, "%s\n", status.to_string().c_str());   // "exit code 1"
class exit_status {
public:
    constexpr exit_status() noexcept = default;
    /// The status of a process that called exit(code).
    static constexpr exit_status of_exit(int code) noexcept { return exit_status(code, 0); }
    /// The status of a process that was killed by a signal.
    static constexpr exit_status of_signal(int signal, bool dumped_core = false) noexcept {
        exit_status status(0, signal);
        status.dumped_core_ = dumped_core;
        return status;
    }

    /// Whether it called exit(0).
    [[nodiscard]] constexpr bool success() const noexcept { return signal_ == 0 && code_ == 0; }
    /// Whether it ended by itself, by exit() or by returning from main().
    [[nodiscard]] constexpr bool exited() const noexcept { return signal_ == 0; }
    /// The argument of exit(), 0 to 255; 128 + signal for a killed process, as in shells.
    [[nodiscard]] constexpr int code() const noexcept {
        return signal_ == 0 ? code_ : 128 + signal_;
    }
    /// Whether a signal killed it, and the number of that signal (0: none).
    [[nodiscard]] constexpr bool signaled() const noexcept { return signal_ != 0; }
    [[nodiscard]] constexpr int signal() const noexcept { return signal_; }
    [[nodiscard]] constexpr bool dumped_core() const noexcept { return dumped_core_; }

    /// "exit code 1", "killed by signal 9 (Killed)".
    [[nodiscard]] std::string to_string() const;

    friend constexpr bool operator==(const exit_status&, const exit_status&) noexcept = default;

private:
    constexpr exit_status(int code, int signal) noexcept : code_(code), signal_(signal) {}

    int code_ = 0;
    int signal_ = 0;
    bool dumped_core_ = false;
};

} // namespace coil
