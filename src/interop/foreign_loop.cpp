#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/perform.hpp>
#include <coil/interop/foreign_loop.hpp>
#include <coil/io/epoll.hpp>
#include <coil/io/file.hpp>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace coil {

namespace {

using clock = std::chrono::steady_clock;

// The epoll_data of the timer and of the eventfd. That of a watched descriptor is its number.
constexpr int timer_entry = -1;
constexpr int interrupt_entry = -2;

[[noreturn]] void fail(int error, const char* what) {
    throw std::system_error(error, std::generic_category(), what);
}

// In a task of a simulated host, the three descriptors are files of that host.

constexpr auto at_position = ~std::uint64_t{0};

bool is_in_world(int fd) noexcept { return fd >= uring::first_world_descriptor; }

/// A call on one of the descriptors, on any thread: a value >= 0 or -errno.
int call(int fd, const uring::sqe& request) noexcept {
    return is_in_world(fd) ? detail::perform(request) : uring::perform_on_linux(request);
}

/// The descriptor that a call has created, or throws its error.
io::owned_descriptor opened(int result, const char* what) {
    if (result < 0) {
        fail(-result, what);
    }
    return io::owned_descriptor(result);
}

/// epoll_ctl(2). Returns 0 or the error.
int control(int set, int op, int fd, int data, std::uint32_t events) noexcept {
    ::epoll_event event{};
    event.events = events;
    event.data.fd = data;
    return -call(set, uring::prep::epoll_ctl(set, op, fd, &event));
}

/// epoll_wait(2) that does not wait: a number or -errno.
int take_ready(int set, std::span<::epoll_event> events) noexcept {
    const auto room = static_cast<int>(events.size());
    if (is_in_world(set)) {
        const int found = detail::perform(uring::prep::epoll_wait(set, events.data(), room));
        return found == -EAGAIN ? 0 : found;
    }
    const int found = ::epoll_wait(set, events.data(), room, 0);
    return found < 0 && errno != EINTR ? -errno : std::max(found, 0);
}

void set_timer(int timer, const ::itimerspec& spec) noexcept {
    call(timer, uring::prep::timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec));
}

void signal(int eventfd) noexcept {
    const ::eventfd_t one = 1;
    call(eventfd, uring::prep::write(eventfd, &one, sizeof one, at_position));
}

void reset(int eventfd) noexcept {
    ::eventfd_t count = 0;
    call(eventfd, uring::prep::read(eventfd, &count, sizeof count, at_position));
}

/// The time on the clock of the timer.
clock::time_point time_of(int timer) noexcept {
    uring::backend* const world = is_in_world(timer) ? detail::current_world() : nullptr;
    return world != nullptr ? world->now() : clock::now();
}

} // namespace

foreign_loop::foreign_loop()
    : set_(opened(io::epoll_create1(), "coil: foreign_loop: epoll_create1")),
      interrupts_(opened(detail::perform(uring::prep::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
                         "coil: foreign_loop: eventfd")),
      timer_(opened(
          detail::perform(uring::prep::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
          "coil: foreign_loop: timerfd_create")) {
    const int set = set_.native_handle();
    for (const auto& [fd, data] : {std::pair(interrupts_.native_handle(), interrupt_entry),
                                   std::pair(timer_.native_handle(), timer_entry)}) {
        if (const int error = control(set, EPOLL_CTL_ADD, fd, data, EPOLLIN)) {
            fail(error, "coil: foreign_loop: epoll_ctl");
        }
    }
}

foreign_loop::~foreign_loop() {
    if (waiting_) {
        detail::end_with_misuse("a foreign_loop was destroyed while a task waits for it.");
    }
}

void foreign_loop::watch(int fd, std::uint32_t events) {
    if (events == 0) {
        unwatch(fd);
        return;
    }
    // close(2) removes a descriptor from the set silently, so only the kernel knows whether this
    // one is in it.
    const int set = set_.native_handle();
    int error = control(set, EPOLL_CTL_MOD, fd, fd, events);
    if (error == ENOENT) {
        error = control(set, EPOLL_CTL_ADD, fd, fd, events);
    }
    if (error != 0) {
        fail(error, "coil: foreign_loop::watch");
    }
}

void foreign_loop::unwatch(int fd) noexcept {
    control(set_.native_handle(), EPOLL_CTL_DEL, fd, fd, 0);
    for (std::size_t i = 0; i < count_; ++i) {
        if (ready_[i].fd == fd) {
            ready_[i].events = 0;
        }
    }
}

void foreign_loop::set_deadline(clock::time_point deadline) noexcept {
    deadline_ = deadline;
    if (waiting_) {
        arm_timer();
    }
}

void foreign_loop::clear_deadline() noexcept { deadline_.reset(); }

/// Libraries change their deadline often, and mostly postpone it. So the timer is set only when a
/// task waits, and only if it would expire too late: an early expiry is ignored, and then the timer
/// is set again.
void foreign_loop::arm_timer() noexcept {
    const clock::time_point wanted = deadline_.value_or(clock::time_point::max());
    if (!timer_expired_ && timer_ends_ <= wanted) {
        return;
    }
    timer_expired_ = false;
    timer_ends_ = wanted;
    ::itimerspec spec{}; // zero: the timer stops
    if (deadline_) {
        const auto since =
            std::max<clock::duration>(wanted.time_since_epoch(), std::chrono::nanoseconds(1));
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
        spec.it_value.tv_sec = static_cast<std::time_t>(seconds.count());
        spec.it_value.tv_nsec = static_cast<long>((since - seconds).count());
    }
    set_timer(timer_.native_handle(), spec);
}

void foreign_loop::interrupt() noexcept {
    if (!interrupted_.exchange(true, std::memory_order_acq_rel)) {
        signal(interrupts_.native_handle());
    }
}

/// Reads the eventfd, then clears the flag: an interrupt() in between makes no system call, and
/// belongs to the interruption that is returned now.
bool foreign_loop::take_interrupt() noexcept {
    reset(interrupts_.native_handle());
    return interrupted_.exchange(false, std::memory_order_acq_rel);
}

bool foreign_loop::take_expiry() noexcept {
    timer_expired_ = true; // it stays readable until it is stopped, or set again
    if (!deadline_ || time_of(timer_.native_handle()) < *deadline_) {
        return false;
    }
    deadline_.reset();
    return true;
}

foreign_loop::wake_up foreign_loop::take_events() {
    std::array<::epoll_event, most_at_once> events; // NOLINT(*-member-init): filled by the kernel
    const int found = take_ready(set_.native_handle(), events);
    if (found < 0) {
        fail(-found, "coil: foreign_loop::wait");
    }
    wake_up result;
    for (int i = 0; i < found; ++i) {
        const auto& event = events[static_cast<std::size_t>(i)];
        const int fd = event.data.fd;
        if (fd == interrupt_entry) {
            result.interrupted = take_interrupt();
        } else if (fd == timer_entry) {
            result.expired = take_expiry();
        } else {
            ready_[count_++] = {fd, event.events};
        }
    }
    result.ready = {ready_.data(), count_};
    return result;
}

class foreign_loop::waiting_scope {
public:
    explicit waiting_scope(foreign_loop& loop) noexcept : loop_(loop) {
        if (loop.waiting_) {
            detail::end_with_misuse("two tasks wait for a foreign_loop at the same time.");
        }
        loop.waiting_ = true;
    }
    waiting_scope(const waiting_scope&) = delete;
    waiting_scope& operator=(const waiting_scope&) = delete;
    ~waiting_scope() { loop_.waiting_ = false; }

private:
    foreign_loop& loop_;
};

task<foreign_loop::wake_up> foreign_loop::wait() {
    const waiting_scope scope(*this);
    count_ = 0;
    for (;;) {
        arm_timer();
        // The events are fetched after this has resumed, so they reflect what other tasks have
        // changed meanwhile.
        if (const io_result polled = co_await io::poll(set_.native_handle(), POLLIN); polled < 0) {
            fail(-polled, "coil: foreign_loop::wait");
        }
        const wake_up result = take_events();
        if (!result.ready.empty() || result.expired || result.interrupted) {
            co_return result;
        }
    }
}

} // namespace coil
