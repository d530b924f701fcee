// If membarrier(2) is refused, light fences are full ones, and pools still work.

#include "support/run.hpp"
#include "support/seccomp.hpp"

#include <coil/exec/detail/fences.hpp>
#include <coil/exec/thread_pool.hpp>

#include <cerrno>
#include <semaphore>
#include <string>

#include <sys/syscall.h>

namespace {

/// Work that waits for work of its own queue: a sleeping thread must wake up and steal it.
void wait_for_helpers(coil::thread_pool& pool, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        std::binary_semaphore helped(0);
        pool.execute([&] {
            pool.execute([&] { helped.release(); });
            helped.acquire();
        });
        pool.drain();
    }
}

class Fences : public ::testing::Test {
protected:
    void SetUp() override {
        if (coil_test::sanitized) {
            GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
        }
    }
};

TEST_F(Fences, G9_RefusedWhileAPoolRuns) {
    const std::string complaint = coil_test::in_child([]() -> std::string {
        coil::thread_pool pool(2);
        wait_for_helpers(pool, 20);
        if (!coil_test::forbid(SYS_membarrier, EPERM)) {
            return "no filter";
        }
        wait_for_helpers(pool, 200);
        return coil::detail::light_fences_are_free ? "it was not refused" : "";
    });
    EXPECT_EQ(complaint, "");
}

TEST_F(Fences, G9_RefusedFromTheBeginning) {
    const std::string complaint = coil_test::in_child([]() -> std::string {
        if (!coil_test::forbid(SYS_membarrier, EPERM)) {
            return "no filter";
        }
        // as if no pool had been created before the fork
        coil::detail::light_fences_are_free = false;
        coil::thread_pool pool(2);
        wait_for_helpers(pool, 200);
        return coil::detail::light_fences_are_free ? "it was not refused" : "";
    });
    EXPECT_EQ(complaint, "");
}

} // namespace
