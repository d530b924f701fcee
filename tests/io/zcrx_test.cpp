// Zero-copy receive streams. The kernel is a double (support/zcrx_kernel.hpp), because they need a
// network device with hardware queues; what the running kernel refuses is tested for real.

#include "support/run.hpp"
#include "support/zcrx_backend.hpp"

#include <coil/io/zcrx.hpp>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coil;
using namespace coil_test;

constexpr int a_socket = 100; // the double has sockets of its own
constexpr int another_socket = 101;
constexpr std::size_t page = zcrx_kernel::page;

class Zcrx : public testing::Test {
public:
    std::shared_ptr<zcrx_kernel> kernel = std::make_shared<zcrx_kernel>();
    io_context ctx{with([](io_context_options& o) { o.entries = 32; })};

    void TearDown() override {
        EXPECT_EQ(kernel->violations, std::vector<std::string>{});
        EXPECT_EQ(kernel->pieces_out(), 0U);
        EXPECT_FALSE(kernel->is_open);
    }

    zcrx_options options(std::size_t pages = 64, unsigned completions = 256) {
        zcrx_options o;
        o.interface = "lo";
        o.queue = 3;
        o.area_size = pages * page;
        o.completions = completions;
        o.make_backend = [k = kernel] { return std::make_unique<zcrx_backend>(k); };
        return o;
    }
    void run(std::function<task<>()> f) { run_on(ctx, f()); }

    /// Receives `bytes` bytes and returns each piece at once.
    static task<std::string> receive(io::recv_zc_stream& stream, std::size_t bytes) {
        std::string all;
        while (all.size() < bytes) {
            received_buffer piece = co_await stream.next();
            if (!piece) {
                ADD_FAILURE() << piece.result();
                break;
            }
            all += piece->text();
        }
        co_return all;
    }
};

TEST_F(Zcrx, PiecesArriveAndAreReturned) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        EXPECT_EQ(kernel->registered.if_rxq, 3U);
        EXPECT_EQ(queue.area_size(), 64 * page);
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        kernel->arrive(a_socket, "there before");
        EXPECT_EQ(co_await receive(incoming, 12), "there before");
        auto later = spawn([&]() -> task<> {
            co_await sleep_for(1ms);
            kernel->arrive(a_socket, std::string(2 * page, 'x') + "end");
            co_await sleep_for(1ms);
            kernel->end(a_socket, 0);
        });
        EXPECT_EQ(co_await receive(incoming, 2 * page + 3), std::string(2 * page, 'x') + "end");
        EXPECT_EQ(queue.pieces_in_use(), 0U);
        const received_buffer end = co_await incoming.next();
        EXPECT_FALSE(end || end.error());
        EXPECT_EQ(end.result(), 0);
        co_await later;
    });
}

TEST_F(Zcrx, AWaitMakesNoSystemCallWithoutData) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        const received_buffer none = co_await timeout(incoming.next(), 5ms);
        EXPECT_EQ(none.result(), -ETIMEDOUT);
        EXPECT_EQ(kernel->enters, 1U); // the request
        auto later = spawn([&]() -> task<> {
            co_await sleep_for(1ms);
            kernel->arrive(a_socket, "late");
        });
        EXPECT_EQ(co_await receive(incoming, 4), "late");
        EXPECT_EQ(kernel->enters, 2U); // it goes on
        co_await later;
    });
}

TEST_F(Zcrx, StreamsShareAQueue) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        std::vector<std::unique_ptr<io::recv_zc_stream>> streams;
        std::vector<join_handle<std::string>> readers;
        for (int i = 0; i < 100; ++i) {
            streams.push_back(std::make_unique<io::recv_zc_stream>(a_socket + i, queue));
            readers.push_back(spawn(receive(*streams.back(), 2)));
        }
        co_await yield();
        for (int i = 99; i >= 0; --i) {
            kernel->arrive(a_socket + i, std::string(2, static_cast<char>('A' + i % 50)));
        }
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(co_await readers[static_cast<std::size_t>(i)],
                      std::string(2, static_cast<char>('A' + i % 50)));
        }
    });
}

TEST_F(Zcrx, ADumpNamesTheWait) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        auto waiting = spawn([&]() -> task<int> { co_return (co_await incoming.next()).result(); });
        co_await yield();
        const std::string dump = this_context().dump_tasks();
        EXPECT_NE(dump.find("recv_zc"), std::string::npos) << dump;
        waiting.cancel();
        co_await waiting;
    });
}

TEST_F(Zcrx, AStopEndsNextAndLosesNothing) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        auto waiting = spawn([&]() -> task<int> { co_return (co_await incoming.next()).result(); });
        co_await yield();
        waiting.cancel();
        EXPECT_EQ(co_await waiting, -ECANCELED);
        EXPECT_TRUE(kernel->has_request(a_socket));
        kernel->arrive(a_socket, "kept");
        EXPECT_EQ(co_await receive(incoming, 4), "kept");
    });
}

TEST_F(Zcrx, ALeaseIsReturnedOnAnotherThread) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        std::vector<std::thread> threads;
        for (int i = 0; i < 20; ++i) {
            kernel->arrive(a_socket, std::to_string(i));
            received_buffer piece = co_await incoming.next();
            threads.emplace_back([lease = std::move(*piece), i]() mutable {
                EXPECT_EQ(lease.text(), std::to_string(i));
                lease.reset();
                EXPECT_FALSE(lease);
            });
        }
        for (std::thread& t : threads) {
            t.join();
        }
        EXPECT_EQ(queue.pieces_in_use(), 0U);
        EXPECT_EQ(kernel->pieces_out(), 0U);
    });
}

TEST_F(Zcrx, ALeaseOutlivesStreamQueueAndContext) {
    buffer_lease kept;
    {
        io_context other;
        run_on(other, [](Zcrx& t, buffer_lease& out) -> task<> {
            zcrx_queue queue(t.options());
            auto incoming = io::recv_zc_multishot(a_socket, queue);
            t.kernel->arrive(a_socket, "still here");
            received_buffer piece = co_await incoming.next();
            out = std::move(*piece);
        }(*this, kept));
        EXPECT_FALSE(kernel->is_open); // the hardware queue is free again
        EXPECT_EQ(kept.text(), "still here");
    }
    EXPECT_EQ(kept.text(), "still here");
    kept.bytes()[0] = std::byte{'S'};
    std::thread([lease = std::move(kept)] { EXPECT_EQ(lease.text(), "Still here"); }).join();
    // Nobody reads the refill ring of a closed queue.
    kernel = std::make_shared<zcrx_kernel>();
}

TEST_F(Zcrx, ADestroyedStreamEndsItsRequestAndReturnsWhatWasNotTaken) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        {
            auto incoming = io::recv_zc_multishot(a_socket, queue);
            auto other = io::recv_zc_multishot(another_socket, queue);
            kernel->arrive(a_socket, "a");
            EXPECT_EQ(co_await receive(incoming, 1), "a");
            kernel->arrive(a_socket, std::string(5 * page, 'b')); // not taken
            kernel->arrive(another_socket, "c");
            EXPECT_EQ(co_await receive(other, 1), "c");
            EXPECT_EQ(queue.pieces_in_use(), 5U);
            kernel->arrive(a_socket, "not even posted");
        }
        EXPECT_EQ(queue.pieces_in_use(), 0U);
        EXPECT_FALSE(kernel->has_request(a_socket));
        EXPECT_FALSE(kernel->has_request(another_socket));
        EXPECT_TRUE(kernel->is_open);
    });
}

TEST_F(Zcrx, ADestroyedStreamRepeatsACancellationThatCameTooEarly) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        kernel->cancels_to_miss = 3;
        {
            auto incoming = io::recv_zc_multishot(a_socket, queue);
            kernel->arrive(a_socket, "a");
            EXPECT_EQ(co_await receive(incoming, 1), "a");
        }
        EXPECT_FALSE(kernel->has_request(a_socket));
        EXPECT_EQ(kernel->cancels, 4U);
    });
}

TEST_F(Zcrx, AStreamThatIsDestroyedWhileItIsAwaitedCancelsNext) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        std::optional<io::recv_zc_stream> incoming(std::in_place, a_socket, queue);
        auto waiting =
            spawn([&]() -> task<int> { co_return (co_await incoming->next()).result(); });
        co_await yield();
        incoming.reset();
        EXPECT_EQ(co_await waiting, -ECANCELED);
        EXPECT_FALSE(kernel->has_request(a_socket));
    });
}

TEST_F(Zcrx, AStreamMayOutliveItsQueue) {
    run([&]() -> task<> {
        std::optional<zcrx_queue> queue(options());
        auto incoming = io::recv_zc_multishot(a_socket, *queue);
        queue.reset();
        EXPECT_TRUE(kernel->is_open);
        kernel->arrive(a_socket, "a");
        EXPECT_EQ(co_await receive(incoming, 1), "a");
    });
}

// Two pages, four pieces: the request fails until a lease is returned.
TEST_F(Zcrx, AnExhaustedAreaMakesNextWaitForALease) {
    for (const bool elsewhere : {false, true}) {
        run([&]() -> task<> {
            zcrx_queue queue(options(2));
            auto incoming = io::recv_zc_multishot(a_socket, queue);
            kernel->arrive(a_socket, std::string(4 * page, 'x'));
            received_buffer first = co_await incoming.next();
            received_buffer second = co_await incoming.next();
            EXPECT_TRUE(first && second);
            EXPECT_EQ((co_await timeout(incoming.next(), 2ms)).result(), -ETIMEDOUT);
            const unsigned enters = kernel->enters;
            EXPECT_EQ((co_await timeout(incoming.next(), 2ms)).result(), -ETIMEDOUT);
            EXPECT_EQ(kernel->enters, enters); // it does not poll
            auto returning = spawn([&]() -> task<> {
                co_await sleep_for(1ms);
                if (elsewhere) {
                    std::thread([lease = std::move(*first)] {}).join();
                } else {
                    first->reset();
                }
            });
            EXPECT_TRUE(co_await incoming.next());
            co_await returning;
            second->reset();
            EXPECT_TRUE(co_await incoming.next());
        });
    }
}

TEST_F(Zcrx, AnAreaThatIsExhaustedWithoutLeasesIsAnError) {
    run([&]() -> task<> {
        zcrx_queue queue(options(1));
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        auto other = io::recv_zc_multishot(another_socket, queue);
        kernel->end(a_socket, -ENOMEM); // the kernel itself has no memory
        EXPECT_EQ((co_await incoming.next()).result(), -ENOMEM);
        EXPECT_EQ((co_await incoming.next()).result(), -ENOMEM);
        kernel->arrive(another_socket, "a");
        EXPECT_EQ(co_await receive(other, 1), "a");
    });
}

TEST_F(Zcrx, AFullCompletionQueueLosesNothing) {
    run([&]() -> task<> {
        zcrx_queue queue(options(64, 8));
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        std::string sent;
        for (int i = 0; i < 40; ++i) {
            kernel->arrive(a_socket, std::to_string(i));
            sent += std::to_string(i);
        }
        EXPECT_EQ(co_await receive(incoming, sent.size()), sent);
    });
}

// A stream that is not read stops its request instead of filling the area.
TEST_F(Zcrx, AStreamThatIsNotReadPauses) {
    run([&]() -> task<> {
        zcrx_queue queue(options(160, 16)); // 20 pieces at most
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        kernel->arrive(a_socket, "0");
        EXPECT_EQ(co_await receive(incoming, 1), "0");
        std::string sent;
        for (int i = 0; i < 30; ++i) {
            const std::string piece(1, static_cast<char>('a' + i % 26));
            kernel->arrive(a_socket, piece);
            sent += piece;
            co_await sleep_for(200us);
        }
        EXPECT_EQ(queue.pieces_in_use(), 20U);
        EXPECT_FALSE(kernel->has_request(a_socket));
        EXPECT_EQ(co_await receive(incoming, sent.size()), sent);
        EXPECT_EQ((co_await timeout(incoming.next(), 1ms)).result(), -ETIMEDOUT);
        EXPECT_TRUE(kernel->has_request(a_socket));
    });
}

// More returns than the refill ring has entries, while the device does not need memory.
TEST_F(Zcrx, ReturnsThatDoNotFitIntoTheRefillRingAreRepeated) {
    kernel->shares_pages = true;
    kernel->first_refill = 0xffffffd0;
    run([&]() -> task<> {
        zcrx_queue queue(options(64));
        EXPECT_EQ(kernel->registered.rq_entries, 64U);
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        std::vector<buffer_lease> leases;
        for (int i = 0; i < 300; ++i) {
            kernel->arrive(a_socket, std::string(100, static_cast<char>('a' + i % 26)));
            received_buffer piece = co_await incoming.next();
            EXPECT_EQ(piece->text(), std::string(100, static_cast<char>('a' + i % 26)));
            leases.push_back(std::move(*piece));
        }
        leases.clear();
        EXPECT_EQ(queue.pieces_in_use(), 0U);
        // The context moves the rest to the ring although nothing else happens.
        for (int i = 0; i < 2000 && kernel->pieces_out() > 0; ++i) {
            co_await sleep_for(1ms);
        }
        EXPECT_EQ(kernel->pieces_out(), 0U);
    });
}

TEST_F(Zcrx, ARefusedSubmissionIsTheResult) {
    run([&]() -> task<> {
        zcrx_queue queue(options());
        auto incoming = io::recv_zc_multishot(a_socket, queue);
        kernel->refuse_enter = [](unsigned submitted) { return submitted > 0 ? -EAGAIN : 0; };
        EXPECT_EQ((co_await incoming.next()).result(), -EAGAIN);
        kernel->refuse_enter = {};
        kernel->arrive(a_socket, "a");
        EXPECT_EQ(co_await receive(incoming, 1), "a");
    });
}

TEST_F(Zcrx, NoRequestOutlivesTheRun) {
    std::optional<zcrx_queue> queue;
    std::optional<io::recv_zc_stream> incoming;
    run([&]() -> task<> {
        queue.emplace(options());
        incoming.emplace(a_socket, *queue);
        kernel->arrive(a_socket, "first run");
        EXPECT_EQ(co_await receive(*incoming, 9), "first run");
        EXPECT_TRUE(kernel->has_request(a_socket));
    });
    EXPECT_FALSE(kernel->has_request(a_socket));
    kernel->arrive(a_socket, "second run");
    run([&]() -> task<> { EXPECT_EQ(co_await receive(*incoming, 10), "second run"); });
    std::thread([&] { incoming.reset(), queue.reset(); }).join(); // any thread may do so now
}

TEST_F(Zcrx, AShutdownDestroysWaitingStreams) {
    run([&]() -> task<> {
        co_spawn([](Zcrx& t) -> task<> {
            zcrx_queue queue(t.options());
            auto incoming = io::recv_zc_multishot(a_socket, queue);
            ADD_FAILURE() << "resumed: " << (co_await incoming.next()).result();
        }(*this));
        co_await sleep_for(1ms);
        EXPECT_TRUE(kernel->has_request(a_socket));
        this_context().stop();
    });
    EXPECT_FALSE(kernel->is_open);
}

} // namespace
