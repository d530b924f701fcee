// accept_multishot: returns every connection once, bounds a flood, and leaks no descriptor.

#include "io/stream_support.hpp"

#include <algorithm>
#include <set>

#include <sys/resource.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::listener;
using io_test::some_turns;

namespace {

class AcceptStream : public io_test::EachFeatureSet {};
COIL_ON_EACH_FEATURE_SET(AcceptStream);

TEST_P(AcceptStream, G1_EachConnectionOnceWithItsFlags) {
    auto main = []() -> task<> {
        const listener l;
        auto connections = io::accept_multishot(l.socket, SOCK_CLOEXEC | SOCK_NONBLOCK);
        for (int i = 0; i < 20; ++i) {
            const descriptor client = l.connect();
            const descriptor peer{co_await connections.next()};
            EXPECT_GE(peer, 0);
            EXPECT_EQ(::fcntl(peer, F_GETFD), FD_CLOEXEC);
            EXPECT_NE(::fcntl(peer, F_GETFL) & O_NONBLOCK, 0);
            EXPECT_EQ(::write(client, "x", 1), 1);
            char byte = 0;
            EXPECT_EQ(co_await io::recv(peer, {&byte, 1}), 1);
        }
    };
    run(main());
}

TEST_P(AcceptStream, G6_AFloodWaitsInTheBacklogNotInMemory) {
    static constexpr std::size_t clients = 120; // more than a stream queues
    auto main = [](bool multishot) -> task<> {
        const listener l;
        auto connections = io::accept_multishot(l.socket);
        EXPECT_EQ(co_await timeout(connections.next(), 0ms), -ETIMEDOUT);
        std::vector<descriptor> all;
        // One connection at a time, so that the stop after 64 queued results takes effect before
        // the request accepts more.
        for (std::size_t i = 0; i < clients; ++i) {
            all.push_back(l.connect());
            co_await some_turns(2);
        }
        const std::size_t before = coil_test::open_descriptors().size();
        for (std::size_t i = 0; i < clients; ++i) {
            auto peer = co_await timeout(connections.next(), 10s);
            EXPECT_TRUE(peer) << i << ": " << peer.error();
            all.emplace_back(*peer);
        }
        // The queued connections had already been accepted.
        const std::size_t accepted_now = coil_test::open_descriptors().size() - before;
        if (multishot) {
            EXPECT_GE(accepted_now, all.size() / 2 - 64 - 8);
        }
        EXPECT_LE(accepted_now, all.size() / 2);
        EXPECT_EQ(co_await timeout(connections.next(), 1ms), -ETIMEDOUT);
    };
    run(main(has_rings()));
}

TEST_P(AcceptStream, AClosedListenerAndAWrongDescriptorAreErrors) {
    auto main = []() -> task<> {
        const coil_test::socket_pair connected;
        auto wrong = io::accept_multishot(connected.a);
        EXPECT_EQ(co_await wrong.next(), -EINVAL);
        EXPECT_EQ(co_await wrong.next(), -EINVAL);
        auto none = io::accept_multishot(-1);
        auto result = co_await none.next();
        EXPECT_FALSE(result);
        EXPECT_EQ(result.error(), std::errc::bad_file_descriptor);
        const listener l;
        auto connections = io::accept_multishot(l.socket);
        EXPECT_EQ(co_await timeout(connections.next(), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await io::shutdown(l.socket, SHUT_RDWR), 0);
        EXPECT_EQ(co_await connections.next(), -EINVAL);
    };
    run(main());
}

TEST_P(AcceptStream, G6_WithoutDescriptorsItReportsThatAndContinuesLater) {
    auto main = []() -> task<> {
        const listener l;
        auto connections = io::accept_multishot(l.socket);
        const descriptor client = l.connect();
        ::rlimit old{};
        ::getrlimit(RLIMIT_NOFILE, &old);
        const std::set<int> open = coil_test::open_descriptors();
        ::rlimit none = old;
        none.rlim_cur = 0;
        ::setrlimit(RLIMIT_NOFILE, &none);
        const auto refused = co_await connections.next();
        ::setrlimit(RLIMIT_NOFILE, &old);
        EXPECT_EQ(refused, -EMFILE);
        const descriptor peer{co_await connections.next()};
        EXPECT_GE(peer, 0);
    };
    run(main());
}

TEST_P(AcceptStream, IntoTheTableOfDirectDescriptors) {
    if (!has_rings()) {
        GTEST_SKIP() << "automatic slots need Linux 5.19";
    }
    auto main = []() -> task<> {
        const listener l;
        std::set<int> slots;
        {
            auto connections = io::accept_multishot_direct(l.socket);
            std::vector<descriptor> clients;
            for (int i = 0; i < 5; ++i) {
                clients.push_back(l.connect());
                auto slot = co_await connections.next();
                EXPECT_TRUE(slot);
                EXPECT_TRUE(slots.insert(*slot).second);
                const io::direct_descriptor peer{*slot};
                EXPECT_EQ(::write(clients.back(), "x", 1), 1);
                char byte = 0;
                EXPECT_EQ(co_await io::recv(peer, {&byte, 1}), 1);
            }
            for (int i = 0; i < 5; ++i) {
                clients.push_back(l.connect()); // not accepted by the program
            }
            co_await some_turns();
        }
        // Their slots were closed, so the same slots are allocated again.
        for (const int slot : slots) {
            EXPECT_EQ(co_await io::close(io::direct_descriptor{slot}), 0);
            EXPECT_EQ(co_await io::close(io::direct_descriptor{slot}), -EBADF);
        }
        for (int slot = 64; slot < 96; ++slot) {
            EXPECT_EQ(co_await io::close(io::direct_descriptor{slot}), -EBADF) << slot;
        }
    };
    run(main());
}

} // namespace
