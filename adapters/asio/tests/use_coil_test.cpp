// use_coil: every signature of a completion handler, and every kind of result.

#include "support/run.hpp"

#include <coil/asio.hpp>
#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <asio.hpp>
#include <asio/experimental/as_tuple.hpp>

namespace {

using namespace coil;
using namespace std::chrono_literals;
using asio::ip::tcp;
using stream = asio::local::stream_protocol;

const tcp::endpoint any_port(asio::ip::address_v4::loopback(), 0);

struct connected_pair {
    explicit connected_pair(asio_thread& io) : a(io.context()), b(io.context()) {
        asio::local::connect_pair(a, b);
    }
    stream::socket a;
    stream::socket b;
};

TEST(UseCoil, ConnectsAndTransfersOnItsContextsThread) {
    asio_thread io;
    const auto server = [](tcp::acceptor& acceptor) -> task<> {
        tcp::socket peer = co_await acceptor.async_accept(use_coil);
        std::string text;
        const std::size_t n =
            co_await asio::async_read_until(peer, asio::dynamic_buffer(text), '\n', use_coil);
        co_await asio::async_write(peer, asio::buffer(text, n), use_coil);
    };
    const auto client = [](asio_thread& on, std::uint16_t port) -> task<std::string> {
        const auto here = std::this_thread::get_id();
        tcp::resolver resolver(on.context());
        const tcp::resolver::results_type found =
            co_await resolver.async_resolve("127.0.0.1", std::to_string(port), use_coil);
        tcp::socket socket(on.context());
        const tcp::endpoint reached = co_await asio::async_connect(socket, found, use_coil);
        EXPECT_EQ(reached.port(), port);
        co_await asio::async_write(socket, asio::buffer("hello\n", 6), use_coil);
        std::string text(6, ' ');
        const std::size_t n = co_await asio::async_read(socket, asio::buffer(text), use_coil);
        EXPECT_EQ(n, 6U);
        EXPECT_EQ(std::this_thread::get_id(), here);
        co_return text;
    };
    tcp::acceptor acceptor(io.context(), any_port);
    io_context other;
    other.co_spawn(server(acceptor));
    other.start();
    EXPECT_EQ(coil::run(client(io, acceptor.local_endpoint().port())), "hello\n");
    other.join();
}

TEST(UseCoil, ReturnsNothingOneValueOrSeveral) {
    const auto initiate = []<class Signature, class... Values>(auto token, Values... values) {
        return asio::async_initiate<decltype(token), Signature>(
            [](auto handler, Values... v) { std::move(handler)(std::move(v)...); }, token,
            std::move(values)...);
    };
    const auto work = [](auto start) -> task<> {
        using asio::error_code;
        co_await start.template operator()<void()>(use_coil);
        co_await start.template operator()<void(error_code)>(use_coil, error_code());
        const int one = co_await start.template operator()<void(int)>(use_coil, 1);
        const auto owned =
            co_await start.template operator()<void(error_code, std::unique_ptr<int>)>(
                use_coil, error_code(), std::make_unique<int>(2));
        const auto [three, four] =
            co_await start.template operator()<void(std::exception_ptr, int, std::string)>(
                use_coil, nullptr, 3, std::string("4"));
        EXPECT_EQ(one, 1);
        EXPECT_EQ(*owned, 2);
        EXPECT_EQ(three, 3);
        EXPECT_EQ(four, "4");
        const auto [error, five] = co_await start.template operator()<void(error_code, int)>(
            use_coil_as_tuple, asio::error::make_error_code(asio::error::eof), 5);
        EXPECT_EQ(error, asio::error::eof);
        EXPECT_EQ(five, 5);
        const auto [same, six] = co_await start.template operator()<void(error_code, int)>(
            asio::experimental::as_tuple(use_coil), asio::error::make_error_code(asio::error::eof),
            6);
        EXPECT_EQ(same, asio::error::eof);
        EXPECT_EQ(six, 6);
        try {
            co_await start.template operator()<void(error_code, int)>(
                use_coil, asio::error::make_error_code(asio::error::eof), 5);
            ADD_FAILURE() << "no exception";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), asio::error::eof);
        }
        const auto thrown = std::make_exception_ptr(std::runtime_error("thrown"));
        EXPECT_THROW(
            (co_await start.template operator()<void(std::exception_ptr)>(use_coil, thrown)),
            std::runtime_error);
    };
    coil::run(work(initiate));
}

TEST(UseCoil, StartsNothingBeforeTheAwait) {
    int started = 0;
    const auto start = [&] {
        return asio::async_initiate<const use_coil_t, void()>(
            [&started](auto handler) {
                ++started;
                std::move(handler)();
            },
            use_coil);
    };
    const auto work = [](auto begin, int& count) -> task<> {
        auto unused = begin();
        auto later = begin();
        EXPECT_EQ(count, 0);
        co_await std::move(later);
        EXPECT_EQ(count, 1);
    };
    coil::run(work(start, started));
}

TEST(UseCoil, IntermediateHandlersRunOnTheContextsThread) {
    const auto work = [](asio_thread& on) -> task<> {
        const auto here = std::this_thread::get_id();
        std::vector<std::thread::id> seen;
        asio::steady_timer timer(on.context());
        co_await asio::async_compose<const use_coil_t, void(asio::error_code)>(
            [&, round = 0](auto& self, asio::error_code = {}) mutable {
                seen.push_back(std::this_thread::get_id());
                if (round++ == 3) {
                    self.complete({});
                    return;
                }
                timer.expires_after(1ms);
                timer.async_wait(std::move(self));
            },
            use_coil, timer);
        EXPECT_EQ(seen, std::vector(4, here));
    };
    asio_thread io;
    coil::run(work(io));
}

TEST(UseCoil, IsADefaultCompletionToken) {
    using socket = use_coil_t::as_default_on_t<stream::socket>;
    const auto work = [](socket& a, socket& b) -> task<char> {
        char c = 'x';
        co_await a.async_write_some(asio::buffer(&c, 1));
        c = ' ';
        co_await b.async_read_some(asio::buffer(&c, 1));
        co_return c;
    };
    asio_thread io;
    socket a(io.context());
    socket b(io.context());
    asio::local::connect_pair(a, b);
    EXPECT_EQ(coil::run(work(a, b)), 'x');
}

} // namespace
