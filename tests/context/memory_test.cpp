// The sizes of what a suspended coroutine holds. A frame takes a multiple of 64 bytes, so a few
// bytes more may cost 64 for each of many coroutines: enlarge these on purpose only.

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace {

using namespace coil;

// 64-bit pointers, and a standard library whose std::exception_ptr is one.
static_assert(sizeof(detail::queue_node) == 16);
static_assert(sizeof(detail::promise_base) == 48);
static_assert(sizeof(detail::task_promise<void>) == 56);
static_assert(sizeof(detail::awaiter_base) == 56);
static_assert(sizeof(detail::timer_node) == 24);
static_assert(sizeof(detail::sleep_awaiter) == 80);
static_assert(sizeof(detail::io_op) == 80);
static_assert(sizeof(detail::sqe_slot) == 72);
static_assert(sizeof(net::socket) == 4);
static_assert(sizeof(detail::plain_join_state<void>) == 96);

template <class Awaitable>
using awaiter_of = decltype(std::declval<Awaitable>().operator co_await());
using chain = decltype(std::declval<operation>() && std::declval<operation>());

static_assert(sizeof(awaiter_of<operation>) == 152);
static_assert(sizeof(awaiter_of<chain>) == 224);
static_assert(sizeof(detail::multishot_awaiter) == 120);
static_assert(sizeof(io::recv_stream) == 280);

#if defined(__OPTIMIZE__) && !COIL_SANITIZED

/// The bytes of a new frame, by the class of frames whose cache loses one.
class frame_meter {
public:
    frame_meter() noexcept {
        for (std::size_t i = 0; i < before_.size(); ++i) {
            before_[i] = detail::frame_lists[i].head;
        }
    }
    [[nodiscard]] std::size_t bytes() const noexcept {
        for (std::size_t i = 0; i < before_.size(); ++i) {
            if (detail::frame_lists[i].head != before_[i]) {
                return i * detail::frame_alignment;
            }
        }
        return 0;
    }

private:
    std::array<const void*, detail::frame_classes> before_{};
};

/// The sleeper of bench/timers: it has two time points and two counters.
task<> sleeper(std::uint64_t& woken, unsigned index) {
    for (unsigned round = 0; round < 2; ++round) {
        const auto due = std::chrono::steady_clock::now() + std::chrono::microseconds(index);
        co_await sleep_until(due);
        woken += due < std::chrono::steady_clock::now() ? 1 : 0;
    }
}

/// A connection that waits for its next request, and whose buffer is elsewhere.
task<> session(int peer, std::uint64_t& requests) {
    static std::byte buffer[64];
    while (co_await io::recv(peer, buffer) > 0) {
        ++requests;
    }
}

/// The session of examples/redis_ping.cpp, which has a buffer of 16 lines.
task<> ping_session(net::socket peer, std::uint64_t& requests) {
    char buf[1024];
    int n = co_await peer.recv(buf);
    while (n > 0) {
        ++requests;
        n = co_await (peer.send("+OK\r\n") && peer.recv(buf));
    }
}

/// A connection without a buffer: the data is received into buffers of a pool.
task<> pooled_session(net::socket peer, buffer_pool& pool, std::uint64_t& requests) {
    auto incoming = io::recv_multishot(peer.native_handle(), pool);
    while (auto request = co_await incoming.next()) {
        ++requests;
        if (co_await peer.send("+OK\r\n") < 0) {
            co_return;
        }
    }
}

TEST(Memory, AnIdleConnectionTakesFourLines) {
    std::uint64_t requests = 0;
    run(session(-1, requests)); // fills the cache of frames of this size
    const frame_meter meter;
    task<> measured = session(-1, requests);
#ifdef __clang__
    EXPECT_EQ(meter.bytes(), 256U);
#else
    EXPECT_LE(meter.bytes(), 320U);
#endif
    run(std::move(measured));
    EXPECT_EQ(requests, 0U);
}

TEST(Memory, AnIdlePingSessionTakesFiveLinesBesidesItsBuffer) {
    std::uint64_t requests = 0;
    run(ping_session(net::socket(), requests)); // fills the cache of frames of this size
    const frame_meter meter;
    task<> measured = ping_session(net::socket(), requests);
#ifdef __clang__
    EXPECT_EQ(meter.bytes(), 1344U);
#else
    EXPECT_LE(meter.bytes(), 1984U);
#endif
    run(std::move(measured));
    EXPECT_EQ(requests, 0U);
}

TEST(Memory, AnIdleConnectionWithPooledBuffersTakesNineLines) {
    std::uint64_t requests = 0;
    buffer_pool pool;
    run(pooled_session(net::socket(), pool, requests)); // fills the cache of frames of this size
    const frame_meter meter;
    task<> measured = pooled_session(net::socket(), pool, requests);
#ifdef __clang__
    EXPECT_EQ(meter.bytes(), 576U);
#else
    EXPECT_LE(meter.bytes(), 896U);
#endif
    run(std::move(measured));
    EXPECT_EQ(requests, 0U);
}

TEST(Memory, ASleeperTakesThreeLines) {
    std::uint64_t woken = 0;
    run(sleeper(woken, 1)); // fills the cache of frames of this size
    const frame_meter meter;
    task<> measured = sleeper(woken, 1);
#ifdef __clang__
    EXPECT_EQ(meter.bytes(), 192U);
#else // GCC stores more of the temporaries
    EXPECT_LE(meter.bytes(), 256U);
#endif
    run(std::move(measured));
    EXPECT_EQ(woken, 4U);
}

#endif

} // namespace
