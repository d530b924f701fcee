#pragma once

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace coil {
class io_context;
}

namespace coil::detail {

/// Writes dump_tasks() of all contexts of the process to stderr when a signal arrives. The signal's
/// handler only writes to an eventfd. The dump is written by a thread, which exists while a context
/// has asked for a signal; so it works even while coroutines block all contexts.
class dump_signal {
public:
    static dump_signal& instance();
    /// Whether its thread exists.
    [[nodiscard]] static bool has_thread() noexcept { return has_thread_; }

    void add(io_context& context, int signal);
    void remove(io_context& context, int signal) noexcept;
    /// Held during a dump.
    [[nodiscard]] std::mutex& contexts_mutex() noexcept { return mutex_; }

private:
    struct handled {
        int users = 0;
        struct ::sigaction before{};
    };

    dump_signal();

    void use(int signal);
    void stop_using(int signal) noexcept;
    void start();
    void close_descriptor() noexcept;
    void run() const noexcept;
    void dump() const;
    void reset_in_child() noexcept;

    inline static constinit std::atomic<bool> has_thread_ = false;

    std::mutex use_mutex_;     // protects signals_ and thread_
    mutable std::mutex mutex_; // protects contexts_; held during a dump
    std::vector<io_context*> contexts_;
    std::map<int, handled> signals_;
    std::thread thread_;
    int wake_ = -1; // an eventfd: 1 for a dump, stop_value to end
};

} // namespace coil::detail
