// A channel with a buffer is biased to the first context that uses it. Another thread that comes
// later, at any fill of the buffer, finds the same elements in the same order.

#include "support/seccomp.hpp"
#include "sync/support.hpp"

#include <coil/sync/channel.hpp>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <thread>

using namespace coil;

namespace {

/// Sends and receives `passed` elements, and then sends elements with the numbers 0 to `kept` - 1.
task<> use(channel<std::unique_ptr<int>>& ch, int passed, int kept) {
    for (int i = 0; i < passed; ++i) {
        co_await ch.send(std::make_unique<int>(-1));
        const auto got = co_await ch.recv();
        EXPECT_TRUE(got && **got == -1);
    }
    for (int i = 0; i < kept; ++i) {
        co_await ch.send(std::make_unique<int>(i));
    }
}

/// Runs `f` for each capacity up to 4, each position in the buffer and each fill.
template <class F>
void for_each_state(F f) {
    for (int capacity = 1; capacity <= 4; ++capacity) {
        for (int passed = 0; passed <= capacity; ++passed) {
            for (int kept = 0; kept <= capacity; ++kept) {
                channel<std::unique_ptr<int>> ch(static_cast<std::size_t>(capacity));
                run(use(ch, passed, kept));
                f(ch, capacity, kept);
            }
        }
    }
}

/// Receives the elements `first` to `end` - 1, and finds the channel empty.
void check(channel<std::unique_ptr<int>>& ch, int first, int end) {
    for (int i = first; i < end; ++i) {
        const auto got = ch.try_recv();
        EXPECT_TRUE(got && **got == i) << i;
    }
    EXPECT_FALSE(ch.try_recv());
}

TEST(ChannelBias, G1_AnotherThreadReceivesWhatIsThereAndFillsTheBuffer) {
    for_each_state([](channel<std::unique_ptr<int>>& ch, int capacity, int kept) {
        std::thread([&] {
            check(ch, 0, kept);
            for (int i = 0; i < capacity; ++i) {
                EXPECT_TRUE(ch.try_send(std::make_unique<int>(i)));
            }
            EXPECT_FALSE(ch.try_send(std::make_unique<int>(0)));
        }).join();
        run([](channel<std::unique_ptr<int>>& from, int count) -> task<> {
            for (int i = 0; i < count; ++i) {
                const auto got = co_await from.recv();
                EXPECT_TRUE(got && **got == i) << i;
            }
        }(ch, capacity));
        check(ch, 0, 0);
    });
}

TEST(ChannelBias, G1_AnotherThreadFillsThePartlyFullBuffer) {
    for_each_state([](channel<std::unique_ptr<int>>& ch, int capacity, int kept) {
        std::thread([&] {
            for (int i = kept; i < capacity; ++i) {
                EXPECT_TRUE(ch.try_send(std::make_unique<int>(i)));
            }
            EXPECT_FALSE(ch.try_send(std::make_unique<int>(0)));
        }).join();
        check(ch, 0, capacity);
    });
}

TEST(ChannelBias, G1_AnotherThreadClosesIt) {
    for_each_state([](channel<std::unique_ptr<int>>& ch, int, int kept) {
        std::thread([&] { ch.close(); }).join();
        EXPECT_FALSE(ch.try_send(std::make_unique<int>(0)));
        check(ch, 0, kept);
    });
}

TEST(ChannelBias, G1_ClosedByItsContextThenUsedByAnotherThread) {
    for_each_state([](channel<std::unique_ptr<int>>& ch, int, int kept) {
        run([](channel<std::unique_ptr<int>>& closed) -> task<> {
            closed.close();
            EXPECT_FALSE(closed.try_send(std::make_unique<int>(0)));
            co_return;
        }(ch));
        std::thread([&] {
            EXPECT_FALSE(ch.try_send(std::make_unique<int>(0)));
            check(ch, 0, kept);
        }).join();
    });
}

TEST(ChannelBias, G1_RemainingElementsAreDestroyedOnce) {
    for (int passed = 0; passed <= 3; ++passed) {
        const auto element = std::make_shared<int>(1);
        {
            channel<std::shared_ptr<int>> ch(3);
            run([](channel<std::shared_ptr<int>>& to, std::shared_ptr<int> e, int n) -> task<> {
                for (int i = 0; i < n; ++i) {
                    co_await to.send(e);
                    static_cast<void>(co_await to.recv());
                }
                co_await to.send(e);
                co_await to.send(e);
            }(ch, element, passed));
            EXPECT_EQ(element.use_count(), 3);
        }
        EXPECT_EQ(element.use_count(), 1);
    }
}

task<> receive_until_closed(channel<int>& from, int& sum) {
    while (const auto n = co_await from.recv()) {
        sum += *n;
    }
}

/// The receiver waits, or is about to; another thread sends to it and closes the channel.
int pass_from_another_thread() {
    channel<int> ch(2);
    int sum = 0;
    std::thread sender;
    run([](channel<int>& c, int& total, std::thread& other) -> task<> {
        co_await c.send(1); // biases the channel
        other = std::thread([&c] {
            for (int i = 2; i <= 1000; ++i) {
                while (!c.try_send(i)) {
                    std::this_thread::yield();
                }
            }
            c.close();
        });
        co_await receive_until_closed(c, total);
    }(ch, sum, sender));
    sender.join();
    return sum;
}

TEST(ChannelBias, G1_AnotherThreadComesWhileItIsUsed) {
    for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(pass_from_another_thread(), 500'500);
    }
}

TEST(ChannelBias, G9_MembarrierIsRefusedAfterTheChannelWasBiased) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    const std::string complaint = coil_test::in_child([]() -> std::string {
        channel<std::unique_ptr<int>> ch(2);
        run(use(ch, 1, 2));
        if (!coil_test::forbid(SYS_membarrier, EPERM)) {
            return "no filter";
        }
        std::optional<std::unique_ptr<int>> got;
        std::thread([&] { got = ch.try_recv(); }).join();
        if (!got || **got != 0) {
            return "not the first element";
        }
        return pass_from_another_thread() == 500'500 ? "" : "elements were lost";
    });
    EXPECT_EQ(complaint, "");
}

} // namespace
