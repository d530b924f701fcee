// Listen and connect on a Unix socket.
#include <coil/coil.hpp>

#include <cstdio>
#include <string_view>

#include <sys/un.h>

using namespace coil;

struct unix_address {
    sockaddr_un address{};
    explicit unix_address(std::string_view path) {
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
    }
    const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&address); }
};

task<> co_main() {
    const unix_address where("cookbook.sock");
    static_cast<void>(co_await io::unlink("cookbook.sock"));
    net::socket listening = net::socket::create_unix();
    (co_await io::bind(listening.native_handle(), where.data(), sizeof where.address)).value();
    (co_await io::listen(listening.native_handle(), 16)).value();

    net::socket client = net::socket::create_unix();
    (co_await io::connect(client.native_handle(), where.data(), sizeof where.address)).value();
    net::socket peer(co_await io::accept(listening.native_handle()));
    co_await client.send_all("hello");
    char buf[5];
    const int n = co_await peer.recv_all(buf);
    std::printf("%.*s\n", n, buf);
    co_await io::unlink("cookbook.sock");
}

int main() { coil::run(co_main()); }
