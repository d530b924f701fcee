#include <coil/context/detail/perform.hpp>
#include <coil/io/detail/buffer_source.hpp>
#include <coil/uring/prep.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace coil::detail {

namespace {

bool is_stream_pipe(int fd) noexcept {
    if (current_world() != nullptr) { // its pipes are all byte streams
        struct ::statx file{};
        return perform(uring::prep::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &file)) == 0 &&
               S_ISFIFO(file.stx_mode);
    }
    struct ::stat file{};
    return ::fstat(fd, &file) == 0 && S_ISFIFO(file.st_mode) &&
           (::fcntl(fd, F_GETFL) & O_DIRECT) == 0; // otherwise a pipe in packet mode
}

int socket_option(int fd, int name) noexcept {
    int value = -1;
    const int size = perform(uring::prep::getsockopt(fd, SOL_SOCKET, name, &value, sizeof value));
    return size >= 0 ? value : -1;
}

} // namespace

buffer_source::buffer_source(buffer_pool& pool, io::descriptor fd, bool cuttable) noexcept
    : pool_(buffer_pool_state::of(pool)), fd_(fd), cuttable_(cuttable) {
    pool_.retain();
}

buffer_source::~buffer_source() { pool_.release(); }

void buffer_source::close() noexcept {
    // The kernel holds no request, but the pool's queue and its waiter belong to the loop.
    if (is_waiting_ && !owner_loop().on_owner_thread() && owner_loop().is_running()) {
        end_with_misuse(
            "a multishot stream that waits for a buffer was destroyed on a thread other "
            "than its context's.");
    }
    multishot_source::close();
    if (std::exchange(is_waiting_, false)) {
        pool_.forget(idle_node());
    }
    if (own_ != none) {
        pool_.put_free(std::exchange(own_, none)); // its request was never submitted
    }
}

/// Determines whether data that does not fit into the rest of a buffer continues in the next one.
/// This holds for byte streams only: not for datagrams, nor for files that are read in records
/// (inotify, tun, ...). The type of a direct descriptor is unknown outside the ring.
void buffer_source::check_descriptor() noexcept {
    is_checked_ = true;
    if (fd_.is_direct()) {
        cuttable_ = false;
        return;
    }
    const int type = socket_option(fd_.number(), SO_TYPE);
    if (type < 0) {
        cuttable_ = cuttable_ && is_stream_pipe(fd_.number());
    } else if (type != SOCK_STREAM) {
        cuttable_ = false;
        says_nobufs_ = socket_option(fd_.number(), SO_DOMAIN) == AF_NETLINK;
    }
}

bool buffer_source::grant(std::uint32_t round) noexcept {
    is_waiting_ = false;
    if (!is_waited_for()) {
        return false;
    }
    granted_in_ = round;
    resume();
    return true;
}

int buffer_source::prepare(prepared_sqe& request) noexcept {
    if (is_waiting_) {
        return deferred;
    }
    if (!is_checked_) {
        check_descriptor();
    }
    if (const int error = pool_.prepare(owner_loop(), cuttable_, idle_node(), demand_);
        error != 0) {
        is_waiting_ = error > 0;
        return error > 0 ? deferred : error;
    }
    demand_ = buffer_pool_state::buffer_demand::none;
    if (pool_.has_ring()) {
        request = request_on(fd_, group_request(pool_.group()));
    } else {
        own_ = pool_.take_free();
        request = request_on(fd_, own_request(pool_.address(own_), pool_.buffer_size()));
    }
    return 0;
}

/// Whether the request ended with -ENOBUFS because the pool had no buffer, not because the socket
/// reported it.
///
/// If the pool has no buffer now, that is the reason. Completions arrive in the order in which
/// requests consumed buffers, so a netlink socket that gets the error while the pool has buffers
/// has lost messages. Any other descriptor most likely found the pool empty, and a buffer was
/// returned since; but if the error repeats, it comes from the descriptor.
bool buffer_source::lacked_a_buffer(int result) noexcept {
    constexpr std::uint8_t backoff = 100;
    return result == -ENOBUFS && pool_.has_ring() &&
           (pool_.available() == 0 || (!says_nobufs_ && ++refusals_ < backoff));
}

bool buffer_source::arrived(multishot_result& r) noexcept {
    using buffer_demand = buffer_pool_state::buffer_demand;
    const std::uint32_t granted_in = std::exchange(granted_in_, 0);
    if (granted_in != 0) [[unlikely]] {
        pool_.on_completion(granted_in);
    }
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
    } else if (lacked_a_buffer(r.value)) {
        demand_ = granted_in != 0 ? buffer_demand::oldest : buffer_demand::some;
        return false; // the request is submitted again when a buffer is available
    }
    refusals_ = 0;
    if (id != none) {
        const auto size = static_cast<std::uint32_t>(r.value > 0 ? r.value : 0);
        const std::uint32_t begin = pool_.filled(id, size, last);
        if (size > 0) {
            r.extra = multishot_result::buffer_mark | (std::uint64_t{id} << 32) | begin;
        } else {
            pool_.put_free(id); // an end of file consumes a buffer as well
        }
    }
    pool_.grant_waiting();
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
    // With MSG_TRUNC the result is the datagram's length, which may exceed the buffer's.
    const auto begin = static_cast<std::uint32_t>(r.extra);
    const auto room = static_cast<std::uint32_t>(pool_.buffer_size()) - begin;
    return {pool_, pool_.address(id) + begin, std::min(static_cast<std::uint32_t>(r.value), room),
            id};
}

} // namespace coil::detail
