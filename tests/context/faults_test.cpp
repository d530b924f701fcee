// A backend that lacks resources, is interrupted or slow: the loop continues and loses nothing
// (G6).

#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include <pthread.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;
using coil::uring::opcode;
using coil_test::door_backend;
using coil_test::scripted_backend;
using coil_test::sqe;

namespace {

class Faults : public ::testing::Test {};

io_context_options scripted(const std::shared_ptr<scripted_backend::script>& script,
                            unsigned entries = 8) {
    return coil_test::with([&](auto& o) {
        o.make_backend = scripted_backend::factory(script);
        o.entries = entries;
        o.idle = idle_policy::park();
    });
}

task<> nops(int count, int& done) {
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(co_await io::nop(), 0);
        ++done;
    }
}

TEST_F(Faults, G6_EveryOtherEnterIsRefused) {
    for (const int error : {EINTR, EAGAIN, EBUSY}) {
        auto script = std::make_shared<scripted_backend::script>();
        script->on_submit = [&](const sqe& e) { script->post(e.user_data, 0); };
        int enters = 0;
        script->refuse_enter = [&](unsigned) { return ++enters % 2 == 0 ? -error : 0; };
        io_context ctx(scripted(script));
        int done = 0;
        for (int i = 0; i < 100; ++i) {
            ctx.co_spawn(nops(3, done));
        }
        ctx.run();
        EXPECT_EQ(done, 300) << error;
    }
}

TEST_F(Faults, G6_TheKernelAcceptsOneEntryAtATime) {
    auto script = std::make_shared<scripted_backend::script>();
    script->on_submit = [&](const sqe& e) { script->post(e.user_data, 0); };
    script->most_per_enter = 1;
    io_context ctx(scripted(script));
    int done = 0;
    for (int i = 0; i < 100; ++i) {
        ctx.co_spawn(nops(3, done));
    }
    ctx.run();
    EXPECT_EQ(done, 300);
}

TEST_F(Faults, G6_HeldBackOperationsAreSubmittedWhenTheQueueHasSpace) {
    // Eight reads fill the queue and wait for the ninth operation, a write, which is held back
    // because the kernel had no memory at that moment. Nothing else will wake the loop.
    for (const int refusals : {1, 2, 3, 4, 5}) {
        auto script = std::make_shared<scripted_backend::script>();
        std::vector<std::uint64_t> reads;
        script->on_submit = [&](const sqe& e) {
            if (e.opcode == static_cast<std::uint8_t>(opcode::read)) {
                reads.push_back(e.user_data);
            } else {
                script->post(e.user_data, 1);
                for (const std::uint64_t r : reads) {
                    script->post(r, 1);
                }
            }
        };
        int left = refusals;
        script->refuse_enter = [&](unsigned to_submit) {
            return to_submit >= 8 && left-- > 0 ? -EAGAIN : 0;
        };
        io_context ctx(scripted(script));
        int done = 0;
        auto read = [](int& n) -> task<> {
            char c;
            n += co_await io::read(3, {&c, 1});
        };
        auto write = [](int& n) -> task<> { n += co_await io::write(3, "x"); };
        for (int i = 0; i < 8; ++i) {
            ctx.co_spawn(read(done));
        }
        ctx.co_spawn(write(done));
        ctx.run();
        EXPECT_EQ(done, 9);
        EXPECT_LE(left, 0);
        EXPECT_GT(ctx.metrics().back_pressure_waits, 0U);
    }
}

TEST_F(Faults, G6_DoesNotSleepBeforeItCanBeWoken) {
    // The queue is full and cannot be flushed when the loop wants to arm its wake-up read.
    auto guard = std::make_shared<door_backend::guard>();
    int refusals = 3;
    guard->before_enter = [&](door_backend&, const std::vector<sqe>& entries, unsigned) {
        return entries.size() >= 8 && refusals-- > 0 ? -EAGAIN : 0;
    };
    const coil_test::pipe_pair p;
    io_context ctx(coil_test::with([&](auto& o) {
        o.make_backend = door_backend::factory(guard);
        o.entries = 8;
        o.idle = idle_policy::park();
    }));
    int done = 0;
    auto read = [](int fd, int& n) -> task<> {
        char c;
        n += co_await io::read(fd, {&c, 1});
    };
    auto write = [](const coil_test::pipe_pair& pipe) -> task<> {
        pipe.put("12345678");
        co_return;
    };
    for (int i = 0; i < 8; ++i) {
        ctx.co_spawn(read(p.in, done));
    }
    const pid_t runner = ::gettid();
    std::thread other([&] {
        coil_test::wait_until_asleep(runner);
        std::this_thread::sleep_for(5ms);
        ctx.co_spawn(write(p));
    });
    ctx.run();
    other.join();
    EXPECT_EQ(done, 8);
    EXPECT_LT(refusals, 3);
}

TEST_F(Faults, G3_ACancelThatDoesNotFitIsSubmittedLater) {
    auto script = std::make_shared<scripted_backend::script>();
    std::uint64_t read = 0;
    int cancels = 0;
    bool refuse = false;
    script->on_submit = [&](const sqe& e) {
        if (e.opcode == static_cast<std::uint8_t>(opcode::async_cancel)) {
            ++cancels;
            script->post(e.user_data, 0);
            script->post(e.addr, -ECANCELED);
        } else if (e.opcode == static_cast<std::uint8_t>(opcode::read)) {
            read = e.user_data;
        } else {
            script->post(e.user_data, 0);
        }
    };
    script->refuse_enter = [&](unsigned to_submit) {
        return refuse && to_submit >= 8 ? -EAGAIN : 0;
    };
    io_context ctx(scripted(script));
    auto reads = []() -> task<int> {
        char c;
        co_return co_await io::read(3, {&c, 1});
    };
    auto nop = []() -> task<> { co_await io::nop(); };
    auto main = [](auto f, auto g, bool& no_memory) -> task<int> {
        auto h = coil::spawn(f());
        co_await sleep_for(1ms);
        no_memory = true;
        for (int i = 0; i < 8; ++i) {
            coil::co_spawn(g());
        }
        co_await yield(); // now the queue is full
        h.cancel();
        no_memory = false;
        co_return co_await h;
    };
    EXPECT_EQ(coil_test::run_on(ctx, main(reads, nop, refuse)), -ECANCELED);
    EXPECT_EQ(cancels, 1);
}

TEST_F(Faults, SignalsDoNotDisturbASleepingContext) {
    struct ::sigaction action{};
    action.sa_handler = [](int) {};
    struct ::sigaction before{};
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
    const coil_test::pipe_pair p;
    io_context ctx;
    auto reads = [](int fd) -> task<int> {
        char c;
        co_return co_await io::read(fd, {&c, 1});
    };
    auto handle = ctx.spawn(reads(p.in));
    const pid_t runner = ::gettid();
    const ::pthread_t self = ::pthread_self();
    std::thread other([&] {
        for (int i = 0; i < 20; ++i) {
            coil_test::wait_until_asleep(runner);
            ::pthread_kill(self, SIGUSR1);
        }
        p.put("x");
    });
    ctx.run();
    other.join();
    ::sigaction(SIGUSR1, &before, nullptr);
    EXPECT_EQ(handle.get(), 1);
}

TEST_F(Faults, AnOpcodeThatTheKernelLacks) {
    // A kernel before 6.11 has no bind and listen, before 5.19 no socket.
    struct old_kernel : uring::backend {
        int setup(unsigned entries, uring::params& p, mapping& m) noexcept override {
            return behind->setup(entries, p, m);
        }
        int enter(unsigned s, unsigned c, unsigned f, const void* a,
                  std::size_t n) noexcept override {
            return behind->enter(s, c, f, a, n);
        }
        int do_register(uring::register_op op, void* arg, unsigned count) noexcept override {
            const int r = behind->do_register(op, arg, count);
            if (op == uring::register_op::probe && r >= 0) {
                auto& answer = *static_cast<uring::probe*>(arg);
                for (unsigned i = static_cast<unsigned>(opcode::socket); i < answer.ops_len; ++i) {
                    answer.ops[i].flags = 0;
                }
                answer.ops[static_cast<unsigned>(opcode::shutdown)].flags = 0;
            }
            return r;
        }
        std::chrono::steady_clock::time_point now() noexcept override { return behind->now(); }
        [[nodiscard]] int native_handle() const noexcept override {
            return behind->native_handle();
        }
        [[nodiscard]] std::string_view name() const noexcept override { return "old"; }
        std::unique_ptr<backend> behind = coil_test::make_running_backend();
    };
    io_context ctx(coil_test::with(
        [](auto& o) { o.make_backend = [] { return std::make_unique<old_kernel>(); }; }));
    auto main = []() -> task<> {
        const int fd = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
        EXPECT_GE(fd, 0);
        ::sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const auto* const a = reinterpret_cast<const ::sockaddr*>(&any);
        EXPECT_EQ(co_await io::bind(fd, a, sizeof any), 0);
        EXPECT_EQ(co_await io::bind(fd, a, sizeof any), -EINVAL); // it is bound already
        EXPECT_EQ(co_await io::listen(fd, 1), 0);
        EXPECT_EQ(co_await io::shutdown(fd, SHUT_RD), 0);
        // Emulated, one call after the other.
        EXPECT_EQ(co_await (io::nop() && io::listen(fd, 1)), 0);
        // A chain that cannot be emulated returns an error and executes none of its operations.
        const std::uint32_t word = 0;
        EXPECT_EQ(co_await (io::close(fd) && io::futex_wait(&word, 0) && io::nop()), -EOPNOTSUPP);
        EXPECT_EQ(co_await io::close(fd), 0);
    };
    coil_test::run_on(ctx, main());
}

} // namespace
