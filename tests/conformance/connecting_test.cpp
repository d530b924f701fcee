// Connections that are cancelled, shut down and reset, on every backend.

#include "conformance/support.hpp"

#include <poll.h>

namespace conformance {

namespace {

class Connecting : public Conformance {};
COIL_ON_ALL_BACKENDS(Connecting);

/// A listener with a full backlog: a further handshake waits until a connection is accepted.
struct full_listener {
    int fd = -1;
    int first = -1;
    address at;
};

task<full_listener> fill_listener() {
    full_listener l;
    l.fd = co_await listening(0);
    l.at = name_of(l.fd);
    l.first = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::connect(l.first, l.at.get(), l.at.length), 0);
    co_return l;
}

task<int> stream_socket() { return result_of(io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC)); }

task<> cancelled_connects() {
    const full_listener l = co_await fill_listener();
    int fd = co_await stream_socket();
    co_await gives(coil::timeout(io::connect(fd, l.at.get(), l.at.length), 2ms), -ETIMEDOUT,
                   "by a timeout");
    co_await gives(io::close(fd), 0);

    fd = co_await stream_socket();
    auto by_operation = coil::eager(io::connect(fd, l.at.get(), l.at.length));
    co_await coil::yield();
    co_await gives(io::cancel(by_operation), 0);
    int result = co_await by_operation;
    EXPECT_EQ(result, -ECANCELED); // by the operation
    co_await gives(io::close(fd), 0);

    fd = co_await stream_socket();
    auto by_descriptor = coil::eager(io::connect(fd, l.at.get(), l.at.length));
    co_await coil::yield();
    co_await gives(io::cancel(io::descriptor(fd)), 1);
    result = co_await by_descriptor;
    EXPECT_EQ(result, -ECANCELED); // by the descriptor
    co_await gives(io::close(fd), 0);

    fd = co_await stream_socket();
    auto by_member = coil::eager(io::connect(fd, l.at.get(), l.at.length));
    co_await coil::yield();
    by_member.cancel();
    result = co_await by_member;
    EXPECT_EQ(result, -ECANCELED); // by its owner
    for (const int one : {fd, l.first, l.fd}) {
        co_await gives(io::close(one), 0);
    }
}
TEST_P(Connecting, G3_ACancelledConnectReportsIt) { run(cancelled_connects()); }

task<> connects_twice() {
    const full_listener l = co_await fill_listener();
    const int fd = co_await stream_socket();
    co_await gives(coil::timeout(io::connect(fd, l.at.get(), l.at.length), 2ms), -ETIMEDOUT);
    co_await gives(coil::timeout(io::connect(fd, l.at.get(), l.at.length), 2ms), -EALREADY);
    for (const int one : {fd, l.first, l.fd}) {
        co_await gives(io::close(one), 0);
    }
}
TEST_P(Connecting, TheHandshakeOutlivesACancelledConnect) { run(connects_twice()); }

/// The handshake outlives a cancelled call; the next call returns its result, once.
task<> next_connect() {
    const full_listener l = co_await fill_listener();
    const int fd = co_await stream_socket();
    co_await gives(coil::timeout(io::connect(fd, l.at.get(), l.at.length), 2ms), -ETIMEDOUT);
    const int accepted = co_await io::accept(l.fd, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(accepted, 0);
    co_await gives(io::poll(fd, POLLOUT), POLLOUT, "the queue has space again");
    co_await gives(io::connect(fd, l.at.get(), l.at.length), 0);
    co_await gives(io::connect(fd, l.at.get(), l.at.length), -EISCONN);
    for (const int one : {fd, accepted, l.first, l.fd}) {
        co_await gives(io::close(one), 0);
    }
}
TEST_P(Connecting, TheNextConnectReportsTheHandshake) { run(next_connect()); }

// ---- shutdown(2)

task<> data_after_shut_rd() {
    const ends s = co_await connected();
    char buf[16] = {};
    co_await gives(io::send(s.b, "early"), 5);
    co_await gives(io::poll(s.a, POLLIN), POLLIN);
    co_await gives(io::shutdown(s.a, SHUT_RD), 0);
    co_await gives(io::recv(s.a, {buf, 5}, MSG_WAITALL), 5, "data that has arrived is kept");
    co_await gives(io::recv(s.a, buf), 0);
    co_await gives(io::send(s.b, "late", MSG_NOSIGNAL), 4, "SHUT_RD sends nothing to the peer");
    int n = 0;
    for (int tries = 0; tries < 100 && n == 0; ++tries) { // the data is in flight
        n = co_await io::recv(s.a, buf);
        co_await coil::sleep_for(1ms);
    }
    EXPECT_EQ(text(buf, n), "late");
    co_await gives(io::recv(s.a, buf), 0);
    co_await closed(s);
}
TEST_P(Connecting, DataStillArrivesAfterShutRd) { run(data_after_shut_rd()); }

task<> data_after_shutdown() {
    const ends s = co_await connected();
    char buf[16];
    co_await gives(io::shutdown(s.a, SHUT_RDWR), 0);
    co_await gives(io::recv(s.b, buf), 0, "the end has come");
    co_await gives(io::send(s.b, "x", MSG_NOSIGNAL), 1);
    co_await coil::sleep_for(1ms); // time for the data and the answer
    co_await gives(io::poll(s.b, POLLERR | POLLRDHUP), POLLERR | POLLHUP | POLLRDHUP,
                   "the peer has answered with a reset");
    co_await gives(io::send(s.b, "x", MSG_NOSIGNAL), -EPIPE);
    co_await closed(s);
}
TEST_P(Connecting, DataAfterShutRdwrResets) { run(data_after_shutdown()); }

task<> shut_twice() {
    const ends s = co_await connected();
    char buf[4];
    co_await gives(io::shutdown(s.a, SHUT_WR), 0);
    co_await gives(io::shutdown(s.a, SHUT_WR), 0, "again, without effect");
    co_await gives(io::recv(s.b, buf), 0);
    co_await gives(io::shutdown(s.b, SHUT_WR), 0);
    co_await gives(io::recv(s.a, buf), 0);
    co_await coil::sleep_for(1ms); // time for the last acknowledgement
    co_await gives(io::shutdown(s.a, SHUT_WR), -ENOTCONN, "both directions have ended");
    co_await gives(io::shutdown(s.b, SHUT_RDWR), -ENOTCONN);
    co_await gives(io::recv(s.a, buf), 0);
    co_await gives(io::send(s.b, "x", MSG_NOSIGNAL), -EPIPE);
    co_await gives(io::poll(s.b, POLLIN | POLLOUT | POLLRDHUP),
                   POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
    co_await closed(s);
}
TEST_P(Connecting, ShutdownAfterBothEnds) { run(shut_twice()); }

task<> shut_listener() {
    const int listener = co_await listening();
    co_await gives(io::shutdown(listener, SHUT_WR), 0, "nothing to end");
    auto accepting = coil::eager(io::accept(listener));
    co_await coil::yield();
    co_await gives(io::shutdown(listener, SHUT_RD), 0);
    const int result = co_await accepting;
    EXPECT_EQ(result, -EINVAL); // it does not listen any more
    co_await gives(io::close(listener), 0);
}
TEST_P(Connecting, ShutdownOfAListener) { run(shut_listener()); }

// ---- resets

/// Closes `fd` with a reset of the connection.
task<> closed_by_reset(int fd) {
    const ::linger at_once{1, 0};
    co_await gives(io::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    co_await gives(io::close(fd), 0);
}

task<> events_of_a_reset() {
    const ends s = co_await connected();
    char buf[4];
    co_await closed_by_reset(s.a);
    constexpr unsigned all = POLLIN | POLLOUT | POLLRDHUP;
    co_await gives(io::poll(s.b, POLLERR | POLLRDHUP), POLLERR | POLLHUP | POLLRDHUP);
    co_await gives(io::poll(s.b, all), POLLERR | POLLHUP | POLLIN | POLLOUT | POLLRDHUP);
    co_await gives(io::recv(s.b, buf), -ECONNRESET);
    co_await gives(io::poll(s.b, all), POLLHUP | POLLIN | POLLOUT | POLLRDHUP,
                   "the error was reported before");
    co_await gives(io::recv(s.b, buf), 0);
    co_await gives(io::send(s.b, "x", MSG_NOSIGNAL), -EPIPE);
    co_await gives(io::shutdown(s.b, SHUT_RDWR), -ENOTCONN);
    co_await gives(io::close(s.b), 0);
}
TEST_P(Connecting, EventsOfAReset) { run(events_of_a_reset()); }

/// io_uring's poll reports POLLRDHUP even if it is not requested.
task<> unrequested_events() {
    const ends s = co_await connected();
    co_await closed_by_reset(s.a);
    co_await gives(io::poll(s.b, POLLERR), POLLERR | POLLHUP | POLLRDHUP);
    char buf[4];
    co_await gives(io::recv(s.b, buf), -ECONNRESET);
    co_await gives(io::poll(s.b, POLLIN | POLLOUT), 0x2015);
    co_await gives(io::close(s.b), 0);
}
TEST_P(Connecting, PollReportsTheEndUnrequested) { run(unrequested_events()); }

task<> data_before_a_reset() {
    const ends s = co_await connected();
    char buf[8];
    co_await gives(io::send(s.a, "came"), 4);
    co_await gives(io::poll(s.b, POLLIN), POLLIN);
    co_await closed_by_reset(s.a);
    co_await gives(io::poll(s.b, POLLERR | POLLRDHUP), POLLERR | POLLHUP | POLLRDHUP);
    co_await gives(io::recv(s.b, buf), 4);
    co_await gives(io::recv(s.b, buf), -ECONNRESET);
    co_await gives(io::recv(s.b, buf), 0);
    co_await gives(io::close(s.b), 0);
}
TEST_P(Connecting, AResetKeepsTheDataThatHasArrived) { run(data_before_a_reset()); }

task<> events_of_a_refusal() {
    const int listener = co_await listening();
    const address at = name_of(listener);
    co_await gives(io::close(listener), 0);
    const int fd = co_await stream_socket();
    constexpr unsigned all = POLLIN | POLLOUT | POLLRDHUP;
    co_await gives(io::poll(fd, all), POLLOUT | POLLHUP, "fresh");
    co_await gives(io::connect(fd, at.get(), at.length), -ECONNREFUSED);
    co_await gives(io::poll(fd, all), POLLHUP | POLLIN | POLLOUT | POLLRDHUP);
    char buf[4];
    co_await gives(io::recv(fd, buf), 0);
    co_await gives(io::send(fd, "x", MSG_NOSIGNAL), -EPIPE);
    co_await gives(io::connect(fd, at.get(), at.length), -ECONNREFUSED, "it may be tried again");
    co_await gives(io::shutdown(fd, SHUT_WR), -ENOTCONN);
    co_await gives(io::close(fd), 0);
}
TEST_P(Connecting, EventsOfARefusal) { run(events_of_a_refusal()); }

task<> urgent() {
    const ends s = co_await connected();
    char buf[4];
    co_await gives(io::recv(s.b, buf, MSG_OOB), -EINVAL, "there is none");
    co_await gives(io::send(s.a, "x", MSG_OOB), 1);
    co_await gives(io::poll(s.b, POLLPRI), POLLPRI);
    co_await gives(io::recv(s.b, buf, MSG_OOB), 1);
    co_await closed(s);
}
TEST_P(Connecting, UrgentData) { run(urgent()); }

} // namespace

} // namespace conformance
