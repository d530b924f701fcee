// G2: a world reports that the program has accessed memory that the kernel owns.

#include "sim/support.hpp"

#include <memory>

#if defined(__SANITIZE_ADDRESS__)
#define SIM_TEST_HAS_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_TEST_HAS_ADDRESS_SANITIZER
#endif
#endif

using namespace sim_test;

namespace {

/// Not instrumented by AddressSanitizer, which would end the process before the world detects it.
[[gnu::no_sanitize_address, gnu::noinline]] void scribble(char* at) { *at = 'x'; }

task<> receive_and_meddle(int fd, char* buf) {
    auto receiving = coil::eager(io::recv(fd, std::span(buf, 10)));
    co_await coil::sleep_for(1ms);
    scribble(buf + 3);
    co_await receiving;
}

TEST(SimOwnership, G2_AReceiveBufferThatIsWrittenToEndsTheRun) {
    sim::world w{1};
    sim::host& h = w.host("h");
    const auto [a, b] = h.socket_pair(SOCK_STREAM);
    char buf[10] = {};
    h.co_spawn(receive_and_meddle(a, buf));
    w.after(2ms, [&h, fd = b] { h.perform(coil::uring::prep::send(fd, "hello", 5, 0)); });
    try {
        w.run();
        FAIL() << "the violation was not detected";
    } catch (const sim::violation& v) {
        EXPECT_STREQ(v.what(), "sim: the buffer of recv on descriptor #0 of h was written to while "
                               "the kernel owned it");
    }
}

task<> send_and_meddle(int fd, std::string& data) {
    auto sending = coil::eager(io::send(fd, data));
    co_await coil::sleep_for(1ms);
    scribble(&data[3]);
    co_await sending;
}

TEST(SimOwnership, G2_ASendBufferThatIsWrittenToEndsTheRun) {
    sim::world_options options;
    options.socket_buffer = 1000;
    sim::world w(1, options);
    sim::host& h = w.host("h");
    const auto [a, b] = h.socket_pair(SOCK_STREAM);
    const std::string filler(1000, '.');
    h.perform(coil::uring::prep::send(a, filler.data(), filler.size(), 0));
    std::string data(100, '.');
    h.co_spawn(send_and_meddle(a, data));
    w.after(2ms, [&h, fd = b] {
        char buf[1000];
        h.perform(coil::uring::prep::recv(fd, buf, sizeof buf, 0));
    });
    EXPECT_THROW(w.run(), sim::violation);
}

/// A world watches only pieces of a large buffer, and different ones over time.
task<> send_much_and_meddle(int fd, std::string& data, std::size_t where) {
    auto sending = coil::eager(io::send(fd, data));
    co_await coil::sleep_for(1ms);
    scribble(&data[where]);
    co_await sending;
}

bool notices_in_much(std::size_t size, std::size_t where) {
    sim::world_options options;
    options.socket_buffer = 1000;
    sim::world w(1, options);
    sim::host& h = w.host("h");
    const auto [a, b] = h.socket_pair(SOCK_STREAM);
    const std::string before(1000, '.');
    h.perform(coil::uring::prep::send(a, before.data(), before.size(), 0));
    std::string data(size, '.');
    h.co_spawn(send_much_and_meddle(a, data, where));
    w.after(2ms, [&h, fd = b] {
        char buf[1000];
        h.perform(coil::uring::prep::recv(fd, buf, sizeof buf, 0));
    });
    try {
        w.run();
    } catch (const sim::violation&) {
        return true;
    }
    return false;
}

TEST(SimOwnership, G2_OfALargeBufferTheEdgesAndSomePiecesAreWatched) {
    EXPECT_TRUE(notices_in_much(4000, 3999));
    EXPECT_TRUE(notices_in_much(100'000, 0));
    EXPECT_TRUE(notices_in_much(100'000, 99'999));
    unsigned noticed = 0;
    for (std::size_t where = 1024; where < 5120 - 1024; where += 64) {
        noticed += notices_in_much(5120, where) ? 1 : 0;
    }
    EXPECT_GT(noticed, 10U);
}

task<> receive_parts_and_meddle(int fd, char* first, char* second) {
    const ::iovec parts[] = {{first, 10}, {second, 10}};
    auto receiving = coil::eager(io::readv(fd, parts));
    co_await coil::sleep_for(1ms);
    scribble(second + 9);
    co_await receiving;
}

TEST(SimOwnership, G2_EveryPartOfAVectorIsWatched) {
    sim::world w{1};
    sim::host& h = w.host("h");
    const auto [a, b] = h.socket_pair(SOCK_STREAM);
    char first[10] = {};
    char second[10] = {};
    h.co_spawn(receive_parts_and_meddle(a, first, second));
    w.after(2ms, [&h, fd = b] { h.perform(coil::uring::prep::send(fd, "hello", 5, 0)); });
    EXPECT_THROW(w.run(), sim::violation);
}

#ifdef SIM_TEST_HAS_ADDRESS_SANITIZER
task<> receive_and_look(int fd, char* buf, int& seen) {
    auto receiving = coil::eager(io::recv(fd, std::span(buf, 20'000)));
    co_await coil::sleep_for(1ms);
    seen = buf[9000];
    co_await receiving;
}

void look_at_a_receive_buffer() {
    std::string buf(20'000, '.');
    int seen = 0;
    sim::world w{1};
    sim::host& h = w.host("h");
    h.co_spawn(receive_and_look(h.socket_pair(SOCK_STREAM).first, buf.data(), seen));
    w.run();
}

task<> receive_and_free(int fd, std::unique_ptr<char[]> buf) {
    auto receiving = coil::eager(io::recv(fd, std::span(buf.get(), 100)));
    co_await coil::sleep_for(1ms);
    buf.reset();
    co_await receiving;
}

void free_a_receive_buffer() {
    sim::world w{1};
    sim::host& h = w.host("h");
    const auto [a, b] = h.socket_pair(SOCK_STREAM);
    h.co_spawn(receive_and_free(a, std::make_unique<char[]>(100)));
    w.after(2ms, [&h, fd = b] { h.perform(coil::uring::prep::send(fd, "hello", 5, 0)); });
    w.run();
}

TEST(SimOwnershipDeathTest, G2_WithAddressSanitizerABufferThatIsFreedIsNamed) {
    EXPECT_DEATH(free_a_receive_buffer(), "recv on descriptor #0 of h was freed while the kernel");
}

TEST(SimOwnershipDeathTest, G2_AddressSanitizerReportsAccessToAReceiveBuffer) {
    EXPECT_DEATH(look_at_a_receive_buffer(), "use-after-poison.*");
}
#endif

} // namespace
