// Random scripts of operations that are cancelled, in every way and at any time, on all backends.

#include "conformance/differential.hpp"
#include "conformance/support.hpp"
#include "support/random.hpp"

#include <sstream>

#include <poll.h>

namespace conformance {

namespace {

struct cancel_step {
    std::uint8_t what;
    std::uint8_t variant;
    std::uint8_t turns; // before the cancellation
    bool races;         // against the event that the operation waits for
};
using cancel_script = std::vector<cancel_step>;

class cancel_player {
public:
    explicit cancel_player(answers& results) : results_(results) {}

    task<> begin() {
        pipe_ = co_await piped();
        full_ = co_await piped(O_NONBLOCK);
        const std::string much(1U << 20, 'x');
        const int written = co_await io::write(full_.b, much);
        EXPECT_GT(written, 0);
        stream_ = co_await connected();
        quiet_ = co_await listening();
        busy_ = co_await listening(0);
        at_ = name_of(busy_);
        first_ = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
        co_await gives(io::connect(first_, at_.get(), at_.length), 0);
    }
    task<> end() {
        for (const int fd :
             {pipe_.a, pipe_.b, full_.a, full_.b, stream_.a, stream_.b, quiet_, busy_, first_}) {
            co_await gives(io::close(fd), 0);
        }
    }

    task<> one(cancel_step s) {
        buffer_ = 0;
        switch (s.what % 8) {
        case 0:
            co_await cancelled(s, pipe_.a, io::read(pipe_.a, {&buffer_, 1}));
            break;
        case 1:
            co_await cancelled(s, stream_.a, io::recv(stream_.a, {&buffer_, 1}));
            break;
        case 2:
            co_await cancelled(s, pipe_.a, io::poll(pipe_.a, POLLIN));
            break;
        case 3:
            co_await cancelled(s, full_.b, io::write(full_.b, "y"));
            break;
        case 4:
            co_await cancelled(s, quiet_, io::accept(quiet_));
            break;
        case 5: {
            const int fd = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
            co_await cancelled(s, fd, io::connect(fd, at_.get(), at_.length));
            co_await gives(io::close(fd), 0);
            break;
        }
        case 6: {
            ::iovec part{&buffer_, 1};
            ::msghdr message{};
            message.msg_iov = &part;
            message.msg_iovlen = 1;
            co_await cancelled(s, stream_.b, io::recvmsg(stream_.b, &message));
            break;
        }
        default:
            co_await cancelled(s, full_.b, io::poll(full_.b, POLLOUT));
        }
    }

private:
    void say(long result) { results_.push_back(std::to_string(result)); }

    /// Whether the operation waits for an event that the test can cause.
    static bool can_race(cancel_step s) { return s.races && (s.what % 8 < 2 || s.what % 8 == 6); }

    task<> provoke(cancel_step s) {
        const int to = s.what % 8 == 0 ? pipe_.b : s.what % 8 == 1 ? stream_.b : stream_.a;
        co_await gives(io::write(to, "z"), 1);
    }
    /// The byte is in the buffer, or can still be received.
    task<> settle(cancel_step s, int result) {
        const int from = s.what % 8 == 0 ? pipe_.a : s.what % 8 == 1 ? stream_.a : stream_.b;
        if (result == -ECANCELED || result == -ETIMEDOUT) {
            result = co_await io::read(from, {&buffer_, 1});
        }
        if (result != 1 || buffer_ != 'z') {
            results_.push_back("IMPOSSIBLE " + std::to_string(result));
        }
    }

    template <class Operation>
    task<> cancelled(cancel_step s, int fd, Operation op) {
        if (s.variant % 5 == 0 && !can_race(s)) {
            const int result =
                co_await coil::timeout(std::move(op), std::chrono::microseconds(s.turns * 50));
            say(result);
            co_return;
        }
        auto waiting = coil::eager(std::move(op));
        for (unsigned i = 0; i < s.turns % 4U; ++i) {
            co_await coil::yield();
        }
        if (can_race(s)) {
            co_await provoke(s);
        }
        switch (s.variant % 5) {
        case 1:
            co_await io::cancel(waiting);
            break;
        case 2:
            co_await io::cancel(io::descriptor(fd));
            break;
        case 3:
            co_await io::cancel_all();
            break;
        default:
            waiting.cancel();
        }
        const int result = co_await waiting;
        if (can_race(s)) {
            co_await settle(s, result);
        } else {
            say(result);
        }
    }

    answers& results_;
    ends pipe_;
    ends full_;
    ends stream_;
    int quiet_ = -1; // never ready
    int busy_ = -1;  // its queue is full
    int first_ = -1;
    address at_;
    char buffer_ = 0;
};

std::string to_string(const cancel_script& script) {
    std::ostringstream text;
    for (const cancel_step& s : script) {
        text << "    {" << unsigned{s.what} % 8 << ' ' << unsigned{s.variant} % 5 << ' '
             << unsigned{s.turns} << ' ' << s.races << "}\n";
    }
    return text.str();
}

cancel_script random_cancel_script(std::uint64_t seed, std::size_t steps) {
    coil_test::random_source r(seed);
    cancel_script s;
    s.reserve(steps);
    for (std::size_t i = 0; i < steps; ++i) {
        s.push_back({static_cast<std::uint8_t>(r.below(8)), static_cast<std::uint8_t>(r.below(5)),
                     static_cast<std::uint8_t>(r.below(8)), r.below(2) == 0});
    }
    return s;
}

task<> play_cancels(const cancel_script& script, std::string /*directory*/, answers& results) {
    cancel_player p(results);
    co_await p.begin();
    for (const cancel_step s : script) {
        co_await p.one(s);
    }
    co_await p.end();
}

constexpr game<cancel_script> cancellations{random_cancel_script, play_cancels, 40};

TEST(Differential, G3_CancelledOperationsEndTheSameOnAllBackends) {
    compare_all(cancellations, present_backends(),
                static_cast<std::uint64_t>(coil_test::rounds(coil_test::sanitized ? 5 : 50, 1000)));
}

} // namespace

} // namespace conformance
