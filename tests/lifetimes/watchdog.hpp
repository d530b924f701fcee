#pragma once

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

/// Terminates the process with the program's text if it hangs, and prints it if it crashes.
class watchdog {
public:
    explicit watchdog(const std::string& program) : text_("A program failed: " + program) {
        last_words = text_.c_str();
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
    void waits_for(const char* what) noexcept { phase_ = what; }

private:
    static void speak_now() {
        [[maybe_unused]] const auto n = ::write(STDERR_FILENO, last_words, std::strlen(last_words));
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
                std::fprintf(stderr, "The program did not end within the limit; waited for: %s\n",
                             phase_.load());
                if (std::getenv("COIL_LIFETIME_GDB") != nullptr) {
                    const std::string command = "gdb -batch -p " + std::to_string(::getpid()) +
                                                " -ex 'thread apply all bt 40' 2>/dev/null >&2";
                    [[maybe_unused]] const int status = std::system(command.c_str());
                }
                std::abort();
            }
        }
    }

    static constinit inline const char* last_words = "";

    const std::string text_;
    std::mutex mutex_;
    std::condition_variable changed_;
    // Also covers a program that does not start.
    std::chrono::steady_clock::time_point until_ =
        std::chrono::steady_clock::now() + std::chrono::seconds(30);
    bool ending_ = false;
    bool over_ = false;
    std::atomic<const char*> phase_ = "its beginning";
    std::thread thread_{[this] { watch(); }};
};

} // namespace lifetime_test
