#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/process/exit_status.hpp>
#include <coil/process/process_options.hpp>
#include <coil/process/terminal.hpp>
#include <coil/stream/pipe_end.hpp>

#include <concepts>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include <sys/types.h>

namespace coil {

struct process_output;

/// A child process, which this object owns. Move-only.
///
///     auto p = process::spawn({"sort", "-u"});
///     co_await write_all(p.stdin(), "b\na\nb\n");
///     auto [status, out, err] = co_await p.output();
///
/// The child starts with default signal dispositions and an empty signal mask. Of coil's
/// descriptors it inherits only its standard streams, because coil opens all others close-on-exec;
/// so should the rest of the program.
///
/// A pipe holds 64 KiB. A child blocks when the pipe of its output is full: read while it runs, use
/// output(), or redirect.
///
/// For programs that behave differently on a terminal:
///
///     const redirect tty = redirect::terminal();
///     auto shell = process::spawn({"bash"}, {tty, tty, tty});
///     co_await write_all(shell.terminal(), "ls --color=auto\n");
///
/// Signals: writing to a child that has ended returns -EPIPE, because constructing the first
/// io_context sets SIGPIPE to be ignored, if its action is the default. While SIGCHLD is ignored,
/// the kernel discards the status of children: waiting throws std::errc::no_child_process.
///
/// Threading: on one context at a time. Cancellation: see wait(). The destructor kills (SIGKILL)
/// and reaps a process that was not waited for. It blocks until that process has ended, for at most
/// 100 ms, after which a separate thread waits for it.
class process {
public:
    /// Starts argv[0] with posix_spawn(3); a name without a slash is looked up in PATH. Blocks
    /// until the child has called execve(2). Throws std::system_error with the name of the program:
    /// no_such_file_or_directory, permission_denied, ...
    static process spawn(const std::vector<std::string>& argv, const process_options& options = {});

    /// Produce readable compiler errors.
    template <std::convertible_to<std::string> Word, class... Rest>
    static process spawn(Word&&, Rest&&...)
        COIL_DELETE("pass the program and its arguments as a list: process::spawn({\"ls\", "
                    "\"-l\"})");
    void operator co_await() const
        COIL_DELETE_COPY("spawn() does not wait: auto p = process::spawn({...}); co_await "
                         "p.wait()");

    process(process&& other) noexcept;
    process& operator=(process&& other) noexcept;
    ~process();

    [[nodiscard]] ::pid_t pid() const noexcept { return pid_; }
    /// The pidfd (pidfd_open(2)), owned by this object.
    [[nodiscard]] int native_handle() const noexcept { return pidfd_; }

    /// The parent's ends of the standard streams that are pipes; calls on the others return -EBADF.
    [[nodiscard]] pipe_end& stdin() noexcept { return stdin_; }
    [[nodiscard]] pipe_end& stdout() noexcept { return stdout_; }
    [[nodiscard]] pipe_end& stderr() noexcept { return stderr_; }

    /// The controlling side of the pseudoterminal (redirect::terminal()); without one, calls return
    /// -EBADF.
    [[nodiscard]] pseudoterminal& terminal() noexcept { return terminal_; }

    /// Closes stdin() and waits until the process has ended. Later calls return the same status.
    ///
    /// Cancellation: sends SIGTERM, and SIGKILL after process_options::grace. Throws
    /// std::errc::operation_canceled once the process has ended and is reaped.
    task<exit_status> wait();
    /// Reads stdout() and stderr() to their ends and waits for the process. If either has more than
    /// `limit` bytes, terminates the process as a cancelled wait() does, and throws
    /// std::errc::message_size. Closes stdin(). If standard output is not a pipe, `out` is what was
    /// written to the pseudoterminal, if there is one; output() writes no end-of-file character to
    /// it. Cancellation: as for wait().
    task<process_output> output(std::size_t limit = 16 * 1024 * 1024);

    /// Sends a signal to the process, or to its group (new_process_group). It never reaches another
    /// process that has reused the pid. Returns 0, even for a process that has ended but was not
    /// waited for; -ESRCH after wait().
    io_result kill(int signal = SIGKILL) noexcept;
    /// Closes stdin(), sends SIGTERM, and SIGKILL after `grace`, and waits for the process. On a
    /// pseudoterminal it sends SIGHUP as well, because interactive shells ignore SIGTERM.
    /// Cancellation: sends SIGKILL without waiting for the rest of `grace`, and returns the status.
    task<exit_status> terminate(std::chrono::milliseconds grace);

private:
    process() noexcept = default;

    task<bool> ended_within(std::chrono::milliseconds limit);
    bool reap();
    void abandon() noexcept;

    ::pid_t pid_ = -1;
    int pidfd_ = -1;
    bool group_ = false;
    bool is_reaped_ = false; // status_ is known
    std::chrono::milliseconds grace_{};
    exit_status status_;
    pipe_end stdin_;
    pipe_end stdout_;
    pipe_end stderr_;
    pseudoterminal terminal_;
};

/// The result of process::output().
struct process_output {
    exit_status status;
    std::string out;
    std::string err;

    /// Produces a readable compiler error.
    template <class Text>
        requires requires { typename Text::traits_type; }
    operator Text() const // NOLINT(*-explicit-*)
        COIL_DELETE("the output is a member: (co_await p.output()).out");
};

} // namespace coil
