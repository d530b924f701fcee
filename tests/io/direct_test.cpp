// Direct descriptors: creation, use in place of descriptors, closing, full tables, discarded
// results.

#include "io/support.hpp"
#include "support/backends.hpp"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::listener;
using coil_test::manual;
using coil_test::pipe_pair;
using coil_test::run_on;
using coil_test::socket_pair;
using io::direct_descriptor;

namespace {

class Direct : public ::testing::Test {
protected:
    io_test::temporary_directory directory_;
};

TEST_F(Direct, CallsGiveTheSameResultsAsOnPlainDescriptors) {
    auto main = [](const std::string& path) -> task<> {
        descriptor plain{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
        const coil_test::open_file file(plain);
        const auto direct = co_await io::openat_direct(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
        EXPECT_GE(direct, 64); // lower slots are for chosen numbers
        char memory[64] = "0123456789";
        const io::registered_buffers registered{mutable_buffer(memory, 64)};
        const io::registered_buffer whole = registered[0];
        ::iovec part{memory, 5};
        const std::vector<std::function<operation(io::descriptor)>> calls{
            [&](auto fd) { return io::write(fd, "0123456789", 0); },
            [&](auto fd) { return io::read(fd, {memory, 20}, 3); },
            [&](auto fd) { return io::writev(fd, {&part, 1}, 10); },
            [&](auto fd) { return io::readv(fd, {&part, 1}, 12); },
            [&](auto fd) { return io::write_fixed(fd, whole.first(7).bytes(), 0, whole.index()); },
            [&](auto fd) { return io::read_fixed(fd, whole.bytes(), 4, whole.index()); },
            [&](auto fd) { return io::fsync(fd); },
            [&](auto fd) { return io::fdatasync(fd); },
            [&](auto fd) { return io::sync_file_range(fd, 0, 5, 0); },
            [&](auto fd) { return io::fallocate(fd, 0, 0, 100); },
            [&](auto fd) { return io::ftruncate(fd, 30); },
            [&](auto fd) { return io::fadvise(fd, 0, 0, POSIX_FADV_RANDOM); },
            [&](auto fd) { return io::fadvise(fd, 0, 0, 999); },
            [&](auto fd) { return io::fgetxattr(fd, "user.none", {memory, 8}); },
            [&](auto fd) { return io::fsetxattr(fd, "bad", "x", 0); },
            [&](auto fd) { return io::poll(fd, POLLIN); },
            [&](auto fd) { return io::recv(fd, {memory, 4}); },
            [&](auto fd) { return io::send(fd, "x"); },
            [&](auto fd) { return io::listen(fd, 1); },
            [&](auto fd) { return io::shutdown(fd, SHUT_RD); },
            [&](auto fd) { return io::connect(fd, nullptr, 0); },
            [&](auto fd) { return io::close(fd); },
        };
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const int on_plain = co_await calls[i](plain);
            EXPECT_EQ(co_await calls[i](direct), on_plain) << i;
        }
        EXPECT_EQ(co_await io::read(direct, memory), -EBADF); // closed
        EXPECT_EQ(co_await io::close_direct(direct), -EBADF);
        EXPECT_EQ(co_await io::close(io::direct_descriptor{1 << 20}), -EINVAL);
        static_cast<void>(plain.release());
        EXPECT_FALSE(file.is_open()); // the plain one was closed, too
    };
    const std::string path = directory_ / "file";
    coil::run(main(path));
}

TEST_F(Direct, Sockets_FromEndToEnd) {
    const listener l;
    auto main = [](const listener& server) -> task<> {
        const auto client = co_await io::socket_direct(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
        EXPECT_GE(client, 0);
        const auto* address = reinterpret_cast<const ::sockaddr*>(&server.address);
        EXPECT_EQ(co_await io::connect(client, address, sizeof server.address), 0);
        ::sockaddr_in from{};
        ::socklen_t length = sizeof from;
        const auto peer = co_await io::accept_direct(server.socket,
                                                     reinterpret_cast<::sockaddr*>(&from), &length);
        EXPECT_GE(peer, 0);
        EXPECT_EQ(from.sin_family, AF_INET);
        char buf[16];
        EXPECT_EQ(co_await (io::send(client, "hello") && io::recv(peer, buf)), 5);
        EXPECT_EQ(co_await io::sendto(peer, "there", 0, nullptr, 0), 5);
        EXPECT_EQ(co_await io::recvfrom(client, buf, 0, nullptr, nullptr), 5);
        EXPECT_EQ(co_await io::send_zc(client, "zc"), 2);
        EXPECT_EQ(co_await io::recv(peer, buf), 2);
        int value = 0;
        ::socklen_t size = sizeof value;
        EXPECT_EQ(co_await io::getsockopt(peer, SOL_SOCKET, SO_TYPE, &value, &size), 0);
        EXPECT_EQ(value, SOCK_STREAM);
        EXPECT_EQ(co_await io::shutdown(client, SHUT_WR), 0);
        EXPECT_EQ(co_await io::recv(peer, buf), 0);
        EXPECT_EQ(co_await (io::close(client) && io::close_direct(peer)), 0);
    };
    coil::run(main(l));
}

TEST_F(Direct, ConvertedFromAndToPlainDescriptors) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        const auto in = co_await io::register_file(pipe.in);
        EXPECT_GE(in, 0);
        EXPECT_EQ(co_await io::register_file(-1), -EBADF);
        pipe.put("ab");
        char c;
        EXPECT_EQ(co_await io::read(in, {&c, 1}), 1);
        const int plain = co_await io::fixed_fd_install(in);
        if (plain == -EOPNOTSUPP) {
            EXPECT_EQ(co_await io::close(in), 0);
            co_return;
        }
        EXPECT_GE(plain, 0);
        EXPECT_EQ(::fcntl(plain, F_GETFD), FD_CLOEXEC);
        const descriptor inherited{
            co_await io::fixed_fd_install(in, uring::fixed_fd_flag::no_cloexec)};
        EXPECT_GE(inherited, 0);
        EXPECT_EQ(::fcntl(inherited, F_GETFD), 0);
        EXPECT_EQ(co_await io::fixed_fd_install(in, 2), -EINVAL);
        EXPECT_EQ(co_await io::fixed_fd_install(in, ~0U), -EINVAL);
        EXPECT_EQ(co_await io::close(in), 0);
        EXPECT_EQ(::read(plain, &c, 1), 1); // stays open
        EXPECT_EQ(::close(plain), 0);
        EXPECT_EQ(co_await io::fixed_fd_install(in), -EBADF);
        { // the result is discarded
            const auto again = co_await io::register_file(pipe.in);
            const auto dropped = eager(io::fixed_fd_install(again));
            co_await io::nop();
        }
        const auto from = co_await io::register_file(pipe.in);
        const pipe_pair other;
        pipe.put("xyz");
        EXPECT_EQ(co_await io::splice(from, nullptr, other.out, nullptr, 2, 0), 2);
        EXPECT_EQ(co_await io::tee(from, other.out, 1, 0), 1);
    };
    coil::run(main(p));
}

TEST_F(Direct, G13_ChosenSlotsInOneChain) {
    const listener l;
    const std::string path = directory_ / "file";
    auto main = [](const listener& server, const std::string& file) -> task<> {
        const auto* address = reinterpret_cast<const ::sockaddr*>(&server.address);
        const direct_descriptor three{3};
        EXPECT_EQ(co_await (io::socket_direct(AF_INET, SOCK_STREAM, 0, 3) &&
                            io::connect(three, address, sizeof server.address) &&
                            io::send(three, "hello")),
                  5);
        const descriptor peer{::accept(server.socket, nullptr, nullptr)};
        char buf[8];
        EXPECT_EQ(::recv(peer, buf, 5, 0), 5);
        EXPECT_EQ(co_await io::send(three, "more"), 4); // a chosen slot stays open
        EXPECT_EQ(co_await (io::openat_direct(AT_FDCWD, file, O_RDWR | O_CREAT, 0600, 3) &&
                            io::write(three, "x") && io::fsync(three) && io::close(three)),
                  0);
        EXPECT_EQ(::recv(peer, buf, sizeof buf, 0), 4);
        EXPECT_EQ(::recv(peer, buf, sizeof buf, 0), 0); // closed when the slot was taken again
        EXPECT_EQ(co_await io::write(three, "x"), -EBADF);
        EXPECT_EQ(co_await io::socket_direct(AF_INET, SOCK_STREAM, 0, 1 << 20), -EINVAL);
        EXPECT_EQ(co_await io::socket_direct(AF_INET, SOCK_STREAM, 0, 5), 5);
        EXPECT_EQ(co_await io::close(direct_descriptor{5}), 0);
    };
    coil::run(main(l, path));
}

io_context small_table() {
    return io_context(coil_test::with([](auto& o) { o.direct_descriptors = 2; }));
}

TEST_F(Direct, G6_AFullTable) {
    const listener l;
    const descriptor client = l.connect();
    auto ctx = small_table();
    auto main = [](const listener& server) -> task<> {
        const auto a = co_await io::socket_direct(AF_INET, SOCK_STREAM);
        const auto b = co_await io::register_file(server.socket);
        EXPECT_GE(a, 64);
        EXPECT_GE(b, 64);
        EXPECT_EQ(co_await io::socket_direct(AF_INET, SOCK_STREAM), -ENFILE);
        EXPECT_EQ(co_await io::openat_direct(AT_FDCWD, "/", O_RDONLY), -ENFILE);
        EXPECT_EQ(co_await io::register_file(server.socket), -ENFILE);
        EXPECT_EQ(co_await io::accept_direct(server.socket), -ENFILE);
        EXPECT_EQ(co_await io::socket_direct(AF_INET, SOCK_STREAM, 0, 7), 7); // chosen ones work
        EXPECT_EQ(co_await io::close(a), 0);
        EXPECT_EQ(co_await io::socket_direct(AF_INET, SOCK_STREAM), a);
    };
    run_on(ctx, main(l));
}

TEST_F(Direct, G4_AnUnreceivedDescriptorFreesItsSlot) {
    const listener l;
    auto ctx = small_table();
    auto main = [](const listener& server) -> task<> {
        for (int i = 0; i < 10; ++i) {
            { // complete, never awaited
                const auto a = eager(io::socket_direct(AF_INET, SOCK_STREAM));
                const auto b = eager(io::register_file(server.socket));
                co_await io::nop();
                co_await sleep_for(1ms);
                EXPECT_TRUE(a.is_complete() && b.is_complete());
            }
            { // in flight
                const auto a = eager(io::force_async(io::openat_direct(AT_FDCWD, "/", O_RDONLY)));
                const auto b = eager(io::accept_direct(server.socket));
            }
            // In the middle of a chain.
            EXPECT_EQ(co_await (io::socket_direct(AF_INET, SOCK_STREAM) &&
                                io::openat_direct(AT_FDCWD, "/", O_RDONLY) && io::nop()),
                      0);
            EXPECT_EQ(co_await (io::socket_direct(AF_INET, SOCK_STREAM) && io::read(-1, {})),
                      -EBADF);
            EXPECT_EQ(co_await timeout(io::accept_direct(server.socket), 1us), -ETIMEDOUT);
        }
        const auto a = co_await io::socket_direct(AF_INET, SOCK_STREAM);
        const auto b = co_await io::socket_direct(AF_INET, SOCK_STREAM);
        EXPECT_GE(a, 64);
        EXPECT_GE(b, 64);
    };
    run_on(ctx, main(l));
}

TEST_F(Direct, AnotherContextAndARunOnAnotherThreadHaveTheirOwnTable) {
    const pipe_pair p;
    auto a = small_table();
    auto b = small_table();
    std::optional<eager_operation<io::direct_operation::element_type>> left;
    auto makes = [&](const pipe_pair& pipe) -> task<int> {
        const auto slot = co_await io::register_file(pipe.in);
        left.emplace(io::socket_direct(AF_INET, SOCK_STREAM));
        co_await io::nop();
        co_return slot;
    };
    auto uses = [&](int slot) -> task<int> {
        const auto first = co_await io::socket_direct(AF_INET, SOCK_STREAM);
        const auto second = co_await io::socket_direct(AF_INET, SOCK_STREAM);
        left.reset(); // belongs to another table: closes nothing here
        EXPECT_EQ(co_await io::listen(first, 1), 0);
        EXPECT_EQ(co_await io::listen(second, 1), 0);
        char c;
        co_return co_await io::read(direct_descriptor{slot}, {&c, 1});
    };
    const int slot = run_on(a, makes(p));
    EXPECT_GE(slot, 64);
    EXPECT_EQ(run_on(b, uses(slot)), -ENOTCONN); // it is a socket in the table of b
    run_on(a, makes(p));                         // the same table: this thread has run `a` before
    std::thread([&] { EXPECT_EQ(run_on(a, uses(slot)), -ENOTCONN) << "a new table"; }).join();
    left.reset();
}

TEST_F(Direct, ADescriptorOfAnotherContextGivesEBADF) {
    const pipe_pair p;
    const socket_pair s;
    auto home = small_table();
    auto elsewhere = small_table();
    struct both {
        direct_descriptor pipe;
        direct_descriptor socket;
    };
    auto makes = [](const pipe_pair& pipe, const socket_pair& sockets) -> task<both> {
        const auto end = co_await io::register_file(pipe.in);
        co_return both{end, co_await io::register_file(sockets.a)};
    };
    auto uses = [](both d, const pipe_pair& pipe, bool has_table) -> task<> {
        if (has_table) { // files of this context are in the same slots
            EXPECT_EQ(co_await io::register_file(pipe.in), d.pipe);
            const auto listens = co_await io::socket_direct(AF_INET, SOCK_STREAM);
            EXPECT_EQ(listens, d.socket);
            EXPECT_EQ(co_await io::listen(listens, 1), 0);
        }
        char buf[8];
        ::epoll_event event{};
        ::msghdr message{};
        ::iovec part{buf, 1};
        const pipe_pair other;
        other.put("x");
        EXPECT_EQ(co_await io::read(d.pipe, buf), -EBADF);
        EXPECT_EQ(co_await io::readv(d.pipe, {&part, 1}), -EBADF);
        EXPECT_EQ(co_await io::poll(d.pipe, POLLIN), -EBADF);
        EXPECT_EQ(co_await io::fsync(d.pipe), -EBADF);
        EXPECT_EQ(co_await io::splice(d.pipe, nullptr, other.out, nullptr, 1), -EBADF);
        EXPECT_EQ(co_await io::splice(other.in, nullptr, d.pipe, nullptr, 1), -EBADF);
        EXPECT_EQ(co_await io::tee(d.pipe, other.out, 1), -EBADF);
        EXPECT_EQ(co_await io::tee(other.in, d.pipe, 1), -EBADF);
        EXPECT_EQ(co_await io::epoll_wait(d.pipe, {&event, 1}), -EBADF);
        EXPECT_EQ(co_await io::send(d.socket, "x"), -EBADF);
        EXPECT_EQ(co_await io::sendto(d.socket, "x", 0, nullptr, 0), -EBADF);
        EXPECT_EQ(co_await io::sendmsg(d.socket, &message), -EBADF);
        EXPECT_EQ(co_await io::send_zc(d.socket, "x"), -EBADF);
        EXPECT_EQ(co_await io::sendmsg_zc(d.socket, &message), -EBADF);
        EXPECT_EQ(co_await io::recv(d.socket, buf), -EBADF);
        EXPECT_EQ(co_await io::recvfrom(d.socket, buf, 0, nullptr, nullptr), -EBADF);
        EXPECT_EQ(co_await io::accept(d.socket), -EBADF);
        EXPECT_EQ(co_await io::accept_direct(d.socket), -EBADF);
        int value = 0;
        ::socklen_t size = sizeof value;
        EXPECT_EQ(co_await io::getsockopt(d.socket, SOL_SOCKET, SO_TYPE, &value, &size), -EBADF);
        EXPECT_EQ(co_await io::setsockopt(d.socket, SOL_SOCKET, SO_REUSEADDR, &value, size),
                  -EBADF);
        EXPECT_EQ(co_await io::shutdown(d.socket, SHUT_RD), -EBADF);
        EXPECT_EQ(co_await io::fixed_fd_install(d.pipe), -EBADF);
        EXPECT_EQ(co_await io::cancel(d.pipe), -EBADF);
        EXPECT_EQ(co_await io::close(d.pipe), -EBADF);
        EXPECT_EQ(co_await io::close_direct(d.socket), -EBADF);
        // With modifiers and timeouts, in chains, as eager and as multishot operations.
        EXPECT_EQ(co_await io::force_async(io::read(d.pipe, buf)), -EBADF);
        EXPECT_EQ(co_await io::drain(io::read(d.pipe, buf)), -EBADF);
        EXPECT_EQ(co_await timeout(io::read(d.pipe, buf), 5s), -EBADF);
        EXPECT_EQ(co_await (io::nop() && io::read(d.pipe, buf)), -EBADF);
        EXPECT_EQ(co_await (io::nop() && io::read(d.pipe, buf) && io::nop()), -ECANCELED);
        EXPECT_EQ(co_await (io::fsync(d.pipe) && io::nop()), -ECANCELED);
        EXPECT_EQ(co_await hard_link(io::read(d.pipe, buf), io::write(other.out, "y")), 1);
        auto pending = eager(io::read(d.pipe, buf));
        EXPECT_EQ(co_await pending, -EBADF);
        buffer_pool pool(2, 64);
        auto reads = io::read_multishot(d.pipe, pool);
        EXPECT_EQ((co_await reads.next()).result(), -EBADF);
        auto receives = io::recv_multishot(d.socket, pool);
        EXPECT_EQ((co_await receives.next()).result(), -EBADF);
        auto accepts = io::accept_multishot(d.socket);
        EXPECT_EQ(int{co_await accepts.next()}, -EBADF);
        auto polls = io::poll_multishot(d.pipe, POLLIN);
        EXPECT_EQ(int{co_await polls.next()}, -EBADF);
        if (has_table) {
            EXPECT_EQ(co_await io::poll(direct_descriptor{d.pipe}, POLLIN), -EBADF); // a copy
            const direct_descriptor here{int{d.pipe}};
            EXPECT_EQ(co_await io::read(here, {buf, 1}), 1); // a bare slot number
            EXPECT_EQ(co_await io::splice(d.pipe, nullptr, here, nullptr, 1), -EBADF);
            EXPECT_EQ(co_await io::splice(here, nullptr, d.pipe, nullptr, 1), -EBADF);
        }
    };
    auto goes_on = [](both d, operation made_elsewhere) -> task<> {
        char buf[8];
        EXPECT_EQ(co_await io::read(d.pipe, {buf, 1}), 1);
        EXPECT_EQ(co_await std::move(made_elsewhere), 1); // the awaiting context counts
        EXPECT_EQ(co_await (io::close(d.pipe) && io::close_direct(d.socket)), 0);
    };
    auto awaits = [](operation op) -> task<int> { co_return co_await std::move(op); };

    p.put("abcd");
    const both d = run_on(home, makes(p, s));
    ASSERT_TRUE(d.pipe >= 64 && d.socket >= 64);
    run_on(elsewhere, uses(d, p, false));
    run_on(elsewhere, uses(d, p, true));
    char c = 0;
    EXPECT_EQ(run_on(elsewhere, awaits(io::read(d.pipe, {&c, 1}))), -EBADF);
    run_on(home, goes_on(d, io::read(d.pipe, {&c, 1})));
}

TEST_F(Direct, G6_WithFewDescriptorsAllowed) {
    EXPECT_EQ(coil_test::in_child([]() -> std::string {
                  ::rlimit few{40, 40};
                  if (::setrlimit(RLIMIT_NOFILE, &few) != 0) {
                      return "setrlimit";
                  }
                  auto main = []() -> task<int> {
                      const auto s = co_await io::socket_direct(AF_INET, SOCK_STREAM);
                      if (s < 0) {
                          co_return int{s};
                      }
                      co_return co_await io::close(s);
                  };
                  const int r = coil::run(main());
                  return r == 0 ? "" : std::to_string(r);
              }),
              "");
}

} // namespace
