#pragma once

#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/process/exit_status.hpp>
#include <coil/stream/pipe_end.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace coil {

namespace detail {
class spawn_plan;
}

/// Where a standard stream of a child process comes from or goes to.
class redirect {
public:
    /// A pipe, whose other end is process::stdin(), stdout() or stderr().
    static redirect pipe() { return redirect(kind::pipe); }
    /// The parent's own.
    static redirect inherit() { return redirect(kind::inherit); }
    /// /dev/null.
    static redirect null() { return redirect(kind::null); }
    /// A file: standard input is read from it, output written to it from its beginning (created or
    /// emptied first).
    static redirect file(std::filesystem::path path) {
        redirect to(kind::file);
        to.path_ = std::move(path);
        return to;
    }
    /// A descriptor, which stays the caller's and must be open until spawn() has returned.
    static redirect descriptor(int fd) {
        redirect to(kind::descriptor);
        to.fd_ = fd;
        return to;
    }
    /// For standard error: where standard output goes.
    static redirect to_stdout() { return redirect(kind::to_stdout); }

private:
    friend class detail::spawn_plan;
    enum class kind : unsigned char { pipe, inherit, null, file, descriptor, to_stdout };
    explicit redirect(kind what) noexcept : kind_(what) {}

    kind kind_;
    int fd_ = -1;
    std::filesystem::path path_;
};

/// How a process is started.
struct process_options {
    redirect standard_input = redirect::pipe();
    redirect standard_output = redirect::pipe();
    redirect standard_error = redirect::pipe();
    /// "NAME=value" each; without it, the parent's environment.
    std::optional<std::vector<std::string>> environment;
    /// Empty: the parent's.
    std::filesystem::path directory;
    /// A process group of its own, which kill() then means: signals reach what it starts, too, and
    /// those of the terminal do not reach it.
    bool new_process_group = false;
    /// How long a process that is to end has between SIGTERM and SIGKILL.
    std::chrono::milliseconds grace = std::chrono::seconds(5);
};

/// What process::output() gives.
struct process_output {
    exit_status status;
    std::string out;
    std::string err;
};

/// A child process, owned.
///
///     auto p = process::spawn({"sort", "-u"});
///     co_await write_all(p.stdin(), "b\na\nb\n");
///     auto [status, out, err] = co_await p.output();
///
/// The child has default signal dispositions and an empty signal mask, and of the parent's
/// descriptors only its standard streams, as everything that coil opens is close-on-exec.
///
/// Pipes hold 64 KiB: a child whose output nobody reads waits when they are full. Read while it
/// runs, use output(), or redirect.
///
/// A child that ends before it has read its input must not end its parent: where the action of
/// SIGPIPE is the default one, the first spawn() with a pipe for standard input ignores it in this
/// process, and writing gives -EPIPE. While SIGCHLD is ignored, nobody learns how a child ended:
/// waiting throws std::errc::no_child_process.
///
/// Threading: on one context at a time. Cancellation: see wait(). A process that is destroyed
/// before it was waited for is killed (SIGKILL) and reaped.
class process {
public:
    /// posix_spawn(3) of argv[0], which is looked for in PATH if it has no slash. Throws
    /// std::system_error that names the program: no_such_file_or_directory, permission_denied, ...
    /// It blocks until the child has called execve(2).
    static process spawn(const std::vector<std::string>& argv, const process_options& options = {});

    process(process&& other) noexcept;
    process& operator=(process&& other) noexcept;
    ~process();

    [[nodiscard]] ::pid_t pid() const noexcept { return pid_; }
    /// Its pidfd: pidfd_open(2). It stays the process's.
    [[nodiscard]] int native_handle() const noexcept { return pidfd_; }

    /// The other ends of its standard streams, where they are pipes; else calls give -EBADF.
    [[nodiscard]] pipe_end& stdin() noexcept { return stdin_; }
    [[nodiscard]] pipe_end& stdout() noexcept { return stdout_; }
    [[nodiscard]] pipe_end& stderr() noexcept { return stderr_; }

    /// Closes stdin() and waits until the process has ended; then always gives the same.
    ///
    /// Cancellation: the process is asked to end (SIGTERM); after process_options::grace it is
    /// killed. When it has ended and is reaped, std::errc::operation_canceled is thrown.
    task<exit_status> wait();
    /// Collects what it writes to stdout() and stderr() and waits for it. At most `limit` bytes
    /// each: when there is more, the process is killed, and std::errc::message_size is thrown.
    /// Cancellation as wait().
    task<process_output> output(std::size_t limit = 16 * 1024 * 1024);

    /// kill(2) by its pidfd, so never somebody else: 0, or -ESRCH when it has ended.
    io_result kill(int signal = SIGKILL) noexcept;
    /// SIGTERM, and after `grace` SIGKILL; waits for it.
    task<exit_status> terminate(std::chrono::milliseconds grace);

private:
    process() noexcept = default;

    task<bool> ended_within(std::chrono::milliseconds limit);
    bool reap();
    void abandon() noexcept;

    ::pid_t pid_ = -1;
    int pidfd_ = -1;
    bool group_ = false;
    std::chrono::milliseconds grace_{};
    std::optional<exit_status> status_;
    pipe_end stdin_;
    pipe_end stdout_;
    pipe_end stderr_;
};

} // namespace coil
