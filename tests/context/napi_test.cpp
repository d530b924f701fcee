// NAPI busy polling as an option of a context: what is registered with the ring, and that a context
// whose kernel refuses it works without.

#include "support/backends.hpp"
#include "support/fault_environment.hpp"
#include "support/run.hpp"

#include <coil/net/acceptor.hpp>
#include <coil/net/connect.hpp>

#include <cerrno>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coil;
using namespace coil_test;
using uring::register_op;

/// A kernel that records what is registered, and decides what it accepts.
struct napi_kernel {
    std::vector<uring::napi> requests;
    unsigned withdrawals = 0;
    std::function<int(const uring::napi&)> answer = [](const uring::napi&) { return 0; };
};

/// The running kernel, except for NAPI.
class napi_backend final : public uring::backend {
public:
    explicit napi_backend(std::shared_ptr<napi_kernel> kernel) : kernel_(std::move(kernel)) {}

    static detail::backend_factory factory(std::shared_ptr<napi_kernel> kernel) {
        return [kernel] { return std::make_unique<napi_backend>(kernel); };
    }

    int setup(unsigned entries, uring::params& p, mapping& m) noexcept override {
        return behind_->setup(entries, p, m);
    }
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t size) noexcept override {
        return behind_->enter(to_submit, min_complete, flags, arg, size);
    }
    int do_register(register_op op, void* arg, unsigned count) noexcept override {
        if (op == register_op::napi) {
            EXPECT_EQ(count, 1U);
            auto& request = *static_cast<uring::napi*>(arg);
            kernel_->requests.push_back(request);
            const int result = kernel_->answer(request);
            request = {}; // the kernel returns its previous settings
            return result;
        }
        if (op == register_op::unregister_napi) {
            ++kernel_->withdrawals;
            return 0;
        }
        return behind_->do_register(op, arg, count);
    }
    std::chrono::steady_clock::time_point now() noexcept override { return behind_->now(); }
    [[nodiscard]] int native_handle() const noexcept override { return behind_->native_handle(); }
    [[nodiscard]] bool posts_asynchronously() const noexcept override {
        return behind_->posts_asynchronously();
    }
    [[nodiscard]] std::string_view name() const noexcept override { return "napi"; }

private:
    std::shared_ptr<napi_kernel> kernel_;
    std::unique_ptr<backend> behind_ = make_running_backend();
};

io_context_options options_with(napi_options napi, std::shared_ptr<napi_kernel> kernel) {
    io_context_options options;
    options.entries = 16;
    options.idle = idle_policy::park();
    options.napi = std::move(napi);
    options.make_backend = napi_backend::factory(std::move(kernel));
    return options;
}

/// A connection over loopback that echoes a few messages.
task<int> echoed() {
    net::acceptor listener{net::inet_address{"127.0.0.1", 0}};
    net::socket client = net::socket::create_tcp();
    auto connecting =
        spawn([&]() -> task<int> { co_return co_await client.connect(listener.local_address()); });
    net::socket server = co_await listener.accept();
    int sum = co_await connecting;
    for (int round = 0; round < 20; ++round) {
        char byte = static_cast<char>(round);
        co_await sleep_for(100us); // the receive has to wait, in the kernel
        auto sending = spawn([&]() -> task<int> { co_return co_await client.send({&byte, 1}); });
        char received = -1;
        sum += co_await server.recv({&received, 1});
        sum += co_await sending;
        EXPECT_EQ(received, byte);
    }
    co_return sum;
}

TEST(Napi, IsNotRegisteredUnlessRequested) {
    const auto kernel = std::make_shared<napi_kernel>();
    io_context ctx(options_with({}, kernel));
    EXPECT_EQ(run_on(ctx, echoed()), 40);
    EXPECT_TRUE(kernel->requests.empty());
    EXPECT_EQ(ctx.metrics().napi_busy_polling, 0U);
}

TEST(Napi, DynamicTrackingIsRegisteredWithTheRing) {
    const auto kernel = std::make_shared<napi_kernel>();
    io_context ctx(options_with({.busy_poll = 50'999ns, .prefer_busy_poll = true}, kernel));
    EXPECT_EQ(run_on(ctx, echoed()), 40);
    EXPECT_EQ(run_on(ctx, echoed()), 40);
    ASSERT_EQ(kernel->requests.size(), 1U);
    const uring::napi& request = kernel->requests[0];
    EXPECT_EQ(request.busy_poll_to, 50U);
    EXPECT_EQ(request.prefer_busy_poll, 1U);
    EXPECT_EQ(request.opcode, uring::napi_op::register_);
    EXPECT_EQ(request.op_param, uring::napi_tracking::dynamic);
    // Linux 6.9 to 6.12 require that everything else is zero.
    EXPECT_EQ(request.pad[0] + request.pad[1] + request.resv, 0U);
    EXPECT_EQ(ctx.metrics().napi_busy_polling, 1U);
}

TEST(Napi, IdsAreRegisteredForStaticTracking) {
    const auto kernel = std::make_shared<napi_kernel>();
    io_context ctx(options_with({.busy_poll = 20us, .ids = {8193, 8200}}, kernel));
    ctx.run();
    ASSERT_EQ(kernel->requests.size(), 3U);
    EXPECT_EQ(kernel->requests[0].opcode, uring::napi_op::register_);
    EXPECT_EQ(kernel->requests[0].op_param, uring::napi_tracking::static_);
    for (const auto& [at, id] : {std::pair{1, 8193U}, std::pair{2, 8200U}}) {
        EXPECT_EQ(kernel->requests[static_cast<std::size_t>(at)].opcode,
                  uring::napi_op::static_add_id);
        EXPECT_EQ(kernel->requests[static_cast<std::size_t>(at)].op_param, id);
    }
    EXPECT_EQ(kernel->withdrawals, 0U);
    EXPECT_EQ(ctx.metrics().napi_busy_polling, 1U);
}

TEST(Napi, TheTimeIsLimited) {
    const auto kernel = std::make_shared<napi_kernel>();
    io_context negative(options_with({.busy_poll = -1us}, kernel));
    negative.run();
    io_context tiny(options_with({.busy_poll = 999ns}, kernel));
    tiny.run();
    EXPECT_TRUE(kernel->requests.empty());
    io_context endless(options_with({.busy_poll = std::chrono::nanoseconds::max()}, kernel));
    endless.run();
    ASSERT_EQ(kernel->requests.size(), 1U);
    EXPECT_EQ(kernel->requests[0].busy_poll_to, 1'000'000U);
}

TEST(Napi, AContextWorksWithoutIt) {
    for (const int refusal : {-EINVAL, -ENOSYS, -EOPNOTSUPP, -EPERM}) {
        const auto kernel = std::make_shared<napi_kernel>();
        kernel->answer = [=](const uring::napi&) { return refusal; };
        io_context ctx(options_with({.busy_poll = 50us}, kernel));
        EXPECT_EQ(run_on(ctx, echoed()), 40);
        EXPECT_EQ(kernel->requests.size(), 1U);
        EXPECT_EQ(ctx.metrics().napi_busy_polling, 0U);
    }
}

TEST(Napi, ARefusedIdWithdrawsTheRegistration) {
    const auto kernel = std::make_shared<napi_kernel>();
    kernel->answer = [](const uring::napi& request) {
        return request.opcode == uring::napi_op::static_add_id && request.op_param == 2 ? -EINVAL
                                                                                        : 0;
    };
    io_context ctx(options_with({.busy_poll = 50us, .ids = {8193, 2, 8194}}, kernel));
    EXPECT_EQ(run_on(ctx, echoed()), 40);
    EXPECT_EQ(kernel->requests.size(), 3U);
    EXPECT_EQ(kernel->withdrawals, 1U);
    EXPECT_EQ(ctx.metrics().napi_busy_polling, 0U);
}

TEST(Napi, ANewRingIsRegisteredAgain) {
    const auto kernel = std::make_shared<napi_kernel>();
    io_context ctx(options_with({.busy_poll = 50us}, kernel));
    EXPECT_EQ(run_on(ctx, echoed()), 40);
    EXPECT_EQ(kernel->requests.size(), 1U);
    kernel->answer = [](const uring::napi&) { return -EINVAL; };
    std::thread([&] { EXPECT_EQ(run_on(ctx, echoed()), 40); }).join();
    EXPECT_EQ(kernel->requests.size(), 2U); // a ring is bound to its thread
    EXPECT_EQ(ctx.metrics().napi_busy_polling, 0U);
}

// The running kernel. Loopback has no NAPI instance that could be polled, so this shows that the
// registration is accepted and harmless, not that it lowers the latency.
TEST(Napi, TheRunningKernel) {
    COIL_SKIP_ON_EPOLL("it has no device to poll");
    COIL_SKIP_UNDER_FAULTS("it calls the kernel's registration");
    uring::ring trial(4);
    uring::napi request{};
    request.busy_poll_to = 1;
    if (trial.get_backend().do_register(register_op::napi, &request, 1) < 0) {
        GTEST_SKIP() << "this kernel refuses NAPI busy polling (Linux 6.9)";
    }
    io_context_options options;
    options.idle = idle_policy::park();
    options.napi = {.busy_poll = 50us, .prefer_busy_poll = true};
    io_context ctx(options);
    EXPECT_EQ(run_on(ctx, echoed()), 40);
    EXPECT_EQ(ctx.metrics().napi_busy_polling, 1U);
    // The setting is that of the context's ring: the kernel returns the previous one.
    const auto previous = [&]() -> task<uring::napi> {
        uring::napi settings{};
        uring::backend& backend = this_context().loop().ring().get_backend();
        EXPECT_EQ(backend.do_register(register_op::unregister_napi, &settings, 1), 0);
        co_return settings;
    };
    const uring::napi settings = run_on(ctx, previous());
    EXPECT_EQ(settings.busy_poll_to, 50U);
    EXPECT_EQ(settings.prefer_busy_poll, 1U);
    EXPECT_EQ(run_on(ctx, echoed()), 40);
}

TEST(Napi, TheEpollBackendWorksWithoutIt) {
    COIL_SKIP_UNDER_FAULTS("a fault backend replaces the epoll backend");
    io_context_options options;
    options.backend = io_backend::epoll;
    options.napi.busy_poll = 50us;
    io_context ctx(options);
    EXPECT_EQ(run_on(ctx, echoed()), 40);
    EXPECT_EQ(ctx.metrics().napi_busy_polling, 0U);
}

TEST(Napi, TheTextOfTheMetricsNamesIt) {
    context_metrics m;
    EXPECT_EQ(to_string(m).find("NAPI"), std::string::npos);
    m.napi_busy_polling = 1;
    EXPECT_NE(to_string(m).find("NAPI busy polling"), std::string::npos);
}

} // namespace
