// The memory that a stream needs, and its behaviour when allocation fails. This program counts its
// allocations.

#include "io/stream_support.hpp"
#include "support/fault_environment.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#if COIL_SANITIZED

TEST(StreamMemory, RunsOnlyWithoutSanitizers) {
    GTEST_SKIP() << "a sanitizer has its own operator new";
}

#else

namespace {

std::atomic<std::size_t> allocations{0};
std::atomic<bool> out_of_memory{false};

} // namespace

// NOLINTBEGIN(misc-definitions-in-headers): the other forms call these
void* operator new(std::size_t size) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    void* const p = out_of_memory.load(std::memory_order_relaxed) ? nullptr : std::malloc(size);
    if (p == nullptr) {
        throw std::bad_alloc();
    }
    return p;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
// NOLINTEND(misc-definitions-in-headers)

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::listener;
using coil_test::socket_pair;
using io_test::pool_of;
using io_test::put;
using io_test::some_turns;

namespace {

class StreamMemory : public io_test::EachFeatureSet {};
COIL_ON_EACH_FEATURE_SET(StreamMemory);

TEST_P(StreamMemory, ReceivingAllocatesNothing) {
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(16, 64));
        const socket_pair s;
        auto incoming = io::recv_multishot(s.a, pool);
        std::size_t begin = 0;
        for (int i = 0; i < 300; ++i) {
            if (i == 100) {
                begin = allocations;
            }
            for (int k = 0; k < 4; ++k) { // some are queued
                put(s.b, std::string_view("four"));
            }
            for (std::size_t received = 0; received < 16;) {
                auto chunk = co_await incoming.next();
                received += chunk->size();
            }
        }
        EXPECT_EQ(allocations - begin, 0U);
    };
    run(main());
}

TEST_P(StreamMemory, G6_WithoutMemoryConnectionsAreClosedAndTheErrorIsReported) {
    COIL_SKIP_UNDER_FAULTS("completions are counted");
    auto main = [](bool multishot) -> task<> {
        const listener l;
        auto connections = io::accept_multishot(l.socket);
        EXPECT_EQ(co_await timeout(connections.next(), 0ms), -ETIMEDOUT);
        std::vector<descriptor> clients;
        for (int i = 0; i < 6; ++i) {
            clients.push_back(l.connect());
        }
        out_of_memory = true;
        for (int i = 0; i < 10; ++i) {
            co_await io::nop();
        }
        out_of_memory = false;
        if (multishot) {
            for (int i = 0; i < 2; ++i) { // queued without allocating
                EXPECT_GE(descriptor{co_await connections.next()}, 0);
            }
            EXPECT_EQ(co_await connections.next(), -ENOMEM);
        }
        // The stream recovers, at the latest when the next connection arrives.
        clients.push_back(l.connect());
        EXPECT_GE(descriptor{co_await connections.next()}, 0);
    };
    run(main(has_rings()));
}

TEST_P(StreamMemory, G6_WithoutMemoryAnErrorIsReportedWhereBytesWereLost) {
    COIL_SKIP_UNDER_FAULTS("completions are counted");
    if (!has_rings()) {
        GTEST_SKIP() << "without multishot requests at most one result is queued";
    }
    auto main = []() -> task<> {
        buffer_pool pool(pool_of(64, 64));
        const socket_pair s;
        auto incoming = io::recv_multishot(s.a, pool);
        EXPECT_EQ((co_await timeout(incoming.next(), 0ms)).result(), -ETIMEDOUT);
        out_of_memory = true;
        for (int i = 0; i < 10; ++i) {
            const char byte = static_cast<char>('0' + i);
            EXPECT_EQ(::send(s.b, &byte, 1, 0), 1);
            co_await coil::sleep_for(1ms); // the loop waits, so every backend polls the sockets
        }
        out_of_memory = false;
        EXPECT_EQ((co_await incoming.next())->text(), "0");
        EXPECT_EQ((co_await incoming.next())->text(), "1");
        EXPECT_EQ((co_await incoming.next()).result(), -ENOMEM);
        put(s.b, "x");
        EXPECT_GT((co_await incoming.next()).result(), 0);
        EXPECT_EQ(pool.available(), pool.size()); // the buffers of lost bytes were returned
    };
    run(main());
}

} // namespace

#endif
