#include "epoll_backend_impl.hpp"

#include <coil/uring/epoll_backend.hpp>
#include <coil/uring/syscall.hpp>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// Setup, waiting, clocks, registered files, and messages between rings.

namespace coil::uring::detail {
namespace {

constexpr std::uint64_t wake_mark = ~std::uint64_t{0};
constexpr std::int64_t interrupt_gap_ns = 1'000'000;

std::int64_t clock_ns(::clockid_t clock) noexcept {
    std::timespec ts{};
    ::clock_gettime(clock, &ts);
    return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

/// All epoll backends of the process: a message names its target by the epoll descriptor.
struct registry {
    std::mutex guard;
    std::vector<epoll_backend*> backends;
};

registry& all_backends() noexcept {
    static registry one;
    return one;
}

} // namespace

epoll_backend::~epoll_backend() {
    {
        registry& all = all_backends();
        const std::scoped_lock lock(all.guard);
        std::erase(all.backends, this);
    }
    if (pool_ != nullptr) {
        pool_->stop();
        discard_finished();
    }
    for_each_pending([this](request& r) { clean_up(static_cast<epoll_request&>(r)); });
    close_world();
    if (wake_fd_ >= 0) {
        ::close(wake_fd_);
    }
    if (epoll_ >= 0) {
        ::close(epoll_);
    }
}

int epoll_backend::open_world() noexcept try {
    if (epoll_ >= 0) {
        return 0;
    }
    const int set = ::epoll_create1(EPOLL_CLOEXEC);
    if (set < 0) {
        return -errno;
    }
    const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ::epoll_event event{};
    // Edge-triggered: each write of the eventfd is one event, so it need not be read.
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = wake_mark;
    if (wake < 0 || ::epoll_ctl(set, EPOLL_CTL_ADD, wake, &event) != 0) {
        const int error = errno;
        ::close(set);
        if (wake >= 0) {
            ::close(wake);
        }
        return -error;
    }
    epoll_ = set;
    wake_fd_ = wake;
    events_.resize(256);
    pool_ = std::make_unique<worker_pool>(wake_fd_);
    registry& all = all_backends();
    const std::scoped_lock lock(all.guard);
    all.backends.push_back(this);
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

void epoll_backend::entered_by_owner() noexcept {
    owner_ = number_this_thread();
    open_.store(true, std::memory_order_relaxed);
}

std::unique_ptr<emulated_request> epoll_backend::make_request() {
    return std::make_unique<epoll_request>();
}

std::int64_t epoll_backend::now_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }
std::int64_t epoll_backend::realtime_ns() noexcept { return clock_ns(CLOCK_REALTIME); }
std::int64_t epoll_backend::boottime_ns() noexcept { return clock_ns(CLOCK_BOOTTIME); }

// ---- waiting

int epoll_backend::sleep(std::int64_t deadline_ns) noexcept {
    const int room = static_cast<int>(events_.size());
    if (deadline_ns == INT64_MIN) {
        return ::epoll_wait(epoll_, events_.data(), room, 0);
    }
    if (deadline_ns == never) {
        return ::epoll_wait(epoll_, events_.data(), room, -1);
    }
    const std::int64_t left = deadline_ns - now_ns();
    if (left <= 0) {
        return ::epoll_wait(epoll_, events_.data(), room, 0);
    }
#ifdef SYS_epoll_pwait2
    if (has_pwait2_) {
        const timespec span{left / 1'000'000'000, left % 1'000'000'000};
        const long n = ::syscall(SYS_epoll_pwait2, epoll_, events_.data(), room, &span, nullptr,
                                 std::size_t{0});
        if (n >= 0 || errno != ENOSYS) {
            return static_cast<int>(n);
        }
        has_pwait2_ = false;
    }
#endif
    // Rounded up, so that no timer fires early.
    const std::int64_t ms = std::min<std::int64_t>((left + 999'999) / 1'000'000, 3'600'000);
    return ::epoll_wait(epoll_, events_.data(), room, static_cast<int>(ms));
}

int epoll_backend::wait(std::int64_t deadline_ns) noexcept {
    bool polling = deadline_ns == INT64_MIN;
    if (!hot_.empty()) [[unlikely]] {
        std::vector<std::uint64_t> now;
        now.swap(hot_);
        for (const std::uint64_t mark : now) {
            if (state* s = descriptors_.find(static_cast<int>(mark & 0xffffffff));
                s != nullptr && s->generation == mark >> 32) {
                on_event(*s, EPOLLIN);
            }
        }
        deadline_ns = INT64_MIN;
        polling = true;
    }
    const bool revalidates = stale_[0] != nullptr || stale_[1] != nullptr;
    if (!polling && revalidates) {
        deadline_ns = std::min(deadline_ns, next_tick_ns_);
    }
    if (interrupting_ != 0) [[unlikely]] {
        for_each_pending([this](request& one) {
            auto& r = static_cast<epoll_request&>(one);
            if (r.at == place::working && r.interrupting) {
                pool_->interrupt(r.job);
            }
        });
        if (!polling) {
            deadline_ns = std::min(deadline_ns, now_ns() + interrupt_gap_ns);
        }
    }
    const int n = sleep(deadline_ns);
    const int error = n < 0 ? -errno : 0;
    for (int i = 0; i < n; ++i) {
        const std::uint64_t mark = events_[static_cast<std::size_t>(i)].data.u64;
        if (mark == wake_mark) {
            continue; // what it announces is looked for below
        }
        state* const s = descriptors_.find(static_cast<int>(mark & 0xffffffff));
        if (s != nullptr && s->generation == mark >> 32) [[likely]] {
            on_event(*s, events_[static_cast<std::size_t>(i)].events);
        }
    }
    if (pool_->has_finished()) {
        collect_finished();
    }
    if (has_messages_.load(std::memory_order_acquire)) [[unlikely]] {
        receive_messages();
    }
    if (revalidates && (n <= 0 || ++waits_ % 16 == 0) && now_ns() >= next_tick_ns_) {
        revalidate_stale(n <= 0);
    }
    return error == -EINTR ? error : 0;
}

// ---- registered files

int epoll_backend::hold_file(int descriptor) noexcept {
    if (descriptor == epoll_ || descriptor == wake_fd_) {
        return -EBADF;
    }
    const int file = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (file < 0) {
        return -errno;
    }
    fresh(file);
    return file;
}

void epoll_backend::drop_file(int file) noexcept { close_descriptor(file); }

int epoll_backend::install_file(int file, bool close_on_exec) noexcept {
    const int fd = ::fcntl(file, close_on_exec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
    if (fd < 0) {
        return -errno;
    }
    fresh(fd);
    return fd;
}

bool epoll_backend::is_open(int descriptor) noexcept {
    return !is_closing(descriptor) && ::fcntl(descriptor, F_GETFD) >= 0;
}

bool epoll_backend::is_same_file(int one, int other) noexcept {
    if (one == other) {
        return true;
    }
    // If kcmp(2) is not available, descriptors with different numbers count as different files.
    constexpr int files = 0; // KCMP_FILE
    const auto self = static_cast<int>(::getpid());
    return ::syscall(SYS_kcmp, self, self, files, one, other) == 0;
}

unsigned epoll_backend::max_files() noexcept {
    ::rlimit limit{};
    constexpr ::rlim_t most = 1U << 20;
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0
               ? static_cast<unsigned>(std::min(limit.rlim_cur, most))
               : 1U << 20;
}

// ---- messages

int epoll_backend::send_message(const sqe& s) noexcept {
    if (s.buf_index != 0 || s.personality != 0 ||
        (s.msg_ring_flags & ~(msg_ring_flag::cqe_skip | msg_ring_flag::flags_pass)) != 0) {
        return -EINVAL;
    }
    if (s.addr == msg_ring_command::send_fd) {
        return -EOPNOTSUPP;
    }
    if (s.addr != msg_ring_command::data || s.addr3 != 0) {
        return -EINVAL;
    }
    const bool passes = (s.msg_ring_flags & msg_ring_flag::flags_pass) != 0;
    if (s.file_index != 0 && !passes) {
        return -EINVAL;
    }
    const message text{s.off, static_cast<int>(s.len), passes ? s.file_index : 0};
    registry& all = all_backends();
    const std::scoped_lock lock(all.guard);
    const auto found = std::find_if(all.backends.begin(), all.backends.end(),
                                    [&](const epoll_backend* k) { return k->epoll_ == s.fd; });
    if (found == all.backends.end()) {
        return ::fcntl(s.fd, F_GETFD) < 0 ? -EBADF : -EBADFD;
    }
    epoll_backend& target = **found;
    if (&target == this) {
        deliver(text.user_data, text.result, text.flags);
        return 0;
    }
    if (!target.open_.load(std::memory_order_relaxed)) {
        return -EBADFD;
    }
    try {
        const std::scoped_lock messages_lock(target.messages_guard_);
        target.messages_.push_back(text);
        target.has_messages_.store(true, std::memory_order_release);
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(target.wake_fd_, &one, sizeof one);
    return 0;
}

void epoll_backend::receive_messages() noexcept {
    std::vector<message> messages;
    {
        const std::scoped_lock lock(messages_guard_);
        messages.swap(messages_);
        has_messages_.store(false, std::memory_order_relaxed);
    }
    for (const message& m : messages) {
        deliver(m.user_data, m.result, m.flags);
    }
}

} // namespace coil::uring::detail

namespace coil::uring {

std::unique_ptr<backend> make_epoll_backend() { return std::make_unique<detail::epoll_backend>(); }

} // namespace coil::uring
