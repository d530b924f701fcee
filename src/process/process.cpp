#include "spawn_plan.hpp"

#include <coil/compose/shield.hpp>
#include <coil/compose/timeout.hpp>
#include <coil/compose/when_all.hpp>
#include <coil/context/detail/perform.hpp>
#include <coil/core/this_task.hpp>
#include <coil/io/epoll.hpp>
#include <coil/process/process.hpp>

#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace coil {

namespace {

constexpr auto p_pidfd = static_cast<::idtype_t>(3); // P_PIDFD, which older headers lack

exit_status status_of(const ::siginfo_t& info) noexcept {
    return info.si_code == CLD_EXITED
               ? exit_status::of_exit(info.si_status)
               : exit_status::of_signal(info.si_status, info.si_code == CLD_DUMPED);
}

/// Waits until a killed process has ended, without a limit, and reaps it.
void reap_killed(int pidfd) noexcept {
    ::siginfo_t info{};
    while (::waitid(p_pidfd, static_cast<::id_t>(pidfd), &info, WEXITED) != 0 && errno == EINTR) {
    }
    ::close(pidfd);
}

/// Reads to the end of the stream. Throws if there are more than `limit` bytes.
template <class Stream>
task<std::string> read_all(Stream& from, std::size_t limit) {
    std::string text;
    char buf[16 * 1024];
    while (from) {
        const int n = io_result(co_await from.read_some(buf)).value();
        if (n == 0) {
            break;
        }
        if (static_cast<std::size_t>(n) > limit - text.size()) {
            throw std::system_error(std::make_error_code(std::errc::message_size),
                                    "coil: a process wrote more than " + std::to_string(limit) +
                                        " bytes");
        }
        text.append(buf, static_cast<std::size_t>(n));
    }
    co_return text;
}

} // namespace

std::string exit_status::to_string() const {
    if (!signaled()) {
        return "exit code " + std::to_string(code_);
    }
    return "killed by signal " + std::to_string(signal_) + " (" + ::strsignal(signal_) + ')';
}

process process::spawn(const std::vector<std::string>& argv, const process_options& options) {
    if (detail::current_world() != nullptr) {
        throw std::system_error(std::make_error_code(std::errc::operation_not_supported),
                                "coil: a simulated world has no processes");
    }
    detail::spawn_plan plan(options);
    process p;
    p.pid_ = plan.spawn(argv);
    // The child is not reaped before this process waits for it, so its pid cannot have been reused.
    p.pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, p.pid_, 0U));
    if (p.pidfd_ < 0) {
        const int error = errno;
        ::kill(p.pid_, SIGKILL);
        ::waitpid(p.pid_, nullptr, 0);
        throw std::system_error(error, std::generic_category(), "coil: pidfd_open");
    }
    p.group_ = options.new_process_group;
    p.grace_ = options.grace;
    p.stdin_ = std::move(plan.ends[STDIN_FILENO]);
    p.stdout_ = std::move(plan.ends[STDOUT_FILENO]);
    p.stderr_ = std::move(plan.ends[STDERR_FILENO]);
    p.terminal_ = std::move(plan.terminal);
    return p;
}

process::process(process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::exchange(other.pidfd_, -1)),
      group_(other.group_), is_reaped_(other.is_reaped_), grace_(other.grace_),
      status_(other.status_), stdin_(std::move(other.stdin_)), stdout_(std::move(other.stdout_)),
      stderr_(std::move(other.stderr_)), terminal_(std::move(other.terminal_)) {}

process& process::operator=(process&& other) noexcept {
    if (this != &other) {
        abandon();
        pid_ = std::exchange(other.pid_, -1);
        pidfd_ = std::exchange(other.pidfd_, -1);
        group_ = other.group_;
        is_reaped_ = other.is_reaped_;
        grace_ = other.grace_;
        status_ = other.status_;
        stdin_ = std::move(other.stdin_);
        stdout_ = std::move(other.stdout_);
        stderr_ = std::move(other.stderr_);
        terminal_ = std::move(other.terminal_);
    }
    return *this;
}

process::~process() { abandon(); }

/// A killed process ends immediately, unless it is in an uninterruptible call. In that case a
/// separate thread waits for it.
void process::abandon() noexcept {
    const int pidfd = std::exchange(pidfd_, -1);
    if (pidfd < 0) {
        return;
    }
    if (is_reaped_) {
        ::close(pidfd);
        return;
    }
    ::kill(group_ ? -pid_ : pid_, SIGKILL);
    ::pollfd ended{pidfd, POLLIN, 0};
    constexpr int limit_ms = 100;
    if (::poll(&ended, 1, limit_ms) != 1) {
        try {
            std::thread([pidfd] { reap_killed(pidfd); }).detach();
        } catch (...) { // no memory for a thread: wait here
            reap_killed(pidfd);
        }
        return;
    }
    reap_killed(pidfd);
}

bool process::reap() {
    if (is_reaped_) {
        return true;
    }
    ::siginfo_t info{};
    if (::waitid(p_pidfd, static_cast<::id_t>(pidfd_), &info, WEXITED | WNOHANG) != 0) {
        throw std::system_error(errno, std::generic_category(), "coil: waitid");
    }
    if (info.si_pid == 0) {
        return false;
    }
    status_ = status_of(info);
    is_reaped_ = true;
    return true;
}

io_result process::kill(int signal) noexcept {
    if (pidfd_ < 0 || is_reaped_) {
        return io_result(-ESRCH);
    }
    const auto sent =
        group_ ? ::kill(-pid_, signal)
               : static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd_, signal, nullptr, 0U));
    return io_result(sent == 0 ? 0 : -errno);
}

task<bool> process::ended_within(std::chrono::milliseconds limit) {
    if (!reap()) {
        static_cast<void>(co_await timeout(io::poll(pidfd_, POLLIN), limit));
    }
    co_return reap();
}

task<exit_status> process::terminate(std::chrono::milliseconds grace) {
    stdin_ = pipe_end();
    if (terminal_) {
        kill(SIGHUP);
    }
    kill(SIGTERM);
    if (!co_await ended_within(grace)) {
        kill(SIGKILL);
        while (!reap()) {
            static_cast<void>(co_await shield(io::poll(pidfd_, POLLIN)));
        }
    }
    co_return status_;
}

task<exit_status> process::wait() {
    stdin_ = pipe_end();
    while (!reap()) {
        const int result = co_await io::poll(pidfd_, POLLIN);
        if (result >= 0 || reap()) {
            continue;
        }
        if (const inplace_stop_token token = co_await this_task::stop_token();
            token.stop_requested()) {
            co_await shield(terminate(grace_));
            throw std::system_error(std::make_error_code(std::errc::operation_canceled));
        }
    }
    co_return status_;
}

task<process_output> process::output(std::size_t limit) {
    stdin_ = pipe_end();
    process_output collected;
    std::exception_ptr error;
    try {
        auto [out, err] =
            co_await when_all(stdout_ ? read_all(stdout_, limit) : read_all(terminal_, limit),
                              read_all(stderr_, limit));
        collected.out = std::move(out);
        collected.err = std::move(err);
    } catch (...) {
        error = std::current_exception();
    }
    if (error) {
        stdout_ = pipe_end();
        stderr_ = pipe_end();
        co_await shield(terminate(grace_));
        std::rethrow_exception(error);
    }
    collected.status = co_await wait();
    co_return collected;
}

} // namespace coil
