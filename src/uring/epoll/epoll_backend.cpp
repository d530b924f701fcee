#include "epoll_backend_impl.hpp"

#include <coil/uring/epoll_backend.hpp>
#include <coil/uring/syscall.hpp>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Setup, clocks, registered files, and messages between rings.

namespace coil::uring::detail {
namespace {

std::int64_t clock_ns(::clockid_t clock) noexcept {
    std::timespec ts{};
    ::clock_gettime(clock, &ts);
    return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

/// Whether both are descriptors of one socket: its inode belongs to it alone. For use without
/// kcmp(2), which many sandboxes forbid.
bool is_same_socket(int one, int other) noexcept {
    struct ::stat first{};
    struct ::stat second{};
    return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && S_ISSOCK(first.st_mode) &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
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

// ---- registered files

bool epoll_backend::is_ring(int descriptor) noexcept {
    registry& all = all_backends();
    const std::scoped_lock lock(all.guard);
    return std::any_of(all.backends.begin(), all.backends.end(),
                       [&](const epoll_backend* k) { return k->epoll_ == descriptor; });
}

int epoll_backend::hold_file(int descriptor) noexcept {
    if (descriptor == wake_fd_ || is_ring(descriptor)) {
        return -EBADF; // a table cannot contain a ring
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

void epoll_backend::forget_earlier_file(int descriptor) noexcept {
    state* const s = descriptors_.find(descriptor);
    if (s != nullptr && s->interest != 0 && s->has_waiters() && watch_again(*s) != 0) {
        abandon(*s);
    }
}

bool epoll_backend::is_same_file(int one, int other) noexcept {
    if (one == other) {
        return true;
    }
    constexpr int files = 0; // KCMP_FILE
    const auto self = static_cast<int>(::getpid());
    const long order = ::syscall(SYS_kcmp, self, self, files, one, other);
    return order == 0 || (order < 0 && errno != EBADF && is_same_socket(one, other));
}

unsigned epoll_backend::max_files() noexcept {
    ::rlimit limit{};
    constexpr ::rlim_t most = 1U << 20;
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0
               ? static_cast<unsigned>(std::min(limit.rlim_cur, most))
               : 1U << 20;
}

// ---- messages

/// Checks a message as Linux does, after it has looked up the file.
int epoll_backend::check_message(const sqe& s) noexcept {
    if (s.addr == msg_ring_command::send_fd) {
        return -EOPNOTSUPP;
    }
    const bool passes = (s.msg_ring_flags & msg_ring_flag::flags_pass) != 0;
    const bool skips = (s.msg_ring_flags & msg_ring_flag::cqe_skip) != 0; // only for files
    return s.addr != msg_ring_command::data || s.addr3 != 0 || skips ||
                   (s.file_index != 0 && !passes)
               ? -EINVAL
               : 0;
}

int epoll_backend::send_message(const epoll_request& r) noexcept {
    const sqe& s = r.entry;
    if (const int error = check_message(s); error != 0) {
        return is_open(r.file) ? error : -EBADF;
    }
    const bool passes = (s.msg_ring_flags & msg_ring_flag::flags_pass) != 0;
    const message text{s.off, static_cast<int>(s.len), passes ? s.file_index : 0};
    registry& all = all_backends();
    const std::scoped_lock lock(all.guard);
    const auto has_number = [&](const epoll_backend* k) { return k->epoll_ == r.file; };
    const auto has_file = [&](epoll_backend* k) { return is_same_file(k->epoll_, r.file); };
    auto found = std::find_if(all.backends.begin(), all.backends.end(), has_number);
    if (found == all.backends.end()) {
        found = std::find_if(all.backends.begin(), all.backends.end(), has_file);
    }
    if (found == all.backends.end()) {
        return is_open(r.file) ? -EBADFD : -EBADF;
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
