#pragma once

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace coil_test {

using namespace std::chrono_literals;

/// Whether this is a long test, with more rounds: COIL_TEST_LONG is set. COIL_TEST_LONG=N divides
/// the number of rounds by N.
inline bool long_run() { return std::getenv("COIL_TEST_LONG") != nullptr; }
inline int rounds(int usual, int when_long) {
    const char* const divisor = std::getenv("COIL_TEST_LONG");
    return divisor == nullptr ? usual
                              : std::max(usual, when_long / std::max(1, std::atoi(divisor)));
}

/// Sanitizers slow everything down; timing limits do not hold under them.
#if COIL_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Runs a task to its end on a context that is used again afterwards.
template <class T>
T run_on(coil::io_context& context, coil::task<T> work) {
    coil::join_handle<T> handle = context.spawn(std::move(work));
    context.run();
    return handle.get();
}

inline coil::io_context_options with(std::function<void(coil::io_context_options&)> change) {
    coil::io_context_options options;
    change(options);
    return options;
}

/// Increments a counter when it is destroyed, to check the local variables of a coroutine.
class on_destruction {
public:
    explicit on_destruction(int& count) noexcept : count_(&count) {}
    on_destruction(on_destruction&& other) noexcept
        : count_(std::exchange(other.count_, nullptr)) {}
    ~on_destruction() {
        if (count_ != nullptr) {
            ++*count_;
        }
    }

private:
    int* count_;
};

/// A coroutine that the test resumes and destroys explicitly. It has no stop token.
class manual {
public:
    struct promise_type {
        manual get_return_object() {
            return manual(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };

    manual(manual&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    ~manual() { destroy(); }

    void start() const { coil::detail::resume(coroutine_); }
    [[nodiscard]] bool done() const { return coroutine_.done(); }
    void destroy() noexcept {
        if (coroutine_) {
            std::exchange(coroutine_, nullptr).destroy();
        }
    }

private:
    explicit manual(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
    std::coroutine_handle<promise_type> coroutine_;
};

inline std::chrono::nanoseconds cpu_time(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
    ::timespec t{};
    ::clock_gettime(clock, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

/// The CPU time of this process while this thread sleeps for `each`: the minimum of several, as
/// interrupts are accounted to the interrupted thread.
inline std::chrono::nanoseconds least_cpu_time(int times, std::chrono::nanoseconds each) {
    std::chrono::nanoseconds least = std::chrono::hours(1);
    for (int i = 0; i < times; ++i) {
        const auto before = cpu_time();
        std::this_thread::sleep_for(each);
        least = std::min(least, cpu_time() - before);
    }
    return least;
}

/// The state of a thread of this process, as in proc_pid_stat(5): 'S' if it sleeps in the kernel. 0
/// if it has ended.
inline char state_of_thread(pid_t thread) {
    std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    std::getline(stat, line);
    const std::size_t state = line.rfind(')') + 2;
    return state < line.size() ? line[state] : '\0';
}

/// Waits until another thread of this process sleeps in the kernel.
inline void wait_until_asleep(pid_t thread) {
    while (state_of_thread(thread) != 'S') {
        std::this_thread::sleep_for(100us);
    }
}

/// Runs `f` in a child process, where it may lower limits and install filters permanently. `f`
/// returns a description of its failure; the empty string is success.
inline std::string in_child(const std::function<std::string()>& f) {
    int fds[2];
    if (::pipe(fds) != 0) {
        return "pipe failed";
    }
    const pid_t child = ::fork();
    if (child < 0) {
        return "fork failed";
    }
    if (child == 0) {
        ::close(fds[0]);
        std::string complaint;
        try {
            complaint = f();
        } catch (const std::exception& e) {
            complaint = std::string("exception: ") + e.what();
        }
        const auto written = ::write(fds[1], complaint.data(), complaint.size());
        ::_exit(written == static_cast<ssize_t>(complaint.size()) ? 0 : 1);
    }
    ::close(fds[1]);
    std::string complaint;
    char buf[512];
    for (ssize_t n; (n = ::read(fds[0], buf, sizeof buf)) > 0;) {
        complaint.append(buf, static_cast<std::size_t>(n));
    }
    ::close(fds[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        complaint += " (the child died)";
    }
    return complaint;
}

} // namespace coil_test
