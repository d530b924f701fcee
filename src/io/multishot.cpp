#include <coil/context/detail/perform.hpp>
#include <coil/io/multishot.hpp>
#include <coil/uring/prep.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

// If the kernel lacks the multishot form, the request is made without the flag: it ends with its
// first completion, and the following next() submits it again.

namespace coil::io {

int accept_stream::prepare(detail::prepared_sqe& request) noexcept {
    if (direct_) {
        if (const int error = owner_loop().use_direct_descriptors(); error < 0) {
            return error;
        }
        if (!std::exchange(attached_, true)) {
            owner_loop().attach(*this);
        }
    }
    uring::sqe accept = direct_ ? uring::prep::accept_multishot_direct(fd_.number(), flags_)
                                : uring::prep::accept_multishot(fd_.number(), flags_);
    if (!owner_loop().ring().supports(uring::opcode::socket)) { // Linux 5.19, like multishot accept
        accept.ioprio = 0;
    }
    request = detail::request_on(fd_, accept);
    return 0;
}

void accept_stream::discard(const detail::multishot_result& r) noexcept {
    if (r.value < 0) {
        return;
    }
    if (direct_) {
        owner_loop().close_direct(r.value);
    } else {
        detail::close_descriptor(r.value);
    }
}

/// Slots that were not taken are closed with the ring's table and are invalid afterwards.
void accept_stream::ring_gone() noexcept {
    attached_ = false;
    while (!results().empty()) {
        results().pop();
    }
}

int poll_stream::prepare(detail::prepared_sqe& request) noexcept {
    // Linux 5.13, or a backend that reports a feature of a newer kernel.
    constexpr std::uint32_t since = uring::feature::rsrc_tags | uring::feature::cqe_skip;
    const bool repeats = (owner_loop().ring().features() & since) != 0;
    request = detail::request_on(fd_, repeats ? uring::prep::poll_multishot(fd_.number(), events_)
                                              : uring::prep::poll_add(fd_.number(), events_));
    return 0;
}

int timeout_stream::prepare(detail::prepared_sqe& request) noexcept {
    if (tick_ns_ == 0) {
        tick_ns_ = detail::deadline_after(owner_loop().now_ns(), interval_ns_);
    }
    due_ = {tick_ns_ / 1'000'000'000, tick_ns_ % 1'000'000'000};
    request = uring::prep::timeout(&due_, 0, uring::timeout_flag::abs);
    return 0;
}

bool timeout_stream::arrived(detail::multishot_result& r) noexcept {
    if (r.value != -ETIME) {
        return true;
    }
    const std::int64_t late = std::max<std::int64_t>(owner_loop().now_ns() - tick_ns_, 0);
    const std::int64_t ticks = 1 + late / interval_ns_;
    tick_ns_ += ticks * interval_ns_;
    r.value = static_cast<int>(std::min<std::int64_t>(ticks, INT_MAX));
    return true;
}

} // namespace coil::io
