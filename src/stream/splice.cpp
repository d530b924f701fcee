#include "piece_sizes.hpp"

#include <coil/context/detail/perform.hpp>
#include <coil/context/detail/yield_awaiter.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/this_task.hpp>
#include <coil/io/file.hpp>
#include <coil/io/owned_descriptor.hpp>
#include <coil/io/socket.hpp>
#include <coil/stream/detail/progress.hpp>
#include <coil/stream/detail/splice.hpp>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace coil::detail {

namespace {

/// A piece below this size costs less to copy than to splice.
constexpr std::size_t small_piece = std::size_t{8} << 10;
/// This number of small pieces in a row ends splicing.
constexpr int small_pieces = 8;

[[noreturn]] void fail(long error, const char* what) {
    throw std::system_error(static_cast<int>(-error), std::generic_category(), what);
}

bool is_stream_socket(int fd) noexcept {
    int type = 0;
    return perform(uring::prep::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, sizeof type)) >= 0 &&
           type == SOCK_STREAM;
}

long splice_now(int from, int to, std::size_t size) noexcept {
    const ::ssize_t n =
        ::splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    return n < 0 ? -errno : n;
}

/// Blocks SIGPIPE on this thread, because splice(2) has no flag that prevents it, and discards one
/// that was raised meanwhile.
class without_sigpipe {
public:
    without_sigpipe() noexcept {
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
        ::sigset_t pending{};
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    }
    without_sigpipe(const without_sigpipe&) = delete;
    without_sigpipe& operator=(const without_sigpipe&) = delete;
    ~without_sigpipe() {
        const std::timespec no_time{};
        while (!was_pending_ && ::sigtimedwait(&pipe_, nullptr, &no_time) == SIGPIPE) {
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

private:
    ::sigset_t pipe_{};
    ::sigset_t before_{};
    bool was_pending_ = false;
};

/// Waits until the call that returned -EAGAIN may be repeated.
task<> ready(int fd, unsigned events) {
    if (const int result = co_await io::poll(fd, events); result < 0) {
        fail(result, "coil: poll");
    }
}

task<> send_whole(int to, const_buffer data, spliced_pair& pair) {
    while (data.size() > 0) {
        const int n = co_await io::send(to, data);
        if (n >= 0) {
            pair.on_moved();
            data = data.drop(static_cast<std::size_t>(n));
        } else if (n == -EAGAIN) {
            co_await ready(to, POLLOUT);
        } else {
            fail(n, "coil: copy");
        }
    }
}

/// Copies in one direction.
class splicer {
public:
    splicer(int from, int to, spliced_pair& pair) noexcept : from_(from), to_(to), pair_(pair) {}

    task<std::uint64_t> run() {
        while (co_await copy_pieces()) {
            co_await splice_pieces();
        }
        co_return total_;
    }

private:
    /// Receives and sends. Returns true when data is worth splicing, false at the end.
    task<bool> copy_pieces() {
        const auto memory = std::make_unique_for_overwrite<std::byte[]>(buffer_size);
        for (;;) {
            const int n = co_await io::recv(from_, {memory.get(), buffer_size});
            if (n == -EAGAIN) {
                co_await ready(from_, POLLIN);
                continue;
            }
            if (n < 0) {
                fail(n, "coil: copy");
            }
            if (n == 0) {
                co_return false;
            }
            pair_.on_moved();
            co_await send_whole(to_, {memory.get(), n}, pair_);
            total_ += static_cast<std::uint64_t>(n);
            if (static_cast<std::size_t>(n) == buffer_size && may_splice_ && open_pipe()) {
                co_return true;
            }
        }
    }

    /// Splices while enough data arrives. When splice(2) stops, recv() determines the reason:
    /// urgent data ends a splice(2) just like the end of the stream. The pipe is closed before
    /// waiting for more data, so that idle connections have none.
    task<> splice_pieces() {
        for (int small = 0; small < small_pieces;) {
            co_await yield_awaiter();
            if ((co_await this_task::stop_token()).stop_requested()) {
                fail(-ECANCELED, "coil: copy");
            }
            const long n = splice_now(from_, in_.native_handle(), piece_size);
            if (n == 0 || n == -EAGAIN) {
                break;
            }
            if (n == -EINVAL) {
                may_splice_ = false;
                break;
            }
            if (n < 0) {
                fail(n, "coil: copy");
            }
            pair_.on_moved();
            co_await empty_pipe(static_cast<std::size_t>(n));
            total_ += static_cast<std::uint64_t>(n);
            small = static_cast<std::size_t>(n) < small_piece ? small + 1 : 0;
        }
        in_ = {};
        out_ = {};
    }

    task<> empty_pipe(std::size_t rest) {
        while (rest > 0) {
            long n = 0;
            {
                const without_sigpipe here;
                n = splice_now(out_.native_handle(), to_, rest);
            }
            if (n > 0) {
                pair_.on_moved();
                rest -= static_cast<std::size_t>(n);
            } else if (n == -EAGAIN) {
                co_await ready(to_, POLLOUT);
            } else {
                fail(n == 0 ? -EIO : n, "coil: copy");
            }
        }
    }

    /// Returns false if there is no pipe; copying then continues.
    bool open_pipe() noexcept {
        int fds[2];
        if (!pair_.make_nonblocking() || ::pipe2(fds, O_CLOEXEC) != 0) {
            return false;
        }
        in_ = io::owned_descriptor(fds[1]);
        out_ = io::owned_descriptor(fds[0]);
        // If the user's limits are exceeded, a pipe is too small to be worth it.
        if (::fcntl(fds[1], F_SETPIPE_SZ, piece_size) < 0 &&
            ::fcntl(fds[1], F_GETPIPE_SZ) < static_cast<int>(buffer_size)) {
            in_ = {};
            out_ = {};
            may_splice_ = false;
            return false;
        }
        return true;
    }

    int from_;
    int to_;
    spliced_pair& pair_;
    io::owned_descriptor in_;
    io::owned_descriptor out_;
    std::uint64_t total_ = 0;
    bool may_splice_ = true;
};

} // namespace

spliced_pair::~spliced_pair() {
    for (int i = 0; i < 2; ++i) {
        if (changed_[i]) {
            ::fcntl(fds_[i], F_SETFL, ::fcntl(fds_[i], F_GETFL) & ~O_NONBLOCK);
        }
    }
}

bool spliced_pair::possible() const noexcept {
    return current_world() == nullptr && is_stream_socket(fds_[0]) && is_stream_socket(fds_[1]);
}

bool spliced_pair::make_nonblocking() noexcept {
    for (int i = 0; i < 2; ++i) {
        const int flags = ::fcntl(fds_[i], F_GETFL);
        if (flags < 0) {
            return false;
        }
        if ((flags & O_NONBLOCK) == 0) {
            if (::fcntl(fds_[i], F_SETFL, flags | O_NONBLOCK) != 0) {
                return false;
            }
            changed_[i] = true;
        }
    }
    return true;
}

void spliced_pair::on_moved() noexcept {
    if (moved_ != nullptr) {
        moved_->moved();
    }
}

task<std::uint64_t> splice_copy(int from, int to, spliced_pair& pair) {
    splicer direction(from, to, pair);
    co_return co_await direction.run();
}

} // namespace coil::detail
