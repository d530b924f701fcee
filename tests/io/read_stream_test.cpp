// read_multishot from pollable files that are not sockets.

#include "io/stream_support.hpp"
#include "support/fault_environment.hpp"

#include <fstream>

#include <sys/eventfd.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::pipe_pair;
using io_test::are_bytes_from;
using io_test::bytes_from;
using io_test::pool_of;
using io_test::some_turns;

namespace {

class ReadStream : public io_test::EachFeatureSet {};
COIL_ON_EACH_FEATURE_SET(ReadStream);

TEST_P(ReadStream, APipeToItsEnd) {
    auto main = [](std::uint64_t seed) -> task<> {
        coil_test::random_source random(seed);
        pipe_pair pipe;
        buffer_pool pool(pool_of(4, 64 * random.between(1, 8), random.one_in(2)));
        auto writer = [](descriptor out, coil_test::random_source r) -> task<> {
            std::uint64_t written = 0;
            while (written < 50000) {
                const int n = co_await io::write(out, bytes_from(written, r.between(1, 700)));
                EXPECT_GT(n, 0);
                written += static_cast<std::uint64_t>(n);
            }
            co_await io::write(out, bytes_from(written, 60000 - written));
        };
        auto done = coil::spawn(writer(std::move(pipe.out), random));
        auto incoming = io::read_multishot(pipe.in, pool);
        std::uint64_t received = 0;
        while (auto chunk = co_await incoming.next()) {
            EXPECT_TRUE(are_bytes_from(received, chunk->text()));
            received += chunk->size();
        }
        EXPECT_EQ(received, 60000U);
        co_await done;
        EXPECT_EQ((co_await incoming.next()).result(), 0);
        EXPECT_EQ(pool.available(), pool.size());
    };
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
        run(main(seed));
    }
}

TEST_P(ReadStream, RecordsAreNotCut) {
    auto main = []() -> task<> {
        // The counter of an eventfd, and the packets of a pipe in packet mode.
        buffer_pool pool(pool_of(2, 64));
        const descriptor counter{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
        auto numbers = io::read_multishot(counter, pool);
        for (std::uint64_t i = 1; i < 30; ++i) {
            EXPECT_EQ(::write(counter, &i, sizeof i), 8);
            auto chunk = co_await numbers.next();
            EXPECT_EQ(chunk.result(), 8);
            std::uint64_t value = 0;
            std::memcpy(&value, chunk->data(), sizeof value);
            EXPECT_EQ(value, i);
        }
        int fds[2];
        EXPECT_EQ(::pipe2(fds, O_CLOEXEC | O_DIRECT), 0);
        const descriptor in{fds[0]};
        const descriptor out{fds[1]};
        auto packets = io::read_multishot(in, pool);
        for (std::size_t size = 1; size <= 64; size += 7) {
            EXPECT_EQ(::write(out, bytes_from(0, size).data(), size), static_cast<int>(size));
            EXPECT_EQ((co_await packets.next()).result(), static_cast<int>(size));
        }
    };
    run(main());
}

TEST_P(ReadStream, ARegularFileIsRefusedWhereMultishotReadsAre) {
    COIL_SKIP_UNDER_FAULTS("a multishot read may become a plain one");
    auto main = [](bool multishot) -> task<> {
        buffer_pool pool(pool_of(2, 64));
        const descriptor file{::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
        EXPECT_EQ(::pwrite(file, "text", 4, 0), 4);
        auto incoming = io::read_multishot(file, pool);
        for (int i = 0; i < 2; ++i) {
            auto chunk = co_await incoming.next();
            if (multishot) {
                EXPECT_EQ(chunk.result(), -EBADFD);
            } else {
                EXPECT_EQ(chunk.result(), i == 0 ? 4 : 0);
            }
        }
        EXPECT_EQ(pool.available(), pool.size());
    };
    run(main(GetParam() == io_test::kernel_features::now ||
             GetParam() == io_test::kernel_features::without_incremental));
}

TEST_P(ReadStream, AWrongDescriptorIsAnErrorEachTime) {
    auto main = []() -> task<> {
        buffer_pool pool;
        auto incoming = io::read_multishot(-1, pool);
        EXPECT_EQ((co_await incoming.next()).result(), -EBADF);
        EXPECT_EQ((co_await incoming.next()).result(), -EBADF);
        EXPECT_EQ(pool.available(), pool.size());
    };
    run(main());
}

} // namespace
