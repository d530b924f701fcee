#include <coil/io/signal_set.hpp>
#include <coil/uring/prep.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace coil {

namespace {

/// The number of sets of this process that contain each signal.
class signal_counts {
public:
    /// Blocks the signals of a new set on this thread.
    void add(const ::sigset_t& signals) noexcept {
        const std::lock_guard guard(lock_);
        ::sigset_t before;
        ::pthread_sigmask(SIG_BLOCK, &signals, &before);
        for_each(signals, [&](int signal, one& counted) {
            const bool was_blocked = ::sigismember(&before, signal) == 1;
            counted.unblocks = !was_blocked || (counted.sets > 0 && counted.unblocks);
            ++counted.sets;
        });
    }

    /// For signals that are in no other set: discards pending ones, and unblocks those that were
    /// not blocked before.
    void remove(const ::sigset_t& signals) noexcept {
        const std::lock_guard guard(lock_);
        ::sigset_t last;
        ::sigset_t blocked;
        ::sigemptyset(&last);
        ::sigemptyset(&blocked);
        for_each(signals, [&](int signal, one& counted) {
            if (--counted.sets == 0) {
                ::sigaddset(&last, signal);
                if (counted.unblocks) {
                    ::sigaddset(&blocked, signal);
                }
            }
        });
        const ::timespec now{};
        // A signal that is still pending when it is unblocked would have its usual effect.
        while (::sigtimedwait(&last, nullptr, &now) > 0) {
        }
        ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
    }

    /// Makes a signal that was not received pending again, if a set still contains it.
    void give_back(int signal) noexcept {
        const std::lock_guard guard(lock_);
        if (counts_.at(static_cast<std::size_t>(signal)).sets > 0) {
            ::kill(::getpid(), signal);
        }
    }

private:
    struct one {
        unsigned sets = 0;
        bool unblocks = false; // it was not blocked before
    };

    template <class F>
    void for_each(const ::sigset_t& signals, F f) noexcept {
        for (std::size_t i = 1; i < counts_.size(); ++i) {
            if (::sigismember(&signals, static_cast<int>(i)) == 1) {
                f(static_cast<int>(i), counts_[i]);
            }
        }
    }

    std::mutex lock_;
    std::array<one, NSIG> counts_{};
};

signal_counts& counts() {
    static signal_counts instance;
    return instance;
}

class owned_descriptor {
public:
    owned_descriptor(int fd, const char* call) : fd_(fd) {
        if (fd < 0) {
            throw std::system_error(errno, std::generic_category(), call);
        }
    }
    owned_descriptor(const owned_descriptor&) = delete;
    owned_descriptor& operator=(const owned_descriptor&) = delete;
    ~owned_descriptor() { ::close(fd_); }
    operator int() const noexcept { return fd_; }

private:
    int fd_;
};

} // namespace

namespace detail {

/// A signalfd, and an epoll set of the signalfd and an eventfd that reports the end of the
/// signal_set.
class signal_source {
public:
    explicit signal_source(const ::sigset_t& signals)
        : signals_(signals),
          queue_(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), "coil: signalfd"),
          end_(::eventfd(0, EFD_CLOEXEC), "coil: signal_set: eventfd"),
          either_(::epoll_create1(EPOLL_CLOEXEC), "coil: signal_set: epoll_create1") {
        watch(queue_);
        watch(end_);
        counts().add(signals_);
    }
    signal_source(const signal_source&) = delete;
    signal_source& operator=(const signal_source&) = delete;
    ~signal_source() = default;

    /// Called when the signal_set is destroyed.
    void close() noexcept {
        closed_.store(true, std::memory_order_relaxed); // published by the write below
        ::eventfd_write(end_, 1);
        counts().remove(signals_);
    }

    /// A signal number; -EAGAIN if none is pending; -ECANCELED if the set was destroyed.
    [[nodiscard]] int take() noexcept {
        if (closed_.load(std::memory_order_relaxed)) {
            return -ECANCELED;
        }
        ::signalfd_siginfo what{};
        const ssize_t n = ::read(queue_, &what, sizeof what);
        return n == sizeof what ? static_cast<int>(what.ssi_signo) : -errno;
    }

    void add_owner() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
    /// Returns true if no owner is left.
    [[nodiscard]] bool remove_owner() noexcept {
        return owners_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

    [[nodiscard]] int queue() const noexcept { return queue_; }
    [[nodiscard]] int either() const noexcept { return either_; }

private:
    void watch(int fd) {
        ::epoll_event readable{};
        readable.events = EPOLLIN;
        if (::epoll_ctl(either_, EPOLL_CTL_ADD, fd, &readable) != 0) {
            throw std::system_error(errno, std::generic_category(), "coil: signal_set: epoll_ctl");
        }
    }

    const ::sigset_t signals_;
    std::atomic<unsigned> owners_{1};
    std::atomic<bool> closed_{false};
    owned_descriptor queue_;
    owned_descriptor end_;
    owned_descriptor either_;
};

signal_source_owner::signal_source_owner(const ::sigset_t& signals)
    : source_(new signal_source(signals)) {}

signal_source_owner::signal_source_owner(const signal_source_owner& other) noexcept
    : source_(other.source_) {
    if (source_ != nullptr) {
        source_->add_owner();
    }
}

signal_source_owner::~signal_source_owner() {
    if (source_ != nullptr && source_->remove_owner()) {
        delete source_;
    }
}

signal_element::signal_element(signal_source_owner source) noexcept
    : source_(std::move(source)),
      entry_(uring::prep::poll_add(source_.get() != nullptr ? source_.get()->either() : -1, POLLIN),
             &take) {}

sqe_slot& signal_element::arm() noexcept {
    entry_.source = source_.get();
    return entry_;
}

int signal_element::take(poll_then_try_op& of) noexcept {
    auto& self = static_cast<entry&>(of);
    const int signal = self.source->take();
    self.has_taken = signal > 0;
    return signal;
}

io_result signal_element::result() noexcept {
    // Inside a chain the entry only waits for readiness, and the signal is taken here.
    if (entry_.result >= 0 && !entry_.has_taken) {
        return io_result(source_.get()->take());
    }
    return io_result(entry_.result);
}

void signal_element::drop() noexcept {
    if (entry_.has_taken) {
        counts().give_back(entry_.result);
    }
}

} // namespace detail

signal_set::signal_set(std::span<const int> signals)
    : source_(set_of(signals.data(), signals.size())) {}

::sigset_t signal_set::set_of(std::initializer_list<int> signals) {
    return set_of(signals.begin(), signals.size());
}

::sigset_t signal_set::set_of(const int* signals, std::size_t count) {
    ::sigset_t wanted;
    ::sigemptyset(&wanted);
    for (std::size_t i = 0; i < count; ++i) {
        if (::sigaddset(&wanted, signals[i]) != 0) {
            throw std::system_error(errno, std::generic_category(),
                                    "coil: signal_set: " + std::to_string(signals[i]));
        }
    }
    return wanted;
}

signal_set::~signal_set() {
    if (source_.get() != nullptr) {
        source_.get()->close();
    }
}

int signal_set::native_handle() const noexcept {
    return source_.get() != nullptr ? source_.get()->queue() : -1;
}

} // namespace coil
