// The headers of coil::asio with Boost.Asio instead of standalone Asio.

#if __has_include(<boost/asio.hpp>)

#define COIL_ASIO_BOOST 1

#include <coil/asio.hpp>
#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <system_error>
#include <thread>

#include <boost/asio.hpp>

namespace {

using namespace coil;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::tcp;

task<> echo_once(tcp::acceptor& acceptor) {
    tcp::socket peer = co_await acceptor.async_accept(use_coil);
    std::string text;
    const std::size_t n =
        co_await asio::async_read_until(peer, asio::dynamic_buffer(text), '\n', use_coil);
    co_await asio::async_write(peer, asio::buffer(text, n), use_coil);
}

task<std::string> ask(asio::any_io_executor ex, tcp::endpoint server) {
    const auto here = std::this_thread::get_id();
    tcp::socket socket(ex);
    co_await socket.async_connect(server, use_coil);
    co_await asio::async_write(socket, asio::buffer("hello\n", 6), use_coil);
    std::string text(7, ' ');
    const auto [error, n] =
        co_await asio::async_read(socket, asio::buffer(text), use_coil_as_tuple);
    EXPECT_EQ(error, asio::error::eof);
    EXPECT_EQ(std::this_thread::get_id(), here);
    co_return text.substr(0, n);
}

TEST(BoostAsio, TransfersOnAnAsioContext) {
    io_context ctx;
    asio_context side(ctx);
    tcp::acceptor acceptor(side.get_executor(), {asio::ip::address_v4::loopback(), 0});
    ctx.co_spawn(echo_once(acceptor));
    auto answer = ctx.spawn(ask(side.get_executor(), acceptor.local_endpoint()));
    ctx.run();
    EXPECT_EQ(answer.get(), "hello\n");
}

TEST(BoostAsio, TransfersOnAnAsioThread) {
    asio_thread io;
    tcp::acceptor acceptor(io.get_executor(), {asio::ip::address_v4::loopback(), 0});
    io_context ctx;
    ctx.co_spawn(echo_once(acceptor));
    auto answer = ctx.spawn(ask(io.get_executor(), acceptor.local_endpoint()));
    ctx.run();
    EXPECT_EQ(answer.get(), "hello\n");
}

TEST(BoostAsio, ThrowsStdSystemErrorAndIsCancelledThroughTheIoObject) {
    const auto work = [](asio_thread& io) -> task<> {
        tcp::socket unopened(io.get_executor());
        char byte = 0;
        try {
            co_await unopened.async_read_some(asio::buffer(&byte, 1), use_coil);
            ADD_FAILURE() << "no exception";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::bad_file_descriptor);
        }
        asio::steady_timer timer(io.get_executor(), 1h);
        auto canceller = spawn([](asio::steady_timer& t) -> task<> {
            co_await sleep_for(5ms);
            t.cancel();
        }(timer));
        try {
            co_await timer.async_wait(use_coil);
            ADD_FAILURE() << "no exception";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
        }
        co_await std::move(canceller);
    };
    asio_thread io;
    coil::run(work(io));
}

} // namespace

#else

#include <gtest/gtest.h>

TEST(BoostAsio, IsInstalled) { GTEST_SKIP() << "libboost-dev is not installed"; }

#endif
