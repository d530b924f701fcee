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

/// Expects that the frames of `make()`, a task, take `clang` bytes, or at most `other` with another
/// compiler. Runs the task.
template <class Make>
void expect_frame(Make make, [[maybe_unused]] std::size_t clang,
                  [[maybe_unused]] std::size_t other) {
    run(make()); // fills the cache of frames of this size
    const frame_meter meter;
    task<> measured = make();
#ifdef __clang__
    EXPECT_EQ(meter.bytes(), clang);
#else // GCC stores more of the temporaries
    EXPECT_LE(meter.bytes(), other);
#endif
    run(std::move(measured));
}

TEST(Memory, AnIdleConnectionTakesFourLines) {
    std::uint64_t requests = 0;
    expect_frame([&] { return session(-1, requests); }, 256, 320);
    EXPECT_EQ(requests, 0U);
}

TEST(Memory, AnIdlePingSessionTakesFiveLinesBesidesItsBuffer) {
    std::uint64_t requests = 0;
    expect_frame([&] { return ping_session(net::socket(), requests); }, 1344, 1984);
    EXPECT_EQ(requests, 0U);
}

TEST(Memory, AnIdleConnectionWithPooledBuffersTakesNineLines) {
    std::uint64_t requests = 0;
    buffer_pool pool;
    expect_frame([&] { return pooled_session(net::socket(), pool, requests); }, 576, 896);
    EXPECT_EQ(requests, 0U);
}

TEST(Memory, ASleeperTakesThreeLines) {
    std::uint64_t woken = 0;
    expect_frame([&] { return sleeper(woken, 1); }, 192, 256);
    EXPECT_EQ(woken, 4U);
}

#endif

} // namespace
