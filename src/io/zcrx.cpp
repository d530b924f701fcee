#include <coil/context/detail/perform.hpp>
#include <coil/io/detail/zcrx_state.hpp>
#include <coil/io/zcrx.hpp>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <net/if.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace coil {

namespace detail {

namespace {

constexpr unsigned zcrx_requests = 64; // in one submission

[[noreturn]] void refuse_queue(int error, const zcrx_options& options, const char* cause) {
    throw std::system_error(error, std::generic_category(),
                            "coil::zcrx_queue: queue " + std::to_string(options.queue) + " of '" +
                                options.interface + "': " + cause);
}

const char* zcrx_cause_of(int error) noexcept {
    switch (error) {
    case EPERM:
        return "CAP_NET_ADMIN is required";
    case ENODEV:
        return "there is no such interface";
    case EOPNOTSUPP:
        return "the interface or its driver does not support zero-copy receive (software devices "
               "such as loopback never do), or the kernel is built without it; use recv_multishot";
    case ERANGE:
        return "the interface has no such receive queue";
    case EINVAL:
        return "zero-copy receive needs Linux 6.15, a receive queue that exists, and headers that "
               "are separated from payloads (ethtool -G DEVICE tcp-data-split on)";
    case EEXIST:
    case EBUSY:
        return "the receive queue is used by another program or by AF_XDP";
    case ENOMEM:
        return "the area cannot be locked; RLIMIT_MEMLOCK (ulimit -l) may be too low";
    default:
        return "the registration failed";
    }
}

unsigned interface_of(const zcrx_options& options) {
    const unsigned index = ::if_nametoindex(options.interface.c_str());
    if (index == 0) {
        refuse_queue(ENODEV, options, zcrx_cause_of(ENODEV));
    }
    return index;
}

std::unique_ptr<uring::backend> backend_for(const zcrx_options& options) {
    if (options.make_backend) {
        return options.make_backend();
    }
    if (current_world() != nullptr) {
        refuse_queue(EOPNOTSUPP, options, "a simulated world has no network devices");
    }
    return uring::make_linux_backend();
}

/// An entry of the refill ring for each page is the most that is useful unless pages are shared by
/// pieces; returns that do not fit wait.
unsigned refill_entries(std::size_t area_size) noexcept {
    constexpr std::size_t piece = 4096;
    return static_cast<unsigned>(
        std::clamp<std::size_t>(area_size / piece, 64, uring::zcrx_area::max_refill_entries));
}

} // namespace

zcrx_state::zcrx_state(event_loop& loop, const zcrx_options& options)
    : area_(options.area_size, refill_entries(options.area_size)),
      most_queued_(std::max<std::size_t>(area_.pages() / 8, 16)) {
    const unsigned interface_index = interface_of(options);
    ring_.emplace(uring::zcrx_ring::options{zcrx_requests, options.completions},
                  backend_for(options));
    uring::backend& backend = ring_->get_backend();
    const int id = area_.register_with(backend, interface_index, options.queue);
    if (id < 0) {
        refuse_queue(-id, options, zcrx_cause_of(-id));
    }
    id_ = static_cast<std::uint32_t>(id);
    int fd = ::eventfd(0, EFD_CLOEXEC);
    if (fd < 0) {
        refuse_queue(errno, options, "no descriptor for the notifications of the ring");
    }
    event_fd_ = io::owned_descriptor(fd);
    if (const int error = backend.do_register(uring::register_op::eventfd, &fd, 1); error < 0) {
        refuse_queue(-error, options, "the ring cannot notify the context");
    }
    loop_.store(&loop, std::memory_order_relaxed);
    loop.attach(*this);
}

} // namespace detail

zcrx_queue::zcrx_queue(const zcrx_options& options)
    : state_(new detail::zcrx_state(detail::required_loop(), options)) {
    state_->add_user();
}

zcrx_queue::~zcrx_queue() {
    if (state_ != nullptr) {
        state_->remove_user();
    }
}

std::size_t zcrx_queue::area_size() const noexcept { return state_->area_size(); }
std::size_t zcrx_queue::pieces_in_use() const noexcept { return state_->in_use(); }

} // namespace coil
