// The program that the debuggers inspect: a server whose connections, each a TCP socket, are in
// eight kinds of waits. It writes what dump_tasks() says about them to a file, and calls
// all_wait().
//
//     server COUNT FILE     COUNT connections of each kind

#include <coil/coil.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

using namespace coil;
using namespace std::chrono_literals;

namespace server {

mutex held_mutex;
channel<int> empty_channel(1);
event unset_event;
counting_semaphore no_permits(0);
net::socket quiet_socket;
int quiet_fd = -1;

int listener = -1;
std::vector<net::socket> clients; // they send nothing

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::_Exit(1);
}

void listen() {
    ::rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener, 16) != 0) {
        fail("listen");
    }
}

net::socket accepts() {
    ::sockaddr_in address{};
    ::socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<::sockaddr*>(&address);
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::getsockname(listener, any, &size) != 0 || ::connect(client, any, size) != 0) {
        fail("connect");
    }
    clients.emplace_back(client);
    const int accepted = ::accept(listener, nullptr, nullptr);
    if (accepted < 0) {
        fail("accept");
    }
    return net::socket(accepted);
}

task<> sleeps() { co_await sleep_for(1h); }
task<> naps(net::socket, int minutes) {
    co_await sleeps();
    std::printf("%d\n", minutes);
}
task<int> receives(int fd) {
    char bytes[8];
    const int number = co_await io::recv(fd, mutable_buffer(bytes, sizeof bytes));
    co_return number;
}
task<> serves(net::socket client, int connection) {
    std::string line = "a line of connection " + std::to_string(connection);
    const int received = co_await receives(client.native_handle());
    line += std::to_string(received);
    std::puts(line.c_str());
}
task<> holds() {
    co_await held_mutex.lock();
    co_await sleeps();
}
task<> locks() {
    co_await held_mutex.lock();
    held_mutex.unlock();
}
task<> locks_for(net::socket) { co_await locks(); }
task<> takes(net::socket) { co_await empty_channel.recv(); }
task<> waits() { co_await unset_event.wait(); }
task<> waits_for(net::socket) { co_await waits(); }
task<> acquires(net::socket) {
    co_await no_permits.acquire();
    no_permits.release();
}
task<> joins(net::socket, int number) {
    scope all;
    all.spawn(sleeps(), "in scope " + std::to_string(number));
    co_await all.join();
}
task<> runs_elsewhere(net::socket, io_context& other) { co_await on(other, sleeps()); }

task<> has_children() {
    co_await when_all(sleeps(), receives(quiet_fd),
                      timeout(io::recv(quiet_fd, mutable_buffer()), 1h));
}
task<> has_many_children() {
    std::vector<task<>> many;
    for (int i = 0; i < 5; ++i) {
        many.push_back(waits());
    }
    co_await when_all(std::move(many));
}
task<> has_a_limit() { co_await timeout(locks(), 1h); }

} // namespace server

extern "C" [[gnu::noinline]] void all_wait(const task<>& some_task, const io_result& some_result) {
    std::printf("all wait\n");
    std::fflush(stdout);
    static_cast<void>(some_task);
    static_cast<void>(some_result);
}

namespace server {

void write(const char* path, const std::string& text) {
    if (std::FILE* const file = std::fopen(path, "w")) {
        std::fputs(text.c_str(), file);
        std::fclose(file);
    }
}

task<> reports(io_context& here, io_context& other, const char* path, int count) {
    std::string text;
    do {
        co_await sleep_for(20ms);
        text = here.dump_tasks(1'000'000) + other.dump_tasks(1'000'000);
    } while (text.find(": ready to run") != std::string::npos ||
             text.find("context other: " + std::to_string(count) +
                       (count == 1 ? " task\n" : " tasks\n")) == std::string::npos);
    write(path, text);
    task<> some_task = sleeps();
    const io_result some_result(-ECONNRESET);
    all_wait(some_task, some_result);
    std::_Exit(0);
}

} // namespace server

int main(int argc, char** argv) {
    using namespace server;
    const int count = argc > 2 ? std::atoi(argv[1]) : 1;
    int ends[2];
    if (argc < 3 || ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        return 1;
    }
    listen();
    quiet_fd = ends[0];
    quiet_socket = net::socket(ends[1]);
    io_context_options options;
    options.name = "main";
    io_context ctx(options);
    options.name = "other";
    io_context other(options);
    other.start();
    ctx.co_spawn(holds(), "the holder");
    for (int i = 0; i < count; ++i) {
        ctx.co_spawn(serves(accepts(), i), "connection " + std::to_string(i));
        ctx.co_spawn(naps(accepts(), i));
        ctx.co_spawn(locks_for(accepts()));
        ctx.co_spawn(takes(accepts()));
        ctx.co_spawn(waits_for(accepts()));
        ctx.co_spawn(acquires(accepts()));
        ctx.co_spawn(joins(accepts(), i));
        ctx.co_spawn(runs_elsewhere(accepts(), other));
    }
    ctx.co_spawn(has_children());
    ctx.co_spawn(has_many_children());
    ctx.co_spawn(has_a_limit());
    ctx.co_spawn(locks(), "the waiter");
    ctx.co_spawn(reports(ctx, other, argv[2], count));
    ctx.run();
}
