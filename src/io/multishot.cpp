#include <coil/io/multishot.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <utility>

#include <unistd.h>

// Where the running kernel answers such a request only once, it is made without the multishot flag:
// it ends with its first answer, and the following next() makes it again.

namespace coil::io {

int accept_stream::prepare(uring::sqe& request) noexcept {
    if (direct_) {
        if (const int error = home().use_direct_descriptors(); error < 0) {
            return error;
        }
        if (!std::exchange(attached_, true)) {
            home().attach(*this);
        }
    }
    request = direct_ ? uring::prep::accept_multishot_direct(fd_.number(), flags_)
                      : uring::prep::accept_multishot(fd_.number(), flags_);
    if (!home().ring().supports(uring::opcode::socket)) { // Linux 5.19, as multishot accept
        request.ioprio = 0;
    }
    request = detail::request_on(fd_, request);
    return 0;
}

void accept_stream::discard(const detail::multishot_result& r) noexcept {
    if (r.value < 0) {
        return;
    }
    if (direct_) {
        home().close_direct(r.value);
    } else {
        ::close(r.value);
    }
}

/// The slots that nobody took are closed with the ring's table, and mean nothing afterwards.
void accept_stream::ring_gone() noexcept {
    attached_ = false;
    while (!results().empty()) {
        results().pop();
    }
}

int poll_stream::prepare(uring::sqe& request) noexcept {
    const bool repeats = (home().ring().features() & uring::feature::rsrc_tags) != 0; // Linux 5.13
    request = detail::request_on(fd_, repeats ? uring::prep::poll_multishot(fd_.number(), events_)
                                              : uring::prep::poll_add(fd_.number(), events_));
    return 0;
}

int timeout_stream::prepare(uring::sqe& request) noexcept {
    // Linux 6.4; the next opcode came with 6.7.
    const bool repeats = home().ring().supports(uring::opcode::waitid);
    request =
        repeats ? uring::prep::timeout_multishot(&interval_) : uring::prep::timeout(&interval_);
    return 0;
}

bool timeout_stream::arrived(detail::multishot_result& r) noexcept {
    if (r.value != -ETIME) {
        return true;
    }
    if (!results().empty() && results().newest().value > 0) {
        ++results().newest().value;
        return false;
    }
    r.value = 1;
    return true;
}

} // namespace coil::io
