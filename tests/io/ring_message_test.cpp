// msg_ring: posts to other rings, never to the ring of a context.

#include "io/support.hpp"
#include "support/backends.hpp"

#include <coil/uring/ring.hpp>

#include <memory>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::door_backend;

namespace {

/// A ring on the backend that the contexts use.
struct ring_of_ours : uring::ring {
    ring_of_ours() : uring::ring(options(), coil_test::make_running_backend()) {}
    static uring::ring_options options() {
        uring::ring_options small;
        small.entries = 8;
        return small;
    }
};

class RingMessage : public io_test::Calls {
protected:
    void SetUp() override { need(uring::opcode::msg_ring, "messages"); }
};

TEST_F(RingMessage, ArrivesAsACompletion) {
    ring_of_ours target;
    EXPECT_EQ(result_of(io::msg_ring(target.native_handle(), 17, 0xfeedfacecafebeefULL)), 0);
    ASSERT_EQ(target.wait(1s), 0);
    const uring::cqe* const c = target.peek();
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->user_data, 0xfeedfacecafebeefULL);
    EXPECT_EQ(c->res, 17);
    target.advance();
}

TEST_F(RingMessage, ADescriptorThatIsNotARingIsRefused) {
    const coil_test::pipe_pair p;
    EXPECT_EQ(result_of(io::msg_ring(p.in, 1, 1)), -EBADFD);
    EXPECT_EQ(result_of(io::msg_ring(-1, 1, 1)), -EBADF);
}

TEST_F(RingMessage, G1_AContextsRingAcceptsNoMessage) {
    // The rings of another context and of the sending one both refuse messages, in the first run
    // and in a later run on another thread.
    io_context other;
    const auto ring_of = [](io_context& c) { return c.loop().ring().native_handle(); };
    EXPECT_EQ(result_of(io::msg_ring(ring_of(other), 1, 8)), -EBADF);
    EXPECT_EQ(result_of(io::msg_ring(ring_of(context_), 1, 8)), -EBADF);
    auto sleeps = []() -> task<int> { co_return co_await sleep_for(1ms); };
    auto main = [](int fd) -> task<int> { co_return co_await io::msg_ring(fd, 1, 8); };
    EXPECT_EQ(coil_test::run_on(other, sleeps()), 0);
    other.start();
    auto reopened = other.spawn(sleeps());
    reopened.get();
    EXPECT_EQ(result_of(io::msg_ring(ring_of(other), 1, 8)), -EBADF);
    auto own = other.spawn(main(ring_of(other)));
    EXPECT_EQ(own.get(), -EBADF);
    other.stop();
    other.join();
}

TEST_F(RingMessage, AReusedDescriptorNumberOfAContextsRingIsAccepted) {
    int fd = -1;
    {
        io_context gone;
        fd = gone.loop().ring().native_handle();
    }
    ring_of_ours target;
    if (target.native_handle() != fd) {
        GTEST_SKIP() << "the descriptor number was not reused";
    }
    EXPECT_EQ(result_of(io::msg_ring(fd, 3, 4)), 0);
}

TEST_F(RingMessage, WithoutTheOpcodeItIsNotSupported) {
    auto guard = std::make_shared<door_backend::guard>();
    guard->hidden = {uring::opcode::msg_ring};
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    ring_of_ours target;
    EXPECT_EQ(
        coil_test::run_on(ctx, io_test::await_one(io::msg_ring(target.native_handle(), 1, 2))),
        -EOPNOTSUPP);
}

} // namespace
