// An HTTP server and client that use Boost.Beast in coil tasks, on one coil context.
//
//     beast_http [REQUESTS]     (the default is 3)

#if __has_include(<boost/beast.hpp>)

#define COIL_ASIO_BOOST 1

#include <coil/asio.hpp>
#include <coil/coil.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include <boost/asio.hpp>
#include <boost/beast.hpp>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

coil::task<> serve(tcp::socket peer) {
    beast::tcp_stream stream(std::move(peer));
    beast::flat_buffer buffer;
    for (;;) {
        http::request<http::string_body> request;
        const auto [error, n] =
            co_await http::async_read(stream, buffer, request, coil::use_coil_as_tuple);
        if (error) {
            break; // usually http::error::end_of_stream
        }
        http::response<http::string_body> response(http::status::ok, request.version());
        response.keep_alive(request.keep_alive());
        response.body() = "you asked for " + std::string(request.target());
        response.prepare_payload();
        co_await http::async_write(stream, response, coil::use_coil);
    }
}

coil::task<> accept_one(tcp::acceptor& acceptor) {
    co_await serve(co_await acceptor.async_accept(coil::use_coil));
}

coil::task<> ask(asio::any_io_executor executor, tcp::endpoint server, int requests) {
    beast::tcp_stream stream(executor);
    co_await stream.async_connect(server, coil::use_coil);
    beast::flat_buffer buffer;
    for (int i = 1; i <= requests; ++i) {
        http::request<http::empty_body> request(http::verb::get, "/" + std::to_string(i), 11);
        request.set(http::field::host, "localhost");
        co_await http::async_write(stream, request, coil::use_coil);
        http::response<http::string_body> response;
        co_await http::async_read(stream, buffer, response, coil::use_coil);
        std::printf("%u %s\n", response.result_int(), response.body().c_str());
    }
}

} // namespace

int main(int argc, char** argv) {
    const int requests = argc > 1 ? std::atoi(argv[1]) : 3;
    coil::io_context ctx;
    coil::asio_context asio_side(ctx);
    tcp::acceptor acceptor(asio_side.get_executor(), {asio::ip::address_v4::loopback(), 0});
    auto server = ctx.spawn(accept_one(acceptor));
    auto client = ctx.spawn(ask(asio_side.get_executor(), acceptor.local_endpoint(), requests));
    ctx.run();
    try {
        client.get();
        server.get();
    } catch (const std::system_error& error) {
        std::fprintf(stderr, "beast_http: %s\n", error.what());
        return 1;
    }
}

#else

#include <cstdio>

int main() {
    std::puts("beast_http needs Boost.Beast: install libboost-dev");
    return 77;
}

#endif
