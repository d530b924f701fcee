#pragma once

#include "lifetimes/world.hpp"
#include "support/run.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

#if COIL_SANITIZED
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

namespace lifetime_test {

/// COIL_LIFETIME_LIMIT_MS: the time limit of a program.
inline std::chrono::milliseconds time_to_end() {
    const char* const text = std::getenv("COIL_LIFETIME_LIMIT_MS");
    return std::chrono::milliseconds(text != nullptr        ? std::atoi(text)
                                     : coil_test::sanitized ? 10'000
                                                            : 1000);
}

/// Terminates the process with the program's text and state if it hangs, and prints these if it
/// crashes.
class watchdog {
public:
    explicit watchdog(const std::string& program) : text_("A program failed: " + program) {
        last_words = text_.c_str();
        phase = "the start of the program";
        ::signal(SIGABRT, &speak);
#if COIL_SANITIZED
        __sanitizer_set_death_callback(&speak_now);
#else
        ::signal(SIGSEGV, &speak);
        ::signal(SIGBUS, &speak);
#endif
    }
    watchdog(const watchdog&) = delete;
    ~watchdog() {
        {
            const std::scoped_lock lock(mutex_);
            over_ = true;
        }
        changed_.notify_all();
        thread_.join();
        ::signal(SIGABRT, SIG_DFL);
        last_words = "";
    }

    /// From now on everything must end within the limit.
    void program_ends() noexcept {
        const std::scoped_lock lock(mutex_);
        if (!ending_) {
            ending_ = true;
            until_ = std::chrono::steady_clock::now() + time_to_end();
            changed_.notify_all();
        }
    }
    /// Sets what is being waited for.
    void waits_for(const char* what) noexcept { phase = what; }
    /// While this object exists, the report of a failure includes the state of the program.
    class observation {
    public:
        explicit observation(const world& of) noexcept { observed = &of; }
        observation(const observation&) = delete;
        ~observation() { observed = nullptr; }
    };

private:
    static void speak_now() {
        [[maybe_unused]] auto n = ::write(STDERR_FILENO, last_words, std::strlen(last_words));
        if (const world* const at = observed) {
            char state[256];
            const int size =
                std::snprintf(state, sizeof state,
                              "state: %u steps done, %lld of %lld locals exist; waiting for: %s\n",
                              at->steps.load(), static_cast<long long>(at->made - at->gone),
                              static_cast<long long>(at->made), phase.load());
            n = ::write(STDERR_FILENO, state, static_cast<std::size_t>(size));
        }
    }
    static void speak(int number) {
        speak_now();
        ::signal(number, SIG_DFL);
        ::raise(number);
    }

    void watch() {
        std::unique_lock lock(mutex_);
        while (!over_) {
            changed_.wait_until(lock, until_);
            if (!over_ && std::chrono::steady_clock::now() >= until_) {
                std::fputs("The program did not end within the limit\n", stderr);
                if (std::getenv("COIL_LIFETIME_GDB") != nullptr) {
                    const std::string command = "gdb -batch -p " + std::to_string(::getpid()) +
                                                " -ex 'thread apply all bt 40' >&2 2>/dev/null";
                    [[maybe_unused]] const int status = std::system(command.c_str());
                }
                std::abort();
            }
        }
    }

    static constinit inline const char* last_words = "";
    static constinit inline std::atomic<const world*> observed = nullptr;
    static constinit inline std::atomic<const char*> phase = "the start of the program";

    const std::string text_;
    std::mutex mutex_;
    std::condition_variable changed_;
    // Also covers a program that does not start.
    std::chrono::steady_clock::time_point until_ =
        std::chrono::steady_clock::now() + std::chrono::seconds(30);
    bool ending_ = false;
    bool over_ = false;
    std::thread thread_{[this] { watch(); }};
};

} // namespace lifetime_test
