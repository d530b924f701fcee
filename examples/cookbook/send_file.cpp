// Send a part of a file over a socket. Larger parts are not copied through user space.
#include <coil/coil.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

using namespace coil;

task<> send_part(net::socket to, const fs::file& file, std::uint64_t begin, std::uint64_t end) {
    std::uint64_t at = begin;
    while (at < end) {
        const int n = (co_await sendfile(to, file, at, end - at)).value();
        if (n == 0) {
            break; // the file has become shorter
        }
        at += static_cast<std::uint64_t>(n);
    }
    std::printf("sent %d bytes from %d on\n", static_cast<int>(at - begin),
                static_cast<int>(begin));
}

task<int> receive(net::socket from) {
    std::string text(1'000'000, ' ');
    co_return co_await from.recv_all(text); // until the sender has closed its socket
}

task<> co_main() {
    const auto path = std::filesystem::temp_directory_path() / "coil-send-file";
    co_await fs::write_file(path, std::string(500'000, 'x'));
    const fs::file file = co_await fs::file::open(path);
    std::filesystem::remove(path);
    auto [ours, theirs] = net::socket::pair();
    auto receiving = spawn(receive(std::move(theirs)));
    co_await send_part(std::move(ours), file, 100'000, 300'000);
    std::printf("received %d\n", co_await std::move(receiving));
}

int main() { coil::run(co_main()); }
