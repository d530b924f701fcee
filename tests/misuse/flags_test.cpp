// A length that is passed as the flags of send and recv.

#include "support/printed.hpp"
#include "support/run.hpp"

#include <string>
#include <utility>

#include <sys/socket.h>

using namespace coil;
using namespace coil_test;

namespace {

/// Sends and receives ten bytes with these flags. They are variables, because the compiler would
/// warn about constants.
std::string printed_with_flags(int sent, int received) {
    return printed_by([=] {
        run([](int sent_flags, int received_flags) -> task<> {
            auto [left, right] = net::socket::pair();
            char buf[64] = {};
            EXPECT_EQ(co_await left.send("0123456789", sent_flags), 10);
            EXPECT_EQ(co_await right.recv(buf, received_flags), 10);
        }(sent, received));
    });
}

std::string says(int flags) {
    const std::string number = std::to_string(flags);
    return "coil: the flags of a send or recv are " + number +
           ", which may be a length\\. The argument after the buffer is the flags; the length is "
           "part of the buffer: send\\(\\{data, " +
           number + "\\}\\)\\.\n";
}

// mistake 21: `peer.send(buf, n)` or `peer.recv(buf, n)` with a variable n of type int
// shows: `the flags of a send or recv are 10, which may be a length`
TEST(LengthAsFlags, IsReportedOnceForEachNumber) {
    expect_printed(printed_with_flags(10, 512), says(10) + says(512));
    EXPECT_EQ(printed_with_flags(512, 10), "");
}

TEST(LengthAsFlags, FlagsAreNotReported) {
    EXPECT_EQ(printed_with_flags(MSG_NOSIGNAL | MSG_DONTWAIT, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), "");
    EXPECT_EQ(printed_with_flags(0, 64), ""); // 64 is MSG_DONTWAIT as well as the length
}

} // namespace
