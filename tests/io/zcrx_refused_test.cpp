// A zcrx_queue that cannot be set up: the error names the cause, and nothing stays behind.

#include "support/fault_environment.hpp"
#include "support/run.hpp"
#include "support/running_backend.hpp"
#include "support/zcrx_backend.hpp"

#include <coil/io/zcrx.hpp>
#include <coil/sim/world.hpp>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace coil;
using namespace coil_test;

std::ptrdiff_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
}

/// The error of a queue with these options, constructed by a task.
std::system_error refusal_of(const zcrx_options& options) {
    std::system_error error{0, std::generic_category(), "no error"};
    const auto attempt = [&]() -> task<> {
        try {
            const zcrx_queue queue(options);
        } catch (const std::system_error& e) {
            error = e;
        }
        co_return;
    };
    io_context ctx;
    run_on(ctx, attempt());
    return error;
}

zcrx_options options_with(const std::shared_ptr<zcrx_kernel>& kernel) {
    zcrx_options options;
    options.interface = "lo";
    options.area_size = 16 * zcrx_kernel::page;
    options.make_backend = [kernel] { return std::make_unique<zcrx_backend>(kernel); };
    return options;
}

bool says(const std::system_error& e, std::string_view text) {
    return std::string_view(e.what()).find(text) != std::string_view::npos;
}

TEST(ZcrxRefused, EachErrorNamesItsCause) {
    struct {
        int error;
        std::string_view cause;
    } const cases[] = {{EPERM, "CAP_NET_ADMIN"},
                       {EOPNOTSUPP, "does not support zero-copy receive"},
                       {EINVAL, "tcp-data-split"},
                       {ERANGE, "no such receive queue"},
                       {EEXIST, "used by another program"},
                       {EBUSY, "used by another program"},
                       {ENOMEM, "RLIMIT_MEMLOCK"},
                       {EFAULT, "the registration failed"}};
    for (const auto& [code, cause] : cases) {
        const auto kernel = std::make_shared<zcrx_kernel>();
        kernel->refuse_registration = [error = code](const uring::zcrx_ifq_reg&) { return -error; };
        const std::system_error e = refusal_of(options_with(kernel));
        EXPECT_EQ(e.code(), std::error_code(code, std::generic_category()));
        EXPECT_TRUE(says(e, cause)) << e.what();
        EXPECT_TRUE(says(e, "queue 0 of 'lo'")) << e.what();
        EXPECT_FALSE(kernel->is_open);
    }
}

TEST(ZcrxRefused, AKernelWithoutSuchRings) {
    const auto kernel = std::make_shared<zcrx_kernel>();
    kernel->refuse_setup = -EINVAL;
    const std::system_error e = refusal_of(options_with(kernel));
    EXPECT_EQ(e.code(), std::errc::invalid_argument);
    EXPECT_TRUE(says(e, "Linux 6.1")) << e.what();
}

TEST(ZcrxRefused, ADescriptorIsNotLeaked) {
    const std::ptrdiff_t before = open_descriptors();
    const auto kernel = std::make_shared<zcrx_kernel>();
    kernel->refuse_eventfd = -ENOMEM;
    EXPECT_EQ(refusal_of(options_with(kernel)).code(), std::errc::not_enough_memory);
    EXPECT_EQ(open_descriptors(), before);
}

// The running kernel. Loopback has no hardware queue, so the registration always fails.
TEST(ZcrxRefused, LoopbackHasNoHardwareQueue) {
    COIL_NEEDS_IO_URING();
    COIL_SKIP_UNDER_FAULTS("it calls the kernel's registration");
    const std::ptrdiff_t before = open_descriptors();
    zcrx_options options;
    options.interface = "lo";
    options.area_size = 16 * zcrx_kernel::page;
    const std::system_error e = refusal_of(options);
    const int code = e.code().value();
    // EPERM without CAP_NET_ADMIN; EINVAL before Linux 6.15.
    EXPECT_TRUE(code == EOPNOTSUPP || code == EPERM || code == EINVAL) << e.what();
    EXPECT_TRUE(says(e, "queue 0 of 'lo'")) << e.what();
    EXPECT_EQ(open_descriptors(), before);
}

TEST(ZcrxRefused, AnInterfaceThatDoesNotExist) {
    zcrx_options options;
    options.interface = "no-such-if0";
    const std::system_error e = refusal_of(options);
    EXPECT_EQ(e.code(), std::errc::no_such_device);
    EXPECT_TRUE(says(e, "'no-such-if0': there is no such interface")) << e.what();
}

TEST(ZcrxRefused, ASimulatedWorldHasNoDevices) {
    sim::world world(1);
    int code = 0;
    world.host("a").co_spawn([](int& out) -> task<> {
        try {
            const zcrx_queue queue({.interface = "lo"});
        } catch (const std::system_error& e) {
            out = e.code().value();
        }
        co_return;
    }(code));
    world.run();
    EXPECT_EQ(code, EOPNOTSUPP);
}

// The ring of the context is closed when the context runs on another thread.
TEST(ZcrxRefused, AQueueWhoseContextHasMovedIsClosed) {
    const auto kernel = std::make_shared<zcrx_kernel>();
    io_context ctx;
    std::unique_ptr<zcrx_queue> queue;
    std::unique_ptr<io::recv_zc_stream> incoming;
    const auto open = [&]() -> task<> {
        queue = std::make_unique<zcrx_queue>(options_with(kernel));
        incoming = std::make_unique<io::recv_zc_stream>(100, *queue);
        kernel->arrive(100, "a");
        EXPECT_TRUE(co_await incoming->next());
    };
    run_on(ctx, open());
    const auto next = [&]() -> task<int> { co_return (co_await incoming->next()).result(); };
    std::thread([&] { EXPECT_EQ(run_on(ctx, next()), -EBADF); }).join();
    EXPECT_FALSE(kernel->is_open);
}

TEST(ZcrxRefused, AStreamBelongsToTheContextOfItsQueue) {
    const auto kernel = std::make_shared<zcrx_kernel>();
    io_context ctx;
    std::unique_ptr<zcrx_queue> queue;
    const auto open = [&]() -> task<> {
        queue = std::make_unique<zcrx_queue>(options_with(kernel));
        co_return;
    };
    run_on(ctx, open());
    io_context other;
    const auto next = [&]() -> task<int> {
        auto incoming = io::recv_zc_multishot(100, *queue);
        co_return (co_await incoming.next()).result();
    };
    EXPECT_EQ(run_on(other, next()), -EXDEV);
}

TEST(ZcrxRefused, ADirectDescriptorIsOfAnotherRing) {
    const auto kernel = std::make_shared<zcrx_kernel>();
    io_context ctx;
    const auto next = [&]() -> task<int> {
        zcrx_queue queue(options_with(kernel));
        auto incoming = io::recv_zc_multishot(io::direct_descriptor{0}, queue);
        co_return (co_await incoming.next()).result();
    };
    EXPECT_EQ(run_on(ctx, next()), -EBADF);
}

} // namespace
