// fork() while another thread uses a process-wide object: the child, which does not have that
// thread, must not wait for it.

#include "../../src/context/dump_signal.hpp"
#include "../../src/context/wait_cycles.hpp"
#include "../../src/context/waiting_threads.hpp"
#include "support.hpp"

#include <coil/context/detail/listed_loop.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

/// Ends a child that waits for ever, so that in_child() reports that it has died.
void limit_this_process() { ::alarm(20); }

/// In a process that has not called `use` before, one thread calls it while another one forks, a
/// little later in each round; the child calls `use` as well.
std::string first_use_while_forking(const std::function<void()>& use) {
    std::string complaint;
    for (int round = 0; round != 100 && complaint.empty(); ++round) {
        complaint = coil_test::in_child([&]() -> std::string {
            limit_this_process();
            std::atomic<bool> goes = false;
            std::thread user([&] {
                goes = true;
                use();
            });
            while (!goes) {
            }
            const auto fork_at = std::chrono::steady_clock::now() + round * 200ns;
            while (std::chrono::steady_clock::now() < fork_at) {
            }
            std::string inner = coil_test::in_child([&]() -> std::string {
                limit_this_process();
                use();
                return "";
            });
            user.join();
            return inner;
        });
    }
    return complaint;
}

/// One thread calls `use` all the time while another one forks; the child calls `use` as well.
std::string use_while_forking(const std::function<void()>& use) {
    std::atomic<bool> over = false;
    std::thread user([&] {
        while (!over) {
            use();
        }
    });
    std::string complaint;
    for (int round = 0; round != 200 && complaint.empty(); ++round) {
        complaint = coil_test::in_child([&]() -> std::string {
            limit_this_process();
            use();
            return "";
        });
    }
    over = true;
    user.join();
    return complaint;
}

TEST(Fork, WhileTheDefaultPoolIsFirstUsed) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    EXPECT_EQ(first_use_while_forking(
                  [] { static_cast<void>(default_blocking_pool().metrics().threads); }),
              "");
}

TEST(Fork, WhileDumpsBySignalAreFirstUsed) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    EXPECT_EQ(first_use_while_forking([] {
                  const std::scoped_lock lock(detail::dump_signal::instance().contexts_mutex());
              }),
              "");
}

TEST(Fork, WhileWaitingThreadsAreFirstCounted) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    EXPECT_EQ(first_use_while_forking(
                  [] { static_cast<void>(detail::waiting_threads::all().has_value()); }),
              "");
}

/// Only the addresses of `blocked` and `loop` matter here.
TEST(Fork, WhileADestructorIsBlocked) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    alignas(std::max_align_t) std::array<std::byte, 1024> storage{};
    const auto& blocked = *reinterpret_cast<const detail::remote_child_owner*>(storage.data());
    const auto& loop = *reinterpret_cast<const detail::destructor_waits*>(storage.data());
    const auto use = [&] {
        EXPECT_TRUE(detail::wait_cycles::add(blocked, loop));
        detail::wait_cycles::remove(blocked);
    };
    EXPECT_EQ(use_while_forking(use), "");
}

TEST(Fork, WhileTheListOfContextsIsSearched) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    EXPECT_EQ(use_while_forking([] {
                  detail::queue_node node;
                  EXPECT_FALSE(detail::listed_loop::post_if_running(nullptr, 0, node));
              }),
              "");
}

} // namespace
