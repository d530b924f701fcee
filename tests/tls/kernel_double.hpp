#pragma once

#include "support/running_backend.hpp"
#include "tls/record_writer.hpp"

#include <coil/context/options.hpp>
#include <coil/uring/backend.hpp>
#include <coil/uring/prep.hpp>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tls_test {

/// What a kernel_double is to do, and what it has done.
struct kernel_plan {
    static constexpr long unlimited = 1L << 40;
    int attach_error = 0;                    // of TCP_ULP
    int keys_error = 0;                      // of TLS_TX
    std::atomic<bool> break_sending = false; // sends fail with -EPIPE from now on
    std::atomic<long> window = unlimited;    // so many more bytes of data are encrypted and sent
    std::atomic<int> splices = 0;
    std::atomic<int> sockets = 0; // that have encrypted
    std::map<int, int> messages;  // by type, of records with a type
};

/// A socket whose plain data is encrypted: the program's sends are redirected to one end of a
/// socketpair; a thread reads the other end, encrypts, and sends to the real socket.
class encrypted_socket {
public:
    encrypted_socket(int fd, const void* keys, std::shared_ptr<kernel_plan> plan)
        : to_(::fcntl(fd, F_DUPFD_CLOEXEC, 0)), plan_(std::move(plan)), writer_(keys) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            std::abort();
        }
        plain_in_ = ends[0];
        plain_out_ = ends[1];
        thread_ = std::thread([this] { run(); });
    }
    encrypted_socket(const encrypted_socket&) = delete;
    encrypted_socket& operator=(const encrypted_socket&) = delete;
    ~encrypted_socket() {
        stop_ = true;
        thread_.join();
        ::close(to_);
        ::close(plain_in_);
        ::close(plain_out_);
    }

    /// Where the program's data goes.
    [[nodiscard]] int plain_in() const noexcept { return plain_in_; }

    /// The next `size` bytes are a record of this type.
    void expect_record(unsigned char type, std::size_t size) {
        const std::lock_guard held(lock_);
        drain(kernel_plan::unlimited);
        type_ = type;
        typed_ = size;
    }

private:
    void run() {
        for (;;) {
            bool more = false;
            {
                const std::lock_guard held(lock_);
                drain(plan_->window);
                more = !ready_.empty();
            }
            // The timeout notices stop_, a larger window, and records that expect_record() has
            // made.
            ::pollfd wait[] = {{plan_->window > 0 ? plain_out_ : -1, POLLIN, 0},
                               {more ? to_ : -1, POLLOUT, 0}};
            ::poll(wait, 2, 5);
            const std::lock_guard held(lock_);
            const ::ssize_t n = ready_.empty() ? 0
                                               : ::send(to_, ready_.data(), ready_.size(),
                                                        MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n > 0) {
                ready_.erase(0, static_cast<std::size_t>(n));
            }
            if (stop_ && (ready_.empty() || (n < 0 && errno != EAGAIN))) {
                return;
            }
        }
    }

    /// Encrypts what the program has sent, at most so many bytes.
    void drain(long window) {
        char buf[16384]; // the largest record
        while (window > 0) {
            const auto room = std::min(static_cast<std::size_t>(window), sizeof buf);
            const std::size_t most = typed_ > 0 ? std::min(typed_, room) : room;
            const ::ssize_t n = ::recv(plain_out_, buf, most, MSG_DONTWAIT);
            if (n <= 0) {
                return;
            }
            const auto size = static_cast<std::size_t>(n);
            ready_ += writer_.record(typed_ > 0 ? type_ : 23, {buf, size});
            typed_ -= std::min(typed_, size);
            window -= n;
            plan_->window -= n;
        }
    }

    int to_;
    std::shared_ptr<kernel_plan> plan_;
    int plain_in_ = -1;
    int plain_out_ = -1;
    record_writer writer_;
    std::mutex lock_;
    std::string ready_; // encrypted, not sent yet
    unsigned char type_ = 0;
    std::size_t typed_ = 0;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

/// The backend on which the tests run, with the TLS of a kernel: it takes TCP_ULP and TLS_TX, and
/// encrypts what is sent and spliced to such a socket. It works on the entries that the program
/// submits, so the code under test is the same as on a kernel with TLS.
class kernel_double final : public coil::uring::backend {
public:
    explicit kernel_double(std::shared_ptr<kernel_plan> plan) : plan_(std::move(plan)) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
            std::abort();
        }
        broken_ = ends[0];
        ::close(ends[1]);
    }
    ~kernel_double() override { ::close(broken_); }

    static coil::io_context_options options(const std::shared_ptr<kernel_plan>& plan) {
        coil::io_context_options o;
        o.make_backend = [plan] { return std::make_unique<kernel_double>(plan); };
        return o;
    }

    int setup(unsigned entries, coil::uring::params& p, mapping& m) noexcept override {
        const int result = behind_->setup(entries, p, m);
        params_ = p;
        mapping_ = m;
        return result;
    }
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t size) noexcept override {
        const std::uint32_t end = word(params_.sq_off.head) + to_submit;
        for (; seen_ != end; ++seen_) {
            const std::uint32_t index = seen_ & word(params_.sq_off.ring_mask);
            redirect(mapping_.sqes[(&raw(params_.sq_off.array))[index]]);
        }
        return behind_->enter(to_submit, min_complete, flags, arg, size);
    }
    int do_register(coil::uring::register_op op, void* arg, unsigned count) noexcept override {
        return op == coil::uring::register_op::resize_rings ? -EINVAL
                                                            : behind_->do_register(op, arg, count);
    }
    int perform(const coil::uring::sqe& s) noexcept override {
        if (static_cast<coil::uring::opcode>(s.opcode) != coil::uring::opcode::uring_cmd ||
            s.cmd_op != coil::uring::socket_command::setsockopt) {
            return behind_->perform(s);
        }
        const auto* const value = reinterpret_cast<const void*>(s.optval);
        constexpr unsigned tcp_ulp = 31;
        constexpr unsigned level_tls = 282;
        if (s.sockopt.level == IPPROTO_TCP && s.sockopt.optname == tcp_ulp) {
            return std::string_view(static_cast<const char*>(value), s.optlen) == "tls"
                       ? plan_->attach_error
                       : -ENOENT;
        }
        if (s.sockopt.level != level_tls) {
            return behind_->perform(s);
        }
        if (s.sockopt.optname != 1 || s.optlen != record_writer::size_of(value)) {
            return -EINVAL;
        }
        if (plan_->keys_error == 0) {
            sockets_[s.fd] = {inode(s.fd), std::make_unique<encrypted_socket>(s.fd, value, plan_)};
            ++plan_->sockets;
        }
        return plan_->keys_error;
    }
    std::chrono::steady_clock::time_point now() noexcept override { return behind_->now(); }
    [[nodiscard]] int native_handle() const noexcept override { return behind_->native_handle(); }
    [[nodiscard]] bool posts_asynchronously() const noexcept override {
        return behind_->posts_asynchronously();
    }
    [[nodiscard]] std::string_view name() const noexcept override { return "kernel_double"; }

private:
    struct known_socket {
        ::ino_t inode = 0; // the descriptor may have been closed, and its number reused
        std::unique_ptr<encrypted_socket> socket;
    };

    static ::ino_t inode(int fd) noexcept {
        struct ::stat s{};
        return ::fstat(fd, &s) == 0 ? s.st_ino : 0;
    }
    std::uint32_t& raw(std::uint32_t offset) const noexcept {
        return *reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(mapping_.sq) + offset);
    }
    std::uint32_t word(std::uint32_t offset) const noexcept {
        return std::atomic_ref<std::uint32_t>(raw(offset)).load(std::memory_order_acquire);
    }

    void redirect(coil::uring::sqe& s) noexcept {
        using coil::uring::opcode;
        const auto op = static_cast<opcode>(s.opcode);
        if (op != opcode::send && op != opcode::sendmsg && op != opcode::write &&
            op != opcode::splice) {
            return;
        }
        const auto found = sockets_.find(s.fd);
        if (found == sockets_.end() || found->second.inode != inode(s.fd)) {
            return;
        }
        if (plan_->break_sending) {
            s.fd = broken_;
            return;
        }
        plan_->splices += op == opcode::splice ? 1 : 0;
        if (op == opcode::sendmsg) {
            auto* const message = reinterpret_cast<::msghdr*>(s.addr);
            const ::cmsghdr* const control = CMSG_FIRSTHDR(message);
            if (control != nullptr && control->cmsg_level == 282 && control->cmsg_type == 1) {
                const unsigned char type = *CMSG_DATA(control);
                ++plan_->messages[type];
                found->second.socket->expect_record(type, message->msg_iov->iov_len);
            }
        }
        s.fd = found->second.socket->plain_in();
    }

    std::shared_ptr<kernel_plan> plan_;
    std::unique_ptr<backend> behind_ = coil_test::make_running_backend();
    coil::uring::params params_{};
    mapping mapping_{};
    std::uint32_t seen_ = 0; // entries before this position have been looked at
    int broken_ = -1;        // a socket whose sends fail
    std::map<int, known_socket> sockets_;
};

} // namespace tls_test
