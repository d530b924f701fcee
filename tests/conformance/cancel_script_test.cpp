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

/// A message of one byte.
class one_part {
public:
    explicit one_part(char* byte) : part_{byte, 1} {
        message_.msg_iov = &part_;
        message_.msg_iovlen = 1;
    }
    one_part(const one_part&) = delete;
    one_part& operator=(const one_part&) = delete;

    ::msghdr* get() { return &message_; }

private:
    ::iovec part_;
    ::msghdr message_{};
};

class cancel_stage {
public:
    static constexpr unsigned kinds = 14;

    explicit cancel_stage(std::string /*directory*/) {}

    task<> open() {
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
        local_ = paired(SOCK_STREAM);
        full_local_ = paired(SOCK_STREAM);
        local_datagrams_ = paired(SOCK_DGRAM);
        int sent = 0;
        while (sent >= 0) {
            sent = co_await io::send(full_local_.a, much, MSG_DONTWAIT);
        }
        EXPECT_EQ(sent, -EAGAIN);
        datagrams_ = co_await io::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
        const address any;
        co_await gives(io::bind(datagrams_, any.get(), any.length), 0);
    }
    task<> close() {
        for (const ends e : {pipe_, full_, stream_, local_, full_local_, local_datagrams_}) {
            co_await closed(e);
        }
        for (const int fd : {quiet_, busy_, first_, datagrams_}) {
            co_await gives(io::close(fd), 0);
        }
    }

    task<> one(cancel_step s, answers& results) {
        results_ = &results;
        buffer_ = 0;
        switch (s.what) {
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
        case 6:
            co_await cancelled(s, stream_.b, io::recvmsg(stream_.b, message_.get()));
            break;
        case 7:
            co_await cancelled(s, full_.b, io::poll(full_.b, POLLOUT));
            break;
        default:
            co_await one_local(s);
        }
    }

    /// Calls on Unix sockets and datagrams.
    task<> one_local(cancel_step s) {
        switch (s.what) {
        case 8:
            co_await cancelled(s, local_.a, io::recv(local_.a, {&buffer_, 1}));
            break;
        case 9:
            co_await cancelled(s, local_datagrams_.a, io::recv(local_datagrams_.a, {&buffer_, 1}));
            break;
        case 10:
            co_await cancelled(s, full_local_.a, io::send(full_local_.a, "yy"));
            break;
        case 11:
            co_await cancelled(s, full_local_.a, io::sendmsg(full_local_.a, message_.get()));
            break;
        case 12:
            co_await cancelled(s, full_local_.a, io::poll(full_local_.a, POLLOUT));
            break;
        default:
            co_await cancelled(s, datagrams_, io::recvmsg(datagrams_, message_.get()));
        }
    }

private:
    void say(long result) { results_->push_back(std::to_string(result)); }

    /// Whether the operation waits for an event that the test can cause.
    static bool can_race(cancel_step s) {
        return s.races && (s.what < 2 || s.what == 6 || s.what == 8 || s.what == 9);
    }
    /// For a racing operation: the end to which the test writes a byte, and the one that receives
    /// it.
    [[nodiscard]] ends route(cancel_step s) const {
        switch (s.what) {
        case 0:
            return {pipe_.b, pipe_.a};
        case 1:
            return {stream_.b, stream_.a};
        case 6:
            return {stream_.a, stream_.b};
        case 8:
            return {local_.b, local_.a};
        default:
            return {local_datagrams_.b, local_datagrams_.a};
        }
    }

    task<> provoke(cancel_step s) { co_await gives(io::write(route(s).a, "z"), 1); }
    /// Expects the byte in the buffer; after a cancellation, receives it first.
    task<> settle(cancel_step s, int result) {
        const int from = route(s).b;
        if (result == -ECANCELED || result == -ETIMEDOUT) {
            result = co_await io::read(from, {&buffer_, 1});
        }
        if (result != 1 || buffer_ != 'z') {
            results_->push_back("IMPOSSIBLE " + std::to_string(result));
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
        int told = 0;
        switch (s.variant % 5) {
        case 1:
            told = co_await io::cancel(waiting);
            break;
        case 2:
            told = co_await io::cancel(io::descriptor(fd));
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
            say(told);
            say(result);
        }
    }

    answers* results_ = nullptr; // of the step
    ends pipe_;
    ends full_;
    ends stream_;
    int quiet_ = -1; // never ready
    int busy_ = -1;  // its queue is full
    int first_ = -1;
    ends local_;
    ends full_local_; // the first cannot send
    ends local_datagrams_;
    int datagrams_ = -1; // receives no datagrams
    address at_;
    char buffer_ = 0;
    one_part message_{&buffer_};
};

std::string to_string(const cancel_script& script) {
    std::ostringstream text;
    for (const cancel_step& s : script) {
        text << "    {" << unsigned{s.what} << ' ' << unsigned{s.variant} % 5 << ' '
             << unsigned{s.turns} << ' ' << s.races << "}\n";
    }
    return text.str();
}

cancel_script random_cancel_script(std::uint64_t seed, std::size_t steps) {
    coil_test::random_source r(seed);
    cancel_script s;
    s.reserve(steps);
    for (std::size_t i = 0; i < steps; ++i) {
        s.push_back({static_cast<std::uint8_t>(r.below(cancel_stage::kinds)),
                     static_cast<std::uint8_t>(r.below(5)), static_cast<std::uint8_t>(r.below(8)),
                     r.below(2) == 0});
    }
    return s;
}

task<> play_cancels(const cancel_script& script, cancel_stage& stage, answers& results) {
    for (const cancel_step s : script) {
        co_await stage.one(s, results);
    }
}

/// One lane, because io::cancel_all() would cancel the operations of other lanes.
constexpr game<cancel_script, cancel_stage> cancellations{random_cancel_script, play_cancels, 40,
                                                          1};

TEST(Differential, G3_CancelledOperationsEndTheSameOnAllBackends) {
    compare_all(cancellations, present_backends(),
                static_cast<std::uint64_t>(coil_test::rounds(coil_test::sanitized ? 5 : 50, 1000)));
}

} // namespace

} // namespace conformance
