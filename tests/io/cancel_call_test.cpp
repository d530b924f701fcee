// io::cancel of an operation, of a descriptor, of everything; poll_remove and poll_update.

#include "io/support.hpp"
#include "support/backends.hpp"
#include "support/fault_environment.hpp"

#include <memory>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

using namespace coil;
using namespace std::chrono_literals;
using coil::uring::opcode;
using coil_test::pipe_pair;
using coil_test::run_on;
using coil_test::scripted_backend;
using coil_test::socket_pair;
using coil_test::sqe;

namespace {

class CancelCall : public ::testing::Test {};

TEST_F(CancelCall, EndsAnOperation) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char buf[4];
        auto pending = eager(io::read(pipe.in, buf));
        EXPECT_EQ(co_await io::cancel(pending), 0);
        EXPECT_EQ(co_await pending, -ECANCELED);

        auto complete = eager(io::nop());
        co_await io::nop();
        EXPECT_EQ(co_await io::cancel(complete), -ENOENT);
        EXPECT_EQ(co_await complete, 0);
        EXPECT_EQ(co_await io::cancel(complete), -ENOENT); // also after it was awaited

        auto limited = eager(timeout(io::read(pipe.in, buf), 1h));
        EXPECT_EQ(co_await io::cancel(limited), 0);
        EXPECT_EQ(co_await limited, -ECANCELED);
        auto eager_cancel_target = eager(io::read(pipe.in, buf));
        auto cancels = eager(io::cancel(eager_cancel_target));
        EXPECT_EQ(co_await cancels, 0);
        EXPECT_EQ(co_await eager_cancel_target, -ECANCELED);
        EXPECT_EQ(co_await timeout(io::cancel(eager_cancel_target), 1s), -ENOENT);
    };
    coil::run(main(p));
}

TEST_F(CancelCall, EndsAChain) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char buf[4];
        auto chain = eager(io::nop() && io::read(pipe.in, buf) && io::write(pipe.out, "no"));
        co_await io::nop();
        EXPECT_EQ(co_await io::cancel(chain), 0);
        EXPECT_EQ(co_await chain, -ECANCELED);
        EXPECT_EQ(co_await io::cancel(chain), -ENOENT);
        auto parts = eager(io::fsync(-1) && io::nop()); // the second part is not submitted
        // The chain continues after cancel().
        EXPECT_EQ(co_await (io::cancel(parts) && io::nop()), 0);
        EXPECT_EQ(co_await parts, -ECANCELED);
        int unread = -1;
        EXPECT_EQ(co_await timeout(io::poll(pipe.in, POLLIN), 1ms), -ETIMEDOUT) << unread;
    };
    coil::run(main(p));
}

TEST_F(CancelCall, WhileAWorkerExecutesIt) {
    // The kernel's result is the result of the await.
    auto script = std::make_shared<scripted_backend::script>();
    std::uint64_t read = 0;
    script->on_submit = [&](const sqe& e) {
        if (e.opcode == static_cast<std::uint8_t>(opcode::read)) {
            read = e.user_data;
        } else if (e.opcode == static_cast<std::uint8_t>(opcode::async_cancel)) {
            EXPECT_EQ(e.addr, read);
            script->post(e.user_data, -EALREADY);
            script->post(read, 4);
        }
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = scripted_backend::factory(script); }));
    auto main = []() -> task<> {
        char buf[4];
        auto pending = eager(io::read(3, buf));
        EXPECT_EQ(co_await io::cancel(pending), -EALREADY);
        EXPECT_EQ(co_await pending, 4);
    };
    run_on(ctx, main());
}

TEST_F(CancelCall, ADescriptor_PlainAndDirect) {
    const pipe_pair p;
    const pipe_pair other;
    auto main = [](const pipe_pair& pipe, const pipe_pair& untouched) -> task<> {
        char buf[8];
        EXPECT_EQ(co_await io::cancel(pipe.in), 0); // no operation uses it yet
        auto a = eager(io::read(pipe.in, {buf, 1}));
        auto b = eager(io::poll(pipe.in, POLLIN));
        auto c = eager(io::read(untouched.in, {buf + 1, 1}));
        auto stream = io::poll_multishot(pipe.in, POLLIN);
        EXPECT_EQ(co_await timeout(stream.next(), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await io::cancel(pipe.in), 3);
        EXPECT_EQ(co_await a, -ECANCELED);
        EXPECT_EQ(co_await b, -ECANCELED);
        EXPECT_EQ(co_await stream.next(), -ECANCELED);
        EXPECT_FALSE(c.is_complete());
        EXPECT_EQ(co_await io::cancel(-1), -EBADF);

        const auto slot = co_await io::register_file(pipe.in);
        EXPECT_GE(slot, 0);
        auto direct = eager(io::read(slot, {buf, 1}));
        auto plain = eager(io::read(pipe.in, {buf + 2, 1}));
        const int found = co_await io::cancel(slot);
        EXPECT_EQ(found, 2); // cancel() compares files, not descriptors
        EXPECT_EQ(co_await direct, -ECANCELED);
        EXPECT_EQ(co_await plain, -ECANCELED);
        EXPECT_EQ(co_await io::cancel(io::direct_descriptor{63}), -EBADF);
        c.cancel();
        EXPECT_EQ(co_await c, -ECANCELED);
    };
    coil::run(main(p, other));
}

TEST_F(CancelCall, G8_G9_EverythingExceptTheContextsOwnRequests) {
    const pipe_pair p;
    io_context ctx(coil_test::with([](auto& o) { o.idle = idle_policy::park(); }));
    ctx.start();
    auto cancels = [](const pipe_pair& pipe) -> task<> {
        EXPECT_EQ(co_await io::cancel_all(), 0);
        char buf[4];
        auto a = eager(io::read(pipe.in, buf));
        auto b = eager(timeout(io::poll(pipe.in, POLLIN), 1h));
        auto c = eager(io::nop() && io::read(pipe.in, buf));
        co_await sleep_for(3ms); // so the context sleeps meanwhile
        EXPECT_EQ(co_await io::cancel_all(), 3);
        EXPECT_EQ(co_await a, -ECANCELED);
        EXPECT_EQ(co_await b, -ECANCELED);
        EXPECT_EQ(co_await c, -ECANCELED);
    };
    for (int i = 0; i < 20; ++i) {
        ctx.spawn(cancels(p)).get();
        std::this_thread::sleep_for(1ms); // the context sleeps again; the next spawn wakes it
    }
    ctx.join();
}

TEST_F(CancelCall, G6_IsNotHeldBackByTheBound) {
    const pipe_pair p;
    io_context ctx(coil_test::with([](auto& o) { o.max_in_flight = 1; }));
    auto main = [](const pipe_pair& pipe) -> task<> {
        char buf[4];
        auto in_flight = eager(io::read(pipe.in, {buf, 1}));
        auto queued = eager(io::read(pipe.in, {buf + 1, 1}));
        EXPECT_EQ(co_await io::cancel(queued), 0);
        EXPECT_EQ(co_await queued, -ECANCELED);
        EXPECT_EQ(co_await io::cancel(in_flight), 0);
        EXPECT_EQ(co_await in_flight, -ECANCELED);
        auto another = eager(io::poll(pipe.in, POLLIN));
        auto later = eager(io::nop());
        EXPECT_EQ(co_await io::cancel(pipe.in), 1);
        EXPECT_EQ(co_await another, -ECANCELED);
        EXPECT_EQ(co_await later, 0);
        auto poll = eager(io::poll(pipe.in, POLLIN));
        EXPECT_EQ(co_await io::poll_update(poll, POLLIN | POLLPRI), 0);
        EXPECT_EQ(co_await io::poll_remove(poll), 0);
        EXPECT_EQ(co_await poll, -ECANCELED);
    };
    run_on(ctx, main(p));
    EXPECT_EQ(ctx.metrics().back_pressure_waits, 2U); // only operations that waited
}

TEST_F(CancelCall, PollRemoveAndUpdate) {
    const socket_pair s;
    auto main = [](const socket_pair& pair) -> task<> {
        auto removed = eager(io::poll(pair.a, POLLIN));
        EXPECT_EQ(co_await io::poll_remove(removed), 0);
        EXPECT_EQ(co_await removed, -ECANCELED);
        EXPECT_EQ(co_await io::poll_remove(removed), -ENOENT);
        EXPECT_EQ(co_await io::poll_update(removed, POLLOUT), -ENOENT);

        auto changed = eager(io::poll(pair.a, POLLIN));
        EXPECT_EQ(co_await io::poll_update(changed, POLLOUT), 0);
        EXPECT_EQ(co_await changed, static_cast<int>(POLLOUT));

        char buf[4];
        auto no_poll = eager(io::recv(pair.a, buf));
        EXPECT_EQ(co_await io::poll_remove(no_poll), -ENOENT); // not a poll

        auto stream = io::poll_multishot(pair.a, POLLPRI);
        EXPECT_EQ(co_await io::poll_remove(stream), -ENOENT); // not in flight
        EXPECT_EQ(co_await timeout(stream.next(), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await io::poll_update(stream, POLLOUT), 0);
        EXPECT_EQ(co_await stream.next() & POLLOUT, static_cast<int>(POLLOUT));
        const int removed_stream = co_await io::poll_remove(stream);
        EXPECT_TRUE(removed_stream == 0 ||
                    (removed_stream == -ENOENT && coil_test::under_faults())) // it may have ended
            << removed_stream;
    };
    coil::run(main(s));
}

TEST_F(CancelCall, CountersReportTheCancellations) {
    const pipe_pair p;
    io_context ctx;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char buf[4];
        auto a = eager(io::read(pipe.in, buf));
        auto b = eager(io::nop() && io::read(pipe.in, buf));
        co_await io::nop();
        const context_metrics before = this_context().metrics();
        a.cancel();
        EXPECT_EQ(this_context().metrics().cancels - before.cancels, 1U);
        b.cancel();
        EXPECT_EQ(this_context().metrics().cancels - before.cancels, 3U); // one for each entry
        EXPECT_EQ(co_await a, -ECANCELED);
        EXPECT_EQ(co_await b, -ECANCELED);
        EXPECT_EQ(this_context().metrics().back_pressure_waits, 0U);
        if (!coil_test::under_faults()) { // the fault backend refuses and overflows on purpose
            EXPECT_EQ(this_context().metrics().refusals, 0U);
            EXPECT_EQ(this_context().metrics().overflows, 0U);
        }
    };
    run_on(ctx, main(p));
}

} // namespace
