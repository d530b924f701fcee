// The memory of a connection that waits.

#include "tls/support.hpp"

using namespace tls_test;

namespace {

/// What an engine holds when nothing is in transit.
TEST(TlsIdle, AnEmptyQueueHasNoMemory) {
    tls::detail::byte_queue queue;
    const auto memory = [&] { return queue.bytes().data(); };
    ASSERT_TRUE(queue.append("alert", 5));
    EXPECT_NE(memory(), nullptr);
    queue.consume(5);
    EXPECT_EQ(memory(), nullptr);
    ASSERT_TRUE(queue.append("alert", 5));
    queue.clear();
    EXPECT_EQ(memory(), nullptr);
}

/// bench/tls holds an idle connection to 1024 bytes beyond OpenSSL's own. This much remains for the
/// frames of a coroutine that waits in read_some(), and for the allocators.
TEST(TlsIdle, AConnectionIsSmall) { EXPECT_LE(sizeof(tls::detail::connection<net::socket>), 448U); }

} // namespace
