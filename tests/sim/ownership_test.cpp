// G2 from the other side: a program that touches what the kernel has is told so.

#include "sim/support.hpp"

using namespace sim_test;

namespace {

task<> receive_and_meddle(int fd, char* buf) {
    auto receiving = coil::eager(io::recv(fd, std::span(buf, 10)));
    co_await coil::sleep_for(1ms);
    buf[3] = 'x';
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
        FAIL() << "nobody noticed";
    } catch (const sim::violation& v) {
        EXPECT_STREQ(v.what(), "sim: the buffer of recv on descriptor #0 of h was written to while "
                               "the kernel owned it");
    }
}

task<> send_and_meddle(int fd, std::string& data) {
    auto sending = coil::eager(io::send(fd, data));
    co_await coil::sleep_for(1ms);
    data[3] = 'x';
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

} // namespace
