// An echo server and a client on Asio; the client awaits Asio's operations in a coil task.
//
//     asio_echo [MESSAGES]     (the default is 3)
//
// The server uses callbacks, which run on a coil context. The client sets time limits for its
// operations.

#include <coil/asio.hpp>
#include <coil/coil.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <asio.hpp>

namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

/// A connection of the server, in Asio's usual style.
class session : public std::enable_shared_from_this<session> {
public:
    explicit session(tcp::socket peer) : peer_(std::move(peer)) {}

    void read() {
        peer_.async_read_some(asio::buffer(buffer_),
                              [self = shared_from_this()](asio::error_code error, std::size_t n) {
                                  if (!error) {
                                      self->write(n);
                                  }
                              });
    }

private:
    void write(std::size_t n) {
        asio::async_write(peer_, asio::buffer(buffer_, n),
                          [self = shared_from_this()](asio::error_code error, std::size_t) {
                              if (!error) {
                                  self->read();
                              }
                          });
    }

    tcp::socket peer_;
    std::array<char, 1024> buffer_{};
};

void accept_one(tcp::acceptor& acceptor) {
    acceptor.async_accept([](asio::error_code error, tcp::socket peer) {
        if (!error) {
            std::make_shared<session>(std::move(peer))->read();
        }
    });
}

// [client]
coil::task<> client(asio::any_io_executor executor, tcp::endpoint server, int messages) {
    tcp::socket socket(executor);
    co_await coil::timeout(socket.async_connect(server, coil::use_coil), 5s);
    for (int i = 1; i <= messages; ++i) {
        const std::string message = "message " + std::to_string(i);
        co_await asio::async_write(socket, asio::buffer(message), coil::use_coil);
        std::string answer(message.size(), ' ');
        co_await coil::timeout(asio::async_read(socket, asio::buffer(answer), coil::use_coil), 5s);
        std::printf("%s\n", answer.c_str());
    }
}
// [/client]

} // namespace

int main(int argc, char** argv) {
    const int messages = argc > 1 ? std::atoi(argv[1]) : 3;
    coil::io_context ctx;
    coil::asio_context asio_side(ctx);
    tcp::acceptor acceptor(asio_side.get_executor(), {asio::ip::address_v4::loopback(), 0});
    accept_one(acceptor);
    auto done = ctx.spawn(client(asio_side.get_executor(), acceptor.local_endpoint(), messages));
    ctx.run(); // until the client has ended, and the session with it
    try {
        done.get();
    } catch (const std::system_error& error) {
        std::fprintf(stderr, "asio_echo: %s\n", error.what());
        return 1;
    }
}
