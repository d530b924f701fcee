#include "dump_signal.hpp"

#include "task_snapshot.hpp"
#include "thread_name.hpp"

#include <coil/base/service_thread_start.hpp>
#include <coil/context/detail/dump_registration.hpp>
#include <coil/context/detail/sim_driver.hpp>
#include <coil/context/io_context.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace coil::detail {

namespace {

/// Added to the eventfd to end the thread. The number of pending signals never reaches it.
constexpr std::uint64_t stop_value = std::uint64_t{1} << 32;

constinit std::atomic<int> descriptor_of_handler = -1;
constinit std::atomic<int> running_handlers = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void on_dump_signal(int) noexcept {
    const int error = errno;
    const std::uint64_t one = 1;
    ++running_handlers;
    if (const int fd = descriptor_of_handler; fd >= 0) {
        static_cast<void>(::write(fd, &one, sizeof one));
    }
    --running_handlers;
    errno = error;
}

} // namespace

dump_registration::dump_registration(io_context& context, int signal) : context_(context) {
    if (current_sim_driver != nullptr) {
        return;
    }
    dump_signal::instance().add(context, signal);
    signal_ = signal;
    is_listed_ = true;
}

dump_registration::~dump_registration() {
    if (is_listed_) {
        dump_signal::instance().remove(context_, signal_);
    }
}

dumps_paused::dumps_paused() { dump_signal::instance().contexts_mutex().lock(); }
dumps_paused::~dumps_paused() { dump_signal::instance().contexts_mutex().unlock(); }

dump_signal& dump_signal::instance() {
    static auto& only = *new dump_signal; // contexts may outlive main()
    return only;
}

namespace {
/// Created before there are other threads. Otherwise the child of a fork() during the
/// initialisation would wait for ever for a thread that it does not have.
[[maybe_unused]] const dump_signal& made_at_start = dump_signal::instance();
} // namespace

dump_signal::dump_signal() {
    ::pthread_atfork(
        [] {
            instance().use_mutex_.lock();
            instance().mutex_.lock();
        },
        [] {
            instance().mutex_.unlock();
            instance().use_mutex_.unlock();
        },
        [] { instance().reset_in_child(); });
}

/// Called in the child of a fork(), whose only thread holds the locks. There the signal does
/// nothing until a context asks for it.
void dump_signal::reset_in_child() noexcept {
    contexts_.clear();
    signals_.clear();
    descriptor_of_handler = -1;
    running_handlers = 0;
    if (has_thread_.exchange(false)) {
        new (&thread_) std::thread; // there is nothing to join
        ::close(std::exchange(wake_, -1));
    }
    mutex_.unlock();
    use_mutex_.unlock();
}

void dump_signal::add(io_context& context, int signal) {
    if (signal != 0) {
        use(signal);
    }
    const std::scoped_lock lock(mutex_);
    contexts_.push_back(&context);
}

void dump_signal::remove(io_context& context, int signal) noexcept {
    {
        const std::scoped_lock lock(mutex_);
        std::erase(contexts_, &context);
    }
    if (signal != 0) {
        stop_using(signal);
    }
}

void dump_signal::use(int signal) {
    const std::scoped_lock lock(use_mutex_);
    handled& entry = signals_[signal];
    if (entry.users == 0) {
        struct ::sigaction ours{};
        ours.sa_handler = &on_dump_signal;
        ours.sa_flags = SA_RESTART;
        ::sigemptyset(&ours.sa_mask);
        try {
            if (::sigaction(signal, &ours, &entry.before) != 0) {
                throw std::system_error(errno, std::generic_category(),
                                        "coil: dump_signal " + std::to_string(signal));
            }
            try {
                start();
            } catch (...) {
                ::sigaction(signal, &entry.before, nullptr);
                throw;
            }
        } catch (...) {
            signals_.erase(signal);
            throw;
        }
    }
    ++entry.users;
}

void dump_signal::start() {
    if (has_thread_) {
        return;
    }
    wake_ = ::eventfd(0, EFD_CLOEXEC);
    if (wake_ < 0) {
        throw std::system_error(errno, std::generic_category(), "coil: dump_signal");
    }
    descriptor_of_handler = wake_;
    const service_thread_start inherited;
    try {
        thread_ = std::thread([this] { run(); });
        has_thread_ = true;
    } catch (...) {
        close_descriptor();
        throw;
    }
}

void dump_signal::stop_using(int signal) noexcept {
    const std::scoped_lock lock(use_mutex_);
    const auto entry = signals_.find(signal);
    if (entry == signals_.end() || --entry->second.users > 0) { // missing in a forked child
        return;
    }
    ::sigaction(signal, &entry->second.before, nullptr);
    signals_.erase(entry);
    if (signals_.empty() && has_thread_) {
        static_cast<void>(::write(wake_, &stop_value, sizeof stop_value));
        thread_.join();
        has_thread_ = false;
        close_descriptor();
    }
}

void dump_signal::close_descriptor() noexcept {
    descriptor_of_handler = -1;
    while (running_handlers > 0) { // handlers on other threads
        std::this_thread::yield();
    }
    ::close(std::exchange(wake_, -1));
}

void dump_signal::run() const noexcept {
    name_this_thread("coil-dump");
    for (;;) {
        std::uint64_t requests = 0;
        if (::read(wake_, &requests, sizeof requests) != sizeof requests) {
            continue;
        }
        if (requests % stop_value != 0) {
            try {
                dump();
            } catch (const std::exception& error) {
                std::fprintf(stderr, "coil: no dump of tasks: %s\n", error.what());
            }
        }
        if (requests >= stop_value) {
            return;
        }
    }
}

void dump_signal::dump() const {
    std::string text = "coil: tasks of process " + std::to_string(::getpid()) + "\n";
    {
        const std::scoped_lock lock(mutex_);
        std::vector<context_snapshot> all;
        all.reserve(contexts_.size());
        for (io_context* const context : contexts_) {
            all.push_back(take_snapshot(context->loop(), io_context::default_dump_limit));
        }
        text += to_text(all);
    }
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
}

} // namespace coil::detail
