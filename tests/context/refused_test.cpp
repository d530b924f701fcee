// Where io_uring is forbidden the exception says why and what to do.

#include "support/run.hpp"

#include <cerrno>
#include <string>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

using namespace coil;

namespace {

/// From now on this process is refused new rings.
bool forbid_rings(unsigned error, unsigned call = 425 /* io_uring_setup */) {
    ::sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), // the number of the call
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const ::sock_fprog filter{sizeof program / sizeof *program, program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

std::string refusal(unsigned error) {
    if (!forbid_rings(error)) {
        return "no filter";
    }
    auto nothing = []() -> task<> { co_return; };
    try {
        coil::run(nothing());
    } catch (const std::system_error& e) {
        if (e.code().value() != static_cast<int>(error)) {
            return std::string("another code: ") + e.what();
        }
        return e.what();
    }
    return "not refused";
}

TEST(Refused, G11_ByASeccompFilterThatSaysEPERM) {
    const std::string said = coil_test::in_child([] { return refusal(EPERM); });
    EXPECT_NE(said.find("seccomp"), std::string::npos) << said;
    EXPECT_NE(said.find("io_uring_setup"), std::string::npos) << said;
}

TEST(Refused, G11_ByASeccompFilterThatSaysENOSYS) {
    const std::string said = coil_test::in_child([] { return refusal(ENOSYS); });
    EXPECT_TRUE(said.find("kernel") != std::string::npos ||
                said.find("blocked") != std::string::npos)
        << said;
}

TEST(Refused, TakenAwayWhileItRuns_EndsWithAMessage) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    auto waits = []() -> task<> {
        constexpr unsigned io_uring_enter = 426;
        if (forbid_rings(EPERM, io_uring_enter)) {
            co_await io::nop();
        }
    };
    EXPECT_DEATH(coil::run(waits()), "io_uring_enter: Operation not permitted.*seccomp");
}

TEST(Refused, ASecondThreadThatCannotHaveARing_TheFirstRunsOn) {
    const std::string said = coil_test::in_child([]() -> std::string {
        auto nap = []() -> task<int> {
            co_await io::nop();
            co_return 7;
        };
        io_context ctx;
        if (coil_test::run_on(ctx, nap()) != 7) {
            return "first run";
        }
        if (!forbid_rings(EPERM)) {
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
            return ""; // an error is fine, too; a crash is not
        }
    });
    EXPECT_EQ(said, "");
}

} // namespace
