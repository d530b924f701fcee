// Stop requests from other threads for a task that awaits an eager operation.

#include "io/support.hpp"
#include "support/backends.hpp"

#include <memory>
#include <optional>
#include <thread>

using namespace coil;
using namespace std::chrono_literals;
using coil::uring::opcode;
using coil_test::manual;
using coil_test::pipe_pair;
using coil_test::run_on;
using coil_test::scripted_backend;
using coil_test::sqe;

namespace {

class EagerStop : public ::testing::Test {};

using any_eager = eager_operation<operation::element_type>;

TEST_F(EagerStop, G9_FromAnotherThreadWhileItEnds) {
    const int rounds = coil_test::rounds(200, 5'000);
    const pipe_pair p;
    auto main = [rounds](const pipe_pair& pipe) -> task<> {
        auto waits = [](any_eager& op) -> task<int> { co_return co_await op; };
        for (int i = 0; i < rounds; ++i) {
            char c = 0;
            auto pending = std::make_unique<any_eager>(io::read(pipe.in, {&c, 1}));
            auto first = spawn(waits(*pending));
            co_await yield();
            std::thread other([&] { first.cancel(); });
            if (i % 2 == 0) {
                co_await yield();
                pipe.put("x"); // it may still complete first
            }
            const int result = co_await first;
            other.join();
            pending.reset();
            if (result == -ECANCELED && i % 2 == 0) {
                EXPECT_EQ(::read(pipe.in, &c, 1), 1);
            } else if (i % 2 != 0) {
                EXPECT_EQ(result, -ECANCELED);
            }
        }
    };
    coil::run(main(p));
}

task<int> awaits(any_eager& op) { co_return co_await op; }

manual awaits_until_stopped(any_eager& op, inplace_stop_source& source, std::optional<int>& r) {
    r = co_await with_stop_token(awaits(op), source.get_token());
}

/// The second awaiter also waits until a concurrent stop request has been processed: its inbox node
/// is part of the operation, which may be destroyed once the awaiter has resumed.
TEST_F(EagerStop, G1_ANewAwaiterDoesNotResumeBeforeAStopWasDelivered) {
    auto script = std::make_shared<scripted_backend::script>();
    std::uint64_t reads[2] = {}; // of descriptor 3 and 4
    script->on_submit = [&](const sqe& e) {
        if (e.opcode == static_cast<std::uint8_t>(opcode::read)) {
            reads[e.fd - 3] = e.user_data;
        } else {
            script->post(e.user_data, 0);
        }
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = scripted_backend::factory(script); }));
    const auto request_stop = [](inplace_stop_source& source) {
        std::thread([&] { source.request_stop(); }).join();
    };
    auto main = [&]() -> task<> {
        char c;
        any_eager pending(io::read(3, {&c, 1}));
        co_await io::nop();
        inplace_stop_source source1;
        inplace_stop_source source2;
        std::optional<int> unused;
        std::optional<int> result;
        {
            const manual first = awaits_until_stopped(pending, source1, unused);
            first.start();
            request_stop(source1);
            co_await io::nop(); // cancellation is requested; the kernel delays it
        }
        const manual second = awaits_until_stopped(pending, source2, result);
        second.start();
        request_stop(source2); // in the inbox
        script->on_wait = [&] {
            if (reads[1] != 0) {
                script->post(reads[0], -ECANCELED);
                script->post(std::exchange(reads[1], 0), -ECANCELED);
            }
        };
        {
            const auto dropped = eager(io::read(4, {&c, 1}));
        } // processes completions, but not the inbox
        EXPECT_TRUE(pending.is_complete());
        co_await yield();
        EXPECT_EQ(result, std::nullopt); // its stop is still in the inbox
        co_await io::nop();
        EXPECT_EQ(result, -ECANCELED);
        EXPECT_EQ(unused, std::nullopt);
    };
    run_on(ctx, main());
}

} // namespace
