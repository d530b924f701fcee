// Zero-copy sends: two completions, one result, and the buffer may be reused after the await
// returns (G2).

#include "io/support.hpp"
#include "support/backends.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

using namespace coil;
using namespace std::chrono_literals;
using coil::uring::opcode;
using coil_test::descriptor;
using coil_test::door_backend;
using coil_test::listener;
using coil_test::manual;
using coil_test::scripted_backend;
using coil_test::socket_pair;
using coil_test::sqe;

namespace {

class ZeroCopy : public ::testing::Test {};

/// A connection over 127.0.0.1.
struct connection {
    connection() : client(l.connect()), server(::accept(l.socket, nullptr, nullptr)) {}

    [[nodiscard]] std::string received(std::size_t n) const {
        std::string text(n, '\0');
        const auto got = ::recv(server, text.data(), n, MSG_WAITALL);
        text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return text;
    }

    listener l;
    descriptor client;
    descriptor server;
};

TEST_F(ZeroCopy, OverTcp_SendsAndReturnsTheBuffer) {
    const connection c;
    auto main = [](const connection& tcp) -> task<> {
        std::string data(100'000, 'a');
        const int n = co_await io::send_zc(tcp.client, data);
        EXPECT_GT(n, 0);
        data.assign(data.size(), 'b'); // the buffer may be reused
        const std::string arrived = tcp.received(static_cast<std::size_t>(n));
        EXPECT_EQ(arrived, std::string(static_cast<std::size_t>(n), 'a'));

        ::iovec parts[2] = {{data.data(), 10}, {data.data() + 10, 5}};
        ::msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = 2;
        EXPECT_EQ(co_await io::sendmsg_zc(tcp.client, &message), 15);
        EXPECT_EQ(tcp.received(15), std::string(15, 'b'));

        const io::registered_buffers registered{data};
        EXPECT_EQ(co_await io::send_zc(tcp.client, registered[0].first(7)), 7);
        EXPECT_EQ(tcp.received(7), "bbbbbbb");
    };
    coil::run(main(c));
}

TEST_F(ZeroCopy, AsEagerAndWithLimits) {
    const connection c;
    auto main = [](const connection& tcp) -> task<> {
        auto a = eager(io::send_zc(tcp.client, "eager"));
        EXPECT_EQ(co_await a, 5);
        EXPECT_EQ(co_await timeout(io::send_zc(tcp.client, "quick"), 5s), 5);
        {
            const auto dropped = eager(io::send_zc(tcp.client, "dropped"));
        }
        EXPECT_EQ(co_await io::force_async(io::send_zc(tcp.client, "async")), 5);
    };
    coil::run(main(c));
    ASSERT_EQ(::shutdown(c.client, SHUT_WR), 0);
    const std::string all = c.received(100);
    EXPECT_TRUE(all == "eagerquickdroppedasync" || all == "eagerquickasync") << all;
}

TEST_F(ZeroCopy, G13_AnywhereInAChain) {
    const connection c;
    auto main = [](const connection& tcp) -> task<> {
        char buf[8];
        EXPECT_EQ(::send(tcp.server, "answer!!", 8, 0), 8);
        EXPECT_EQ(co_await (io::send_zc(tcp.client, "1") && io::recv(tcp.client, {buf, 2})), 2);
        EXPECT_EQ(
            co_await (io::recv(tcp.client, {buf, 2}) && io::send_zc(tcp.client, "22") && io::nop()),
            0);
        EXPECT_EQ(co_await (io::nop() && io::send_zc(tcp.client, "333")), 3);
        EXPECT_EQ(co_await (timeout(io::send_zc(tcp.client, "4444"), 1s) &&
                            timeout(io::send_zc(tcp.client, "55555"), 1s)),
                  5);
        EXPECT_EQ(co_await hard_link(io::send_zc(-1, "x"), io::send_zc(tcp.client, "666666")), 6);
        EXPECT_EQ(co_await (io::send_zc(-1, "x") && io::send_zc(tcp.client, "no")), -ECANCELED);
        EXPECT_EQ(co_await timeout(io::send_zc(tcp.client, "77") && io::nop(), 1s), 0);
        EXPECT_EQ(tcp.received(23), "122333444455555666666"
                                    "77");
    };
    coil::run(main(c));
}

/// Sends more than the connection holds while the peer does not read.
TEST_F(ZeroCopy, G13_InTheMiddleOfAChainAllIsSent) {
    const connection c;
    std::string large(8 << 20, 'x'); // more than the buffers of both ends
    auto main = [](const connection& tcp, const std::string& data) -> task<> {
        auto chain = [](int fd, const std::string& all) -> task<int> {
            co_return co_await (io::send_zc(fd, all) && io::send(fd, "end"));
        };
        auto h = spawn(chain(tcp.client, data));
        co_await sleep_for(20ms);
        EXPECT_FALSE(h.done()) << "a partial send was taken for a complete one";
        std::size_t total = 0;
        std::string buf(1 << 20, '\0');
        while (total < data.size() + 3) {
            const int n = co_await io::recv(tcp.server, buf);
            if (n <= 0) {
                ADD_FAILURE() << n;
                co_return;
            }
            total += static_cast<std::size_t>(n);
            if (total == data.size() + 3) {
                EXPECT_EQ(buf.substr(static_cast<std::size_t>(n) - 3, 3), "end");
            }
        }
        EXPECT_EQ(co_await h, 3);
    };
    coil::run(main(c, large));
}

TEST_F(ZeroCopy, Errors) {
    const connection c;
    const socket_pair local;
    auto main = [](const connection& tcp, const socket_pair& s) -> task<> {
        EXPECT_EQ(co_await io::send_zc(-1, "x"), -EBADF);
        EXPECT_EQ(co_await io::send_zc(s.a, "x"), -EOPNOTSUPP); // AF_UNIX has no zero-copy send
        EXPECT_EQ(co_await io::send_zc(tcp.client, io::registered_buffer({}, 5)), -EFAULT);
        EXPECT_EQ(co_await io::sendmsg_zc(tcp.client, nullptr), -EFAULT);
        EXPECT_EQ(::shutdown(tcp.client, SHUT_WR), 0);
        EXPECT_EQ(co_await io::send_zc(tcp.client, "x"), -EPIPE); // and no SIGPIPE
    };
    coil::run(main(c, local));
}

TEST_F(ZeroCopy, FlagsReachTheKernelAndDoNotChangeTheResult) {
    const connection c;
    auto guard = std::make_shared<door_backend::guard>();
    std::vector<std::uint16_t> seen;
    guard->before_enter = [&](door_backend&, const std::vector<sqe>& entries, unsigned) {
        for (const sqe& e : entries) {
            if (e.opcode == static_cast<std::uint8_t>(opcode::send_zc) ||
                e.opcode == static_cast<std::uint8_t>(opcode::sendmsg_zc)) {
                seen.push_back(e.ioprio);
            }
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    using namespace uring::recvsend_flag;
    auto main = [](const connection& tcp) -> task<> {
        char memory[] = "registered";
        const io::registered_buffers registered{mutable_buffer(memory, 10)};
        ::iovec part{memory, 3};
        ::msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        for (const unsigned flags : {unsigned{poll_first}, unsigned{zc_report_usage},
                                     unsigned{poll_first | zc_report_usage}}) {
            EXPECT_EQ(co_await io::send_zc(tcp.client, "ab", 0, flags), 2) << flags;
            EXPECT_EQ(co_await io::send_zc(tcp.client, registered[0], 0, flags), 10) << flags;
            EXPECT_EQ(co_await io::sendmsg_zc(tcp.client, &message, 0, flags), 3) << flags;
            EXPECT_EQ(tcp.received(15), "abregisteredreg");
        }
        // A flag that changes the meaning of the memory, a flag of another operation, unknown
        // flags.
        for (const unsigned flags :
             {unsigned{fixed_buf}, unsigned{send_vectorized}, 0x4000U, 0x10000U, ~0U}) {
            EXPECT_EQ(co_await io::send_zc(tcp.client, "x", 0, flags), -EINVAL) << flags;
            EXPECT_EQ(co_await io::send_zc(tcp.client, registered[0], 0, flags), -EINVAL) << flags;
            EXPECT_EQ(co_await io::sendmsg_zc(tcp.client, &message, 0, flags), -EINVAL) << flags;
        }
        EXPECT_EQ(co_await io::send_zc(tcp.client, {"ends", 3}), 3);
        EXPECT_EQ(tcp.received(3), "end");
    };
    coil_test::run_on(ctx, main(c));
    ASSERT_GE(seen.size(), 9U);
    seen.resize(9);
    constexpr std::uint16_t both = poll_first | zc_report_usage;
    EXPECT_EQ(seen, (std::vector<std::uint16_t>{poll_first, poll_first | fixed_buf, poll_first,
                                                zc_report_usage, zc_report_usage | fixed_buf,
                                                zc_report_usage, both, both | fixed_buf, both}));
}

TEST_F(ZeroCopy, WithoutTheOpcode_ASendCopies) {
    const connection c;
    const socket_pair local;
    auto guard = std::make_shared<door_backend::guard>();
    guard->hidden = {opcode::send_zc, opcode::sendmsg_zc};
    guard->before_enter = [](door_backend&, const std::vector<sqe>& entries, unsigned) {
        EXPECT_FALSE(coil_test::contains(entries, opcode::send_zc));
        EXPECT_FALSE(coil_test::contains(entries, opcode::sendmsg_zc));
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto main = [](const connection& tcp, const socket_pair& s) -> task<> {
        char memory[] = "registered";
        EXPECT_EQ(co_await io::send_zc(tcp.client, "a"), 1);
        const io::registered_buffers registered{mutable_buffer(memory, 10)};
        EXPECT_EQ(co_await io::send_zc(tcp.client, registered[0]), 10);
        ::iovec part{memory, 3};
        ::msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        EXPECT_EQ(co_await (io::send_zc(tcp.client, "b") && io::sendmsg_zc(tcp.client, &message)),
                  3);
        EXPECT_EQ(co_await timeout(io::send_zc(s.a, "c"), 1s), 1);
        EXPECT_EQ(tcp.received(15), "aregisteredbreg");
        constexpr unsigned known =
            uring::recvsend_flag::poll_first | uring::recvsend_flag::zc_report_usage;
        EXPECT_EQ(co_await io::send_zc(tcp.client, "d", 0, known), 1);
        EXPECT_EQ(tcp.received(1), "d");
        EXPECT_EQ(co_await io::send_zc(tcp.client, "e", 0, uring::recvsend_flag::fixed_buf),
                  -EINVAL);
    };
    coil_test::run_on(ctx, main(c, local));
}

/// A backend that posts the completions of a zero-copy send when the test says so.
class ZeroCopyCompletions : public ::testing::Test {
protected:
    ZeroCopyCompletions() {
        backend_->on_submit = [this](const sqe& e) {
            if (e.opcode == static_cast<std::uint8_t>(opcode::send_zc)) {
                send_ = e.user_data;
            } else if (e.opcode == static_cast<std::uint8_t>(opcode::async_cancel)) {
                ++cancels_;
                backend_->post(e.user_data, -ENOENT);
            } else {
                backend_->post(e.user_data, 0);
            }
        };
    }
    void post(int result, std::uint32_t flags) {
        backend_->posted.push_back({send_, result, flags});
    }
    io_context context() {
        return io_context(coil_test::with([&](auto& o) {
            o.make_backend = scripted_backend::factory(backend_);
            o.idle = idle_policy::park();
        }));
    }

    std::shared_ptr<scripted_backend::script> backend_ =
        std::make_shared<scripted_backend::script>();
    std::uint64_t send_ = 0;
    int cancels_ = 0;
};

using coil::uring::cqe_flag::more;
using coil::uring::cqe_flag::notif;

TEST_F(ZeroCopyCompletions, G2_TheAwaitReturnsAfterTheNotification) {
    auto main = [this]() -> task<> {
        auto sends = []() -> task<int> { co_return co_await io::send_zc(3, "x"); };
        for (const int result : {1, -ECONNRESET}) {
            auto h = spawn(sends());
            co_await io::nop();
            co_await io::nop();
            post(result, more);
            co_await io::nop();
            co_await io::nop();
            EXPECT_FALSE(h.done()); // the kernel still has the buffer
            h.cancel();
            co_await io::nop();
            co_await io::nop();
            EXPECT_FALSE(h.done()); // a cancelled send waits for its notification too
            post(0, notif);
            EXPECT_EQ(co_await h, result); // the result of the first completion
        }
        auto h = spawn(sends());
        co_await io::nop();
        post(-EOPNOTSUPP, 0); // an error may come without a notification
        EXPECT_EQ(co_await h, -EOPNOTSUPP);
        auto cancelled = spawn(sends());
        co_await io::nop();
        cancelled.cancel();
        co_await io::nop();
        post(-ECANCELED, more);
        co_await io::nop();
        co_await io::nop();
        EXPECT_FALSE(cancelled.done());
        post(0, notif);
        EXPECT_EQ(co_await cancelled, -ECANCELED);
    };
    auto ctx = context();
    coil_test::run_on(ctx, main());
    EXPECT_EQ(cancels_, 1); // only the send without a result was cancelled in the kernel
}

TEST_F(ZeroCopyCompletions, TheUsageReportOfANotificationIsNotAResult) {
    auto main = [this]() -> task<> {
        auto sends = []() -> task<int> {
            co_return co_await io::send_zc(3, "x", 0, uring::recvsend_flag::zc_report_usage);
        };
        auto h = spawn(sends());
        co_await io::nop();
        post(1, more);
        co_await io::nop();
        post(static_cast<int>(uring::notif_usage_zc_copied), notif);
        EXPECT_EQ(co_await h, 1);
    };
    auto ctx = context();
    coil_test::run_on(ctx, main());
}

TEST_F(ZeroCopyCompletions, G2_DestroyingAFrameWaitsForTheNotification) {
    bool notified = false;
    auto main = [this, &notified]() -> task<> {
        auto sends = []() -> manual { co_await io::send_zc(3, "x"); };
        manual victim = sends();
        victim.start();
        co_await io::nop();
        co_await io::nop();
        post(1, more);
        co_await io::nop();
        int waits = 0;
        backend_->on_wait = [&] {
            if (++waits == 3) {
                notified = true;
                post(0, notif);
            }
        };
        victim.destroy();
        EXPECT_TRUE(notified);
        backend_->on_wait = [] {};
    };
    auto ctx = context();
    coil_test::run_on(ctx, main());
}

TEST_F(ZeroCopyCompletions, G1_TheNotificationOfACancelledLinkCompletesNothing) {
    // For a send after a failed link, Linux posts a result without F_MORE, and a notification.
    auto main = [this]() -> task<> {
        auto fails = []() -> task<int> {
            co_return co_await (io::openat(-1, "", 0) && io::send_zc(3, "x"));
        };
        auto h = spawn(fails());
        co_await io::nop();
        post(-ECANCELED, 0);
        EXPECT_EQ(co_await h, -ECANCELED);
        post(0, notif); // the awaiter no longer exists
        co_await io::nop();
        co_await io::nop();
        auto again = spawn(fails()); // possibly in the same memory
        co_await io::nop();
        post(0, notif);
        co_await io::nop();
        EXPECT_FALSE(again.done()); // the notification belonged to the cancelled send
        post(1, more);
        co_await io::nop();
        EXPECT_FALSE(again.done());
        post(0, notif);
        EXPECT_EQ(co_await again, 1);
    };
    io_context ctx = context();
    coil_test::run_on(ctx, main());
}

TEST_F(ZeroCopyCompletions, G2_AChainWaitsForTheNotification) {
    auto main = [this]() -> task<> {
        auto chain = []() -> task<int> { co_return co_await (io::send_zc(3, "x") && io::nop()); };
        auto h = spawn(chain());
        co_await io::nop();
        co_await io::nop();
        post(1, more);
        co_await io::nop();
        co_await io::nop();
        EXPECT_FALSE(h.done());
        post(0, notif);
        EXPECT_EQ(co_await h, 0);
    };
    auto ctx = context();
    coil_test::run_on(ctx, main());
}

} // namespace
