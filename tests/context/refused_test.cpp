// If io_uring is forbidden and epoll is not allowed either, the exception says why and what to do.

#include "support/fault_environment.hpp"
#include "support/run.hpp"
#include "support/running_backend.hpp"
#include "support/seccomp.hpp"

#include <cerrno>
#include <string>

using namespace coil;

namespace {

constexpr unsigned io_uring_setup = 425;
constexpr unsigned io_uring_enter = 426;

std::string refusal(unsigned error) {
    if (!coil_test::forbid(io_uring_setup, error)) {
        return "no filter";
    }
    try {
        const io_context ctx(coil_test::with([](auto& o) { o.backend = io_backend::io_uring; }));
    } catch (const std::system_error& e) {
        if (e.code().value() != static_cast<int>(error)) {
            return std::string("another code: ") + e.what();
        }
        return e.what();
    }
    return "not refused";
}

TEST(Refused, G11_ByASeccompFilterThatSaysEPERM) {
    COIL_SKIP_UNDER_FAULTS("the fault backend replaces every choice");
    const std::string said = coil_test::in_child([] { return refusal(EPERM); });
    EXPECT_NE(said.find("seccomp"), std::string::npos) << said;
    EXPECT_NE(said.find("io_uring_setup"), std::string::npos) << said;
}

TEST(Refused, G11_ByASeccompFilterThatSaysENOSYS) {
    COIL_SKIP_UNDER_FAULTS("the fault backend replaces every choice");
    const std::string said = coil_test::in_child([] { return refusal(ENOSYS); });
    EXPECT_TRUE(said.find("kernel") != std::string::npos ||
                said.find("blocked") != std::string::npos)
        << said;
}

TEST(Refused, ForbiddenWhileItRuns_TerminatesWithAMessage) {
    COIL_SKIP_ON_EPOLL("it does not enter io_uring");
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    auto waits = []() -> task<> {
        if (coil_test::forbid(io_uring_enter, EPERM)) {
            co_await io::nop();
        }
    };
    EXPECT_DEATH(coil::run(waits()), "io_uring_enter: Operation not permitted.*seccomp");
}

TEST(Refused, TheFirstThreadContinuesIfASecondCannotHaveARing) {
    COIL_NEEDS_IO_URING();
    const std::string said = coil_test::in_child([]() -> std::string {
        auto nap = []() -> task<int> {
            co_await io::nop();
            co_return 7;
        };
        io_context ctx(coil_test::with([](auto& o) { o.backend = io_backend::io_uring; }));
        if (coil_test::run_on(ctx, nap()) != 7) {
            return "first run";
        }
        if (!coil_test::forbid(io_uring_setup, EPERM)) {
            return "no filter";
        }
        // The ring belongs to this thread; another one needs a new ring, which is refused.
        std::string other;
        std::thread([&] {
            try {
                ctx.run();
                other = "not refused";
            } catch (const std::system_error&) {
            }
        }).join();
        if (!other.empty()) {
            return other;
        }
        try {
            ctx.run();
            return "";
        } catch (const std::system_error&) {
            return ""; // an error is acceptable; a crash is not
        }
    });
    EXPECT_EQ(said, "");
}

} // namespace
