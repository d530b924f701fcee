#pragma once

#include "support/run.hpp"
#include "uring/backends.hpp"
#include "uring/random_entries_plan.hpp"

#include <coil/uring/buffer_ring.hpp>
#include <coil/uring/registered_files.hpp>

#include <array>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

// The ring and the resources with which random entries are executed, and the record of the results.

namespace uring_test::random_entries {

inline descriptor listening() {
    descriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(fd, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(fd, 8) != 0) {
        throw std::system_error(errno, std::generic_category(), "listen");
    }
    return fd;
}

/// Closes without TIME_WAIT, and sends without delay.
inline void be_quick(int fd) {
    const ::linger at_once{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const int no_delay = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
}

inline void connect_to(int from, int to) {
    ::sockaddr_in at{};
    ::socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<::sockaddr*>(&at);
    if (::getsockname(to, address, &size) != 0 || ::connect(from, address, size) != 0) {
        throw std::system_error(errno, std::generic_category(), "connect");
    }
}

inline descriptor client_of(int listener) {
    descriptor client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    connect_to(client, listener);
    be_quick(client);
    return client;
}

/// A TCP connection: what it reports about its data is the same on all versions of Linux.
struct tcp_pair {
    tcp_pair() {
        const descriptor listener = listening();
        a = client_of(listener);
        b = descriptor{::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)};
        be_quick(b);
    }
    descriptor a;
    descriptor b;
};

struct datagram_pair {
    datagram_pair() {
        for (descriptor* const one : {&a, &b}) {
            *one = descriptor{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
            ::sockaddr_in at{};
            at.sin_family = AF_INET;
            at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            if (::bind(*one, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) != 0) {
                throw std::system_error(errno, std::generic_category(), "bind");
            }
        }
        connect_to(a, b);
        connect_to(b, a);
    }
    descriptor a;
    descriptor b;
};

/// Whether all other threads of this process sleep. Those are the worker threads of io_uring and of
/// the epoll backend: a thread that has work left, or has not reported all of it, is runnable.
inline bool others_sleep() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        const pid_t thread = std::stoi(entry.path().filename());
        const char state = thread != ::gettid() ? coil_test::state_of_thread(thread) : 'S';
        if (state != 'S' && state != '\0') {
            return false;
        }
    }
    return true;
}

/// A ring with its descriptors and memory, on one backend.
class room {
public:
    room(std::unique_ptr<backend> k, std::uint32_t setup_flags, std::chrono::milliseconds patience)
        : patience_(patience), ring_(64, parameters(setup_flags), std::move(k)),
          table_(ring_, slots), rings_{buffer_ring(ring_, ring_group, buffers),
                                       buffer_ring(ring_, incremental_group, buffers, true)} {
        const std::array<int, 2> first{pipe_.in, stream_.a};
        table_.update(0, first);
        for (int i = 0; i < 3; ++i) {
            refill();
        }
        if (::write(regular_, "0123456789abcdefghijklmnopqrstuvwxyz", 36) != 36) {
            throw std::system_error(errno, std::generic_category(), "memfd");
        }
        for (std::size_t i = 0; i < data_.size(); ++i) {
            written_[i] = static_cast<char>('a' + i % 26);
            data_[i] = '-';
        }
    }

    room(const room&) = delete;
    room& operator=(const room&) = delete;
    /// Ends the pending entries: closing the ring would start the entries that are linked to them,
    /// and those would use the descriptors of the next room, which have the same numbers.
    ~room() {
        for (const descriptor* const one : {&stream_.a, &stream_.b, &datagram_.a, &datagram_.b,
                                            &local_.a, &local_.b, &listener_}) {
            ::shutdown(*one, SHUT_RDWR);
        }
        pipe_.out = descriptor{};
        other_.out = descriptor{};
        try {
            collect();
        } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
        }
    }

    /// Returns the results of submit(), the completions of each entry in their order, and data.
    std::vector<std::string> submit(const batch& b) {
        std::vector<std::string> told;
        for (const plan& p : b) {
            if (p.refills) {
                refill();
            }
            if (p.connects && clients_.size() < 8) {
                clients_.push_back(client_of(listener_));
            }
            sqe* const s = ring_.acquire();
            *s = p.entry;
            if (p.file >= 0) {
                s->fd = fd_of(p.file);
            }
            if (p.to_itself) {
                s->fd = ring_.native_handle();
            }
            if (p.area >= 0) {
                const auto op = static_cast<opcode>(s->opcode);
                const bool out = op == opcode::write || op == opcode::send || op == opcode::sendmsg;
                s->addr = reinterpret_cast<std::uintptr_t>(
                    &(out ? written_ : data_)[static_cast<std::size_t>(p.area) * area_size]);
            }
            if (p.is_message) {
                describe(*s, p);
            }
            if (p.is_time) {
                s->addr = reinterpret_cast<std::uintptr_t>(&hour_);
            }
            if (&p == &b.back()) { // Linux hands a chain that is left open to a worker thread
                s->flags &= static_cast<std::uint8_t>(~(sqe_flag::io_link | sqe_flag::io_hardlink));
            }
            ring_.commit(s);
        }
        while (ring_.sq_ready() != 0) {
            const int n = ring_.submit();
            told.push_back("submitted " + std::to_string(n));
            if (n <= 0) {
                break;
            }
        }
        const std::vector<cqe> completions = collect();
        std::map<std::uint64_t, std::string> of_each;
        for (const cqe& c : completions) {
            std::ostringstream text;
            text << ' ' << c.res << '/' << std::hex << c.flags;
            of_each[c.user_data] += text.str();
        }
        for (const auto& [user_data, text] : of_each) {
            told.push_back(std::to_string(user_data) + ":" + text);
        }
        if (!b.empty() && ends_others(b.back())) {
            told.push_back(order(completions, b));
        }
        told.push_back("data " + std::string(data_.begin(), data_.end()));
        told.push_back("buffers " + std::string(buffer_data_.begin(), buffer_data_.end()));
        told.push_back(messages_told());
        return told;
    }

private:
    static params parameters(std::uint32_t setup_flags) {
        params p{};
        p.flags = setup_flags;
        return p;
    }
    int fd_of(int file) const {
        const std::array<int, files> all{pipe_.in,  pipe_.out, other_.in,   other_.out,
                                         stream_.a, stream_.b, datagram_.a, datagram_.b,
                                         local_.a,  local_.b,  listener_,   regular_};
        return all[static_cast<std::size_t>(file)];
    }
    /// Makes a message header for the data of the entry, which is given as for send or recv.
    void describe(sqe& s, const plan& p) {
        message& m = messages_.emplace_back();
        m.part = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(s.addr)), s.len};
        m.header.msg_iov = &m.part;
        m.header.msg_iovlen = 1;
        const bool in = static_cast<opcode>(s.opcode) == opcode::recvmsg;
        const bool multishot = (s.ioprio & recvsend_flag::recv_multishot) != 0;
        if (in && !multishot) {
            m.header.msg_name = m.name.data();
            m.header.msg_namelen = static_cast<::socklen_t>(m.name.size());
        }
        if (in ? !multishot && p.area % 2 == 0 : p.passes) {
            m.header.msg_control = m.control.data();
            m.header.msg_controllen = in ? m.control.size() : CMSG_SPACE(sizeof(int));
        }
        if (p.passes) {
            const int sent = pipe_.in;
            ::cmsghdr* const c = CMSG_FIRSTHDR(&m.header);
            *c = {CMSG_LEN(sizeof sent), SOL_SOCKET, SCM_RIGHTS};
            std::memcpy(CMSG_DATA(c), &sent, sizeof sent);
        }
        m.is_in = in;
        s.addr = reinterpret_cast<std::uintptr_t>(&m.header);
        s.len = 1;
    }

    /// The results in the message headers; closes the descriptors that were received.
    std::string messages_told() {
        std::ostringstream text;
        text << "messages";
        for (message& m : messages_) {
            text << ' ' << m.header.msg_controllen << '/' << std::hex << m.header.msg_flags
                 << std::dec << '/' << m.header.msg_namelen;
            if (m.is_in && m.header.msg_controllen >= CMSG_LEN(sizeof(int)) && !m.closed) {
                ::cmsghdr* const c = CMSG_FIRSTHDR(&m.header);
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
                    int fd = -1;
                    std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
                    text << (::fcntl(fd, F_GETFD) >= 0 ? " descriptor" : " no descriptor");
                    ::close(fd);
                    m.closed = true;
                }
            }
        }
        return text.str();
    }

    /// Adds a buffer to each buffer ring.
    void refill() {
        for (std::size_t i = 0; i < rings_.size(); ++i) {
            const auto id = static_cast<std::uint16_t>(refills_ % buffers);
            rings_[i].add(&buffer_data_[(i * buffers + id) * buffer_size], buffer_size, id);
            rings_[i].publish();
        }
        ++refills_;
    }

    /// For each completion of an entry of an earlier batch: whether it arrived before or after the
    /// completion of the entry that ends others.
    static std::string order(const std::vector<cqe>& completions, const batch& b) {
        const std::uint64_t canceller = b.back().entry.user_data;
        const std::uint64_t first = b.front().entry.user_data;
        std::map<std::uint64_t, std::string> places;
        bool seen = false;
        for (const cqe& c : completions) {
            seen |= c.user_data == canceller;
            if (c.user_data < first) {
                places[c.user_data] = seen ? " after" : " before";
            }
        }
        std::string text = "order";
        for (const auto& [user_data, place] : places) {
            text += ' ' + std::to_string(user_data) + place;
        }
        return text;
    }

    /// Collects completions until three waits in succession find none, each begun while all other
    /// threads slept: on a loaded machine, a worker thread may be delayed for any length of time.
    std::vector<cqe> collect() {
        std::vector<cqe> completions;
        const auto end = std::chrono::steady_clock::now() + 1min;
        for (int quiet = 0; quiet < 3;) {
            if (std::chrono::steady_clock::now() > end) {
                throw std::runtime_error("the entries do not come to rest");
            }
            bool busy = !others_sleep();
            const int error = ring_.wait(busy ? 1ms : quiet == 0 ? patience_ : 0ms);
            // Work that io_uring still does for a closed ring may interrupt a wait.
            busy |= error == -EINTR;
            while (ring_.has_completions()) {
                completions.push_back(*ring_.peek());
                ring_.advance();
                busy = true;
            }
            quiet = busy ? 0 : quiet + 1;
        }
        return completions;
    }

    std::chrono::milliseconds patience_; // for what the kernel does outside of these threads
    pipe_pair pipe_;
    pipe_pair other_;
    tcp_pair stream_;
    datagram_pair datagram_;
    stream_pair local_;
    descriptor listener_{listening()};
    std::vector<descriptor> clients_;
    descriptor regular_{::memfd_create("regular", MFD_CLOEXEC)};
    std::array<char, std::size_t{areas} * area_size> data_{};
    std::array<char, std::size_t{areas} * area_size> written_{};
    static constexpr unsigned buffers = 8; // per ring
    static constexpr unsigned buffer_size = 8;
    std::array<char, std::size_t{2} * buffers * buffer_size> buffer_data_ = filled();
    static constexpr std::array<char, std::size_t{2} * buffers * buffer_size> filled() {
        std::array<char, std::size_t{2} * buffers * buffer_size> all{};
        all.fill('.');
        return all;
    }
    unsigned refills_ = 0;
    struct message {
        ::msghdr header{};
        ::iovec part{};
        std::array<std::byte, sizeof(::sockaddr_in)> name{};
        alignas(::cmsghdr) std::array<std::byte, 64> control{};
        bool is_in = false;
        bool closed = false;
    };
    std::deque<message> messages_;
    coil::uring::timespec hour_{3600, 0};
    ring ring_;
    registered_files table_;
    std::array<buffer_ring, 2> rings_;
};

} // namespace uring_test::random_entries
