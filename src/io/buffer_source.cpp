#include <coil/io/buffer_source.hpp>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace coil::detail {

namespace {

/// Whether a piece of data that does not fit is simply followed by the rest. Not so for datagrams,
/// and for what reads as records (inotify, tun, ...).
bool is_byte_stream(io::descriptor fd) noexcept {
    struct ::stat file{};
    if (fd.is_direct() || ::fstat(fd.number(), &file) != 0) {
        return false; // only the ring knows it
    }
    if (S_ISFIFO(file.st_mode)) {
        return (::fcntl(fd.number(), F_GETFL) & O_DIRECT) == 0;
    }
    int type = 0;
    ::socklen_t size = sizeof type;
    return S_ISSOCK(file.st_mode) &&
           ::getsockopt(fd.number(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

} // namespace

buffer_source::buffer_source(buffer_pool& pool, io::descriptor fd, bool cuttable) noexcept
    : pool_(buffer_pool_state::of(pool)), fd_(fd), cuttable_(cuttable) {
    pool_.retain();
}

buffer_source::~buffer_source() { pool_.release(); }

void buffer_source::close() noexcept {
    multishot_source::close();
    if (std::exchange(starving_, false)) {
        pool_.forget(idle_node());
    }
    if (own_ != none) {
        pool_.put_free(std::exchange(own_, none)); // its request was never submitted
    }
}

bool buffer_source::feed() noexcept {
    starving_ = false;
    if (!is_waited_for()) {
        return false;
    }
    resume();
    return true;
}

int buffer_source::prepare(uring::sqe& request) noexcept {
    if (starving_) {
        return wait;
    }
    if (cuttable_ && !std::exchange(looked_, true)) {
        cuttable_ = is_byte_stream(fd_);
    }
    if (const int answer = pool_.prepare(home(), cuttable_, idle_node()); answer != 0) {
        starving_ = answer > 0;
        return answer > 0 ? wait : answer;
    }
    if (pool_.has_ring()) {
        request = request_on(fd_, group_request(pool_.group()));
    } else {
        own_ = pool_.take_free();
        request = request_on(fd_, own_request(pool_.address(own_), pool_.buffer_size()));
    }
    return 0;
}

bool buffer_source::arrived(multishot_result& r) noexcept {
    std::uint16_t id = std::exchange(own_, none);
    bool last = true;
    if (id != none) {
        if (r.value >= 0) {
            r.value = own_filled(pool_.address(id), r.value);
        }
        if (r.value <= 0) {
            pool_.put_free(id);
            id = none;
        }
    } else if ((r.flags & uring::cqe_flag::buffer) != 0) {
        id = static_cast<std::uint16_t>(r.flags >> uring::cqe_flag::buffer_shift);
        last = (r.flags & uring::cqe_flag::buf_more) == 0;
    }
    if (id != none) {
        refused_once_ = false;
        const auto size = static_cast<std::uint32_t>(r.value > 0 ? r.value : 0);
        const std::uint32_t begin = pool_.filled(id, size, last);
        if (size > 0) {
            r.extra = multishot_result::buffer_mark | (std::uint64_t{id} << 32) | begin;
        } else {
            pool_.put_free(id); // the end of a file takes a buffer with it
        }
        pool_.feed_starved();
        return true;
    }
    if (r.value == -ENOBUFS && (pool_.available() == 0 || !std::exchange(refused_once_, true))) {
        return false; // the request is submitted again when there is a buffer
    }
    refused_once_ = false;
    pool_.feed_starved();
    return true;
}

void buffer_source::discard(const multishot_result& r) noexcept {
    if (r.has_buffer()) {
        const buffer_lease dropped = take_lease(r);
    }
}

buffer_lease buffer_source::take_lease(const multishot_result& r) noexcept {
    const auto id = static_cast<std::uint16_t>(r.extra >> 32);
    pool_.retain();
    return {pool_, pool_.address(id) + static_cast<std::uint32_t>(r.extra),
            static_cast<std::uint32_t>(r.value), id};
}

} // namespace coil::detail
