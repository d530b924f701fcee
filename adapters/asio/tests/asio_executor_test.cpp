// asio_executor and asio_context: the properties of an executor, and handlers on a coil context.

#include "support/run.hpp"

#include <coil/asio.hpp>
#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <asio.hpp>

namespace {

using namespace coil;
using namespace std::chrono_literals;
using asio::ip::tcp;
namespace execution = asio::execution;

static_assert(execution::is_executor<asio_executor>::value);
static_assert(std::is_convertible_v<asio_executor, asio::any_io_executor>);
static_assert(std::is_nothrow_copy_constructible_v<asio_executor>);
static_assert(std::is_nothrow_move_constructible_v<asio_executor>);

TEST(AsioExecutor, HasTheProperties) {
    io_context ctx;
    asio_context side(ctx);
    const asio_executor ex = side.get_executor();
    const auto never = asio::require(ex, execution::blocking.never);
    const auto tracked = asio::require(ex, execution::outstanding_work.tracked);
    EXPECT_EQ(asio::query(ex, execution::blocking), execution::blocking.possibly);
    EXPECT_EQ(asio::query(never, execution::blocking), execution::blocking.never);
    EXPECT_EQ(asio::query(ex, execution::outstanding_work), execution::outstanding_work.untracked);
    EXPECT_EQ(asio::query(tracked, execution::outstanding_work),
              execution::outstanding_work.tracked);
    EXPECT_EQ(&asio::query(ex, execution::context), &side);
    EXPECT_EQ(&side.context(), &ctx);
    EXPECT_EQ(ex, side.get_executor());
    EXPECT_NE(ex, never);
    EXPECT_NE(ex, tracked);
    EXPECT_EQ(ex, asio::require(never, execution::blocking.possibly));
    const asio::any_io_executor any = ex;
    EXPECT_EQ(any, asio::any_io_executor(side.get_executor()));
    EXPECT_EQ(&asio::query(any, execution::context), &side);
}

TEST(AsioExecutor, RunsFunctionsInTheirOrderOnTheContextsThread) {
    io_context ctx;
    asio_context side(ctx);
    std::vector<int> order;
    for (int i = 0; i < 100; ++i) {
        asio::post(side.get_executor(), [&order, i] { order.push_back(i); });
    }
    EXPECT_TRUE(order.empty());
    ctx.run();
    std::vector<int> expected(100);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected);
}

TEST(AsioExecutor, DispatchRunsAtOnceOnlyOnTheContextsThread) {
    io_context ctx;
    asio_context side(ctx);
    std::string order;
    asio::dispatch(side.get_executor(), [&] {
        order += '1';
        asio::post(side.get_executor(), [&] { order += '4'; });
        asio::dispatch(side.get_executor(), [&] { order += '2'; });
        asio::require(side.get_executor(), execution::blocking.never).execute([&] {
            order += '5';
        });
        order += '3';
    });
    EXPECT_EQ(order, "") << "not on the context's thread";
    ctx.run();
    EXPECT_EQ(order, "12345");
}

TEST(AsioExecutor, TrackedWorkKeepsTheContextRunning) {
    io_context ctx;
    asio_context side(ctx);
    for (int i = 0; i < 200; ++i) {
        std::optional work(asio::make_work_guard(side.get_executor()));
        std::thread other([&] {
            if (i == 0) {
                std::this_thread::sleep_for(20ms);
            }
            asio::post(side.get_executor(), [] {});
            work.reset();
        });
        const auto begin = std::chrono::steady_clock::now();
        ctx.run();
        if (i == 0) {
            EXPECT_GE(std::chrono::steady_clock::now() - begin, 15ms);
        }
        other.join();
        EXPECT_FALSE(work);
    }
}

TEST(AsioExecutor, WorkThatComesAndGoesOnSeveralThreads) {
    io_context ctx;
    asio_context side(ctx);
    std::atomic<int> ran{0};
    {
        const auto outer = asio::make_work_guard(side.get_executor());
        ctx.start();
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 2000; ++i) {
                    const auto work = asio::make_work_guard(side.get_executor());
                    asio::post(side.get_executor(), [&] { ++ran; });
                }
            });
        }
    }
    ctx.join();
    EXPECT_EQ(ran.load(), 8000);
}

TEST(AsioExecutor, AnExceptionGoesToTheContextsHandler) {
    std::string what;
    io_context ctx(coil_test::with([&](io_context_options& options) {
        options.on_unhandled_exception = [&](const std::exception_ptr& error) {
            try {
                std::rethrow_exception(error);
            } catch (const std::exception& e) {
                what = e.what();
            }
        };
    }));
    asio_context side(ctx);
    asio::post(side.get_executor(), [] { throw std::runtime_error("thrown"); });
    ctx.run();
    EXPECT_EQ(what, "thrown");
}

TEST(AsioExecutor, OutlivesItsContexts) {
    const auto alive = std::make_shared<int>();
    std::optional<asio::any_io_executor> kept;
    {
        io_context ctx;
        asio_context side(ctx);
        kept.emplace(asio::prefer(side.get_executor(), execution::outstanding_work.tracked));
        asio::post(*kept, [alive] {});
    }
    EXPECT_EQ(alive.use_count(), 1) << "a function that has not run is destroyed";
    asio::post(*kept, [alive] { ADD_FAILURE() << "after the end"; });
    EXPECT_EQ(alive.use_count(), 1);
}

TEST(AsioContext, IoObjectsRunTheirHandlersOnTheContextsThread) {
    io_context ctx;
    asio_context side(ctx);
    const auto here = std::this_thread::get_id();
    std::string received;
    tcp::acceptor acceptor(side.get_executor(), {asio::ip::address_v4::loopback(), 0});
    tcp::socket client(side.get_executor());
    std::optional<tcp::socket> server;
    char buffer[16];
    acceptor.async_accept([&](asio::error_code error, tcp::socket peer) {
        EXPECT_FALSE(error);
        EXPECT_EQ(std::this_thread::get_id(), here);
        server.emplace(std::move(peer));
        asio::async_write(*server, asio::buffer("hello", 5), [&](asio::error_code e, std::size_t) {
            EXPECT_FALSE(e);
            EXPECT_EQ(std::this_thread::get_id(), here);
            server->close();
        });
    });
    client.async_connect(acceptor.local_endpoint(), [&](asio::error_code error) {
        EXPECT_FALSE(error);
        asio::async_read(client, asio::buffer(buffer), [&](asio::error_code e, std::size_t n) {
            EXPECT_EQ(e, asio::error::eof);
            EXPECT_EQ(std::this_thread::get_id(), here);
            received.assign(buffer, n);
        });
    });
    ctx.run(); // returns when the handlers have run
    EXPECT_EQ(received, "hello");
}

TEST(AsioContext, IsAwaitedByItsOwnContextAndByOthers) {
    io_context ctx;
    asio_context side(ctx);
    const auto naps = [](asio_context& on) -> task<> {
        const auto here = std::this_thread::get_id();
        asio::steady_timer timer(on.get_executor(), 2ms);
        co_await timer.async_wait(use_coil);
        EXPECT_EQ(std::this_thread::get_id(), here);
    };
    ctx.co_spawn(naps(side));
    ctx.run();
    coil::run(naps(side)); // awaited on another context, while `ctx` does not run
}

TEST(AsioContext, DestroysHandlersThatHaveNotRun) {
    const auto alive = std::make_shared<int>();
    io_context ctx;
    {
        asio_context side(ctx);
        asio::steady_timer timer(side.get_executor(), 1h);
        timer.async_wait([alive](asio::error_code) { ADD_FAILURE(); });
        asio::post(side.get_executor(), [alive] { ADD_FAILURE(); });
    }
    ctx.run(); // nothing keeps it running
    EXPECT_EQ(alive.use_count(), 1);
}

TEST(AsioThread, RunsHandlersAndSurvivesExceptions) {
    asio_thread io;
    std::atomic<int> ran{0};
    testing::internal::CaptureStderr();
    asio::post(io.get_executor(), [] { throw std::runtime_error("of a handler"); });
    asio::post(io.get_executor(), [&] {
        ++ran;
        ran.notify_all();
    });
    ran.wait(0);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("of a handler"), std::string::npos);
}

} // namespace
