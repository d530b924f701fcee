// A channel loses no element when memory runs out. This program replaces operator new, with which
// the frame allocator allocates memory for elements that are too large for its pools.

#include "sync/support.hpp"

#include <coil/compose/when_all.hpp>

#include <array>
#include <cstdlib>
#include <new>
#include <numeric>
#include <span>

#if COIL_SANITIZED

TEST(ChannelMemory, RunsOnlyWithoutSanitizers) {
    GTEST_SKIP() << "this program's operator new would replace the sanitizer's";
}

#else

using namespace coil;

namespace {

/// Too large for the pools of the frame allocator.
struct large {
    explicit large(int n) : number(n) {}
    int number;
    std::array<std::byte, 32 * 1024> rest{};
};

bool out_of_memory = false;

} // namespace

// NOLINTBEGIN(misc-definitions-in-headers): replacements of the global functions
void* operator new(std::size_t size, std::align_val_t alignment) {
    const auto multiple = static_cast<std::size_t>(alignment);
    void* const p = out_of_memory && size > sizeof(large)
                        ? nullptr
                        : std::aligned_alloc(multiple, (size + multiple - 1) / multiple * multiple);
    if (p == nullptr) {
        throw std::bad_alloc();
    }
    return p;
}
void* operator new(std::size_t size) { return ::operator new(size, std::align_val_t{16}); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
// NOLINTEND(misc-definitions-in-headers)

namespace {

task<> wait_turns(int n) {
    for (int i = 0; i < n; ++i) {
        co_await yield();
    }
}

/// Checks that the channel holds the elements 1 to `count`, including one that was assigned to a
/// receiver that did not resume.
void check_kept(channel<large>& ch, int count) {
    for (int i = 1; i <= count; ++i) {
        const auto got = ch.try_recv();
        EXPECT_TRUE(got.has_value()) << "an element was lost";
        EXPECT_EQ(got ? got->number : 0, i);
    }
}

/// Sends an element to the waiting receiver and then fills the buffer, so that there is no space to
/// put that element back.
void fill(channel<large>& ch) {
    for (int i = 1; i <= 1 + static_cast<int>(ch.capacity()); ++i) {
        EXPECT_TRUE(ch.try_send(large(i)));
    }
}

task<> takes_one(channel<large>& ch) {
    try {
        static_cast<void>(co_await ch.recv());
        ADD_FAILURE() << "the stop request was ignored";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled);
    }
}

TEST(ChannelMemory, G6_AStoppedReceiverLosesNothing) {
    for (const std::size_t capacity : {0U, 1U}) {
        run([](std::size_t given) -> task<> {
            channel<large> ch(given);
            auto h = spawn(takes_one(ch));
            co_await wait_turns(2);
            fill(ch);
            out_of_memory = true;
            h.cancel();
            co_await wait_turns(3);
            out_of_memory = false;
            check_kept(ch, 1 + static_cast<int>(given));
        }(capacity));
    }
}

TEST(ChannelMemory, G6_ADestroyedReceiverLosesNothing) {
    run([]() -> task<> {
        channel<large> ch(1);
        auto receiver = [](channel<large>& from) -> coil_test::manual {
            static_cast<void>(co_await from.recv());
        }(ch);
        receiver.start();
        fill(ch);
        out_of_memory = true;
        receiver.destroy();
        out_of_memory = false;
        check_kept(ch, 2);
        co_return;
    }());
}

TEST(ChannelMemory, G6_ADiscardedReceiverLosesNothing) {
    run([]() -> task<> {
        channel<large> ch(1);
        EXPECT_TRUE(ch.try_send(large(1)));
        auto fails = []() -> task<> {
            out_of_memory = true;
            throw std::runtime_error("the other child fails");
            co_return;
        };
        try {
            co_await when_all(ch.recv(), fails());
            ADD_FAILURE() << "when_all() did not throw";
        } catch (const std::runtime_error&) {
            EXPECT_TRUE(ch.try_send(large(2))); // no space for an element that is put back
        }
        out_of_memory = false;
        check_kept(ch, 2);
    }());
}

TEST(ChannelMemory, G6_ABatchWithoutMemoryKeepsWhatWasNotSent) {
    run([]() -> task<> {
        channel<large> ch(unbounded);
        std::vector<large> values;
        for (int i = 1; i <= 3; ++i) {
            values.emplace_back(i);
        }
        std::span rest(values);
        out_of_memory = true;
        try {
            co_await ch.send_many(rest);
            ADD_FAILURE() << "send_many() returned although there was no memory";
        } catch (const std::bad_alloc&) {
        }
        out_of_memory = false;
        EXPECT_EQ(rest.size(), 3U);
        co_await ch.send_many(rest);
        check_kept(ch, 3);
    }());
}

TEST(ChannelMemory, G6_AReceiverWithoutMemoryTakesNothing) {
    run([]() -> task<> {
        channel<large> ch(1);
        co_spawn([](channel<large>& to) -> task<> {
            co_await wait_turns(3);
            static_cast<void>(to.try_send(large(2))); // too late
        }(ch));
        out_of_memory = true;
        try {
            static_cast<void>(co_await ch.recv());
            ADD_FAILURE() << "recv() returned although the channel was empty";
        } catch (const std::bad_alloc&) {
        }
        out_of_memory = false;
        EXPECT_TRUE(ch.try_send(large(1)));
        check_kept(ch, 1);
        co_await wait_turns(5);
    }());
}

} // namespace

#endif
