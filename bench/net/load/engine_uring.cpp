#include "mini_ring.hpp"
#include "session.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/socket.h>

// The client that uses the least CPU, so that the server is the bottleneck: multishot receives,
// sends that post no completion, registered descriptors, and replies awaited in batches.

namespace load {
namespace {

constexpr std::uint64_t send_mark = std::uint64_t{1}
                                    << 32; // or-ed with a connection's index in user_data

class ring_client {
public:
    ring_client(session& s, mini_ring& ring) : session_(s), ring_(ring) {}

    void run() {
        const auto count = static_cast<unsigned>(session_.connections().size());
        for (unsigned i = 0; i < count; ++i) {
            arm(i);
            send_requests(i, session_.settings().pipeline, now_ns());
        }
        const unsigned asked = session_.settings().batch;
        const unsigned batch = asked != 0 ? std::min(asked, count) : std::clamp(count / 4, 1u, 8u);
        std::uint64_t now = 0;
        do {
            ring_.enter(batch, 5'000'000);
            now = now_ns();
            ring_.for_each_cqe([&](const io_uring_cqe& cqe) { complete(cqe, now); });
            send_due(now);
        } while (!session_.over(now));
    }

private:
    void arm(unsigned i) {
        io_uring_sqe& sqe = ring_.next();
        sqe.opcode = IORING_OP_RECV;
        sqe.fd = static_cast<int>(i);
        sqe.flags = IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
        sqe.ioprio = IORING_RECV_MULTISHOT;
        sqe.user_data = i;
    }

    // Sends the requests that the handled completions have made due, with one send for each
    // connection.
    void send_due(std::uint64_t now) {
        for (const unsigned i : due_) {
            send_requests(i, std::exchange(due_of_[i], 0), now);
        }
        due_.clear();
    }

    void send_requests(unsigned i, unsigned count, std::uint64_t now) {
        const std::string_view request = session_.requests(count);
        io_uring_sqe& sqe = ring_.next();
        sqe.opcode = IORING_OP_SEND;
        sqe.fd = static_cast<int>(i);
        sqe.flags = IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS;
        sqe.addr = reinterpret_cast<std::uint64_t>(request.data());
        sqe.len = static_cast<unsigned>(request.size());
        sqe.msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
        sqe.user_data = send_mark | i;
        session_.sent(session_.connections()[i], count, now);
    }

    void complete(const io_uring_cqe& cqe, std::uint64_t now) {
        const auto i = static_cast<unsigned>(cqe.user_data);
        connection& c = session_.connections()[i];
        if ((cqe.user_data & send_mark) != 0 || (cqe.res <= 0 && cqe.res != -ENOBUFS)) {
            session_.lost(c); // sends post a completion only on failure
            return;
        }
        unsigned again = 0;
        if ((cqe.flags & IORING_CQE_F_BUFFER) != 0) {
            const unsigned id = cqe.flags >> IORING_CQE_BUFFER_SHIFT;
            again = session_.received(c, ring_.buffer(id, static_cast<std::size_t>(cqe.res)), now);
            ring_.give_back(id);
        }
        if ((cqe.flags & IORING_CQE_F_MORE) == 0) {
            arm(i);
        }
        if (again > 0) {
            if (due_of_[i] == 0) {
                due_.push_back(i);
            }
            due_of_[i] += again;
        }
    }

    session& session_;
    mini_ring& ring_;
    std::vector<unsigned> due_; // connections with requests to send
    std::vector<unsigned> due_of_ = std::vector<unsigned>(session_.connections().size());
};

} // namespace

bool run_uring(session& s) {
    const auto count = static_cast<unsigned>(s.connections().size());
    // A failed setup must not leave a connection half used, so everything that can be refused comes
    // first.
    std::unique_ptr<mini_ring> ring;
    try {
        ring = std::make_unique<mini_ring>(std::clamp(std::bit_ceil(count * 2), 64u, 8192u),
                                           std::clamp(std::bit_ceil(count * 4), 256u, 65536u));
        std::vector<int> fds;
        for (const connection& c : s.connections()) {
            fds.push_back(c.fd);
        }
        ring->register_files(fds.data(), count);
        // A reply to PING is shorter than the request; a message is returned unchanged.
        const auto reply_bytes = static_cast<unsigned>(s.requests(s.settings().pipeline).size());
        ring->provide_buffers(std::clamp(std::bit_ceil(count * 2), 64u, 16384u),
                              std::max(64u, reply_bytes));
    } catch (const std::system_error& e) {
        if (s.settings().use == engine::automatic) {
            return false;
        }
        std::fprintf(stderr, "load: %s\n", e.what());
        std::exit(1);
    }
    ring_client{s, *ring}.run();
    return true;
}

} // namespace load
