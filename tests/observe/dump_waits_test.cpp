// What dump_tasks() says about each kind of wait, as text and as JSON.
#include "support.hpp"
#include "support/descriptors.hpp"

#include <array>
#include <cstdlib>
#include <deque>
#include <set>
#include <sstream>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using coil_test::connection;
using coil_test::count_of;
using coil_test::dumps;
using coil_test::dumps_of;
using coil_test::hex;

task<> receives(int fd) {
    char c = 0;
    co_await io::recv(fd, mutable_buffer(&c, 1));
}

void expect_each(const std::string& text, std::initializer_list<std::string> wanted) {
    for (const std::string& one : wanted) {
        EXPECT_EQ(count_of(text, one), 1U) << one << " in\n" << text;
    }
}

/// A listening socket and a connection to it.
struct server {
    explicit server(int family) {
        listener = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ::sockaddr_storage address{};
        address.ss_family = static_cast<::sa_family_t>(family);
        ::socklen_t size = sizeof address;
        if (family == AF_INET) {
            reinterpret_cast<::sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            size = sizeof(::sockaddr_in);
        } else if (family == AF_INET6) {
            reinterpret_cast<::sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
            size = sizeof(::sockaddr_in6);
        } else { // an abstract name that the kernel chooses
            size = sizeof(::sa_family_t);
        }
        auto* const any = reinterpret_cast<::sockaddr*>(&address);
        if (::bind(listener, any, size) != 0) {
            return; // without IPv6
        }
        size = sizeof address;
        EXPECT_EQ(::getsockname(listener, any, &size), 0);
        EXPECT_EQ(::listen(listener, 4), 0);
        name = text_of(address, size);
        client = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::connect(client, any, size), 0);
    }
    server(const server&) = delete;
    server& operator=(const server&) = delete;
    ~server() {
        ::close(listener);
        ::close(client);
    }

    static std::string text_of(const ::sockaddr_storage& address, ::socklen_t size) {
        if (address.ss_family == AF_INET) {
            const auto& inet = reinterpret_cast<const ::sockaddr_in&>(address);
            return "127.0.0.1:" + std::to_string(ntohs(inet.sin_port));
        }
        if (address.ss_family == AF_INET6) {
            const auto& inet = reinterpret_cast<const ::sockaddr_in6&>(address);
            return "[::1]:" + std::to_string(ntohs(inet.sin6_port));
        }
        const auto& local = reinterpret_cast<const ::sockaddr_un&>(address);
        return "unix:@" + std::string(local.sun_path + 1, size - sizeof(::sa_family_t) - 1);
    }

    int listener = -1;
    int client = -1;
    std::string name; // of the listener
};

task<> accepts(int fd) { co_await io::accept(fd); }
/// Waits for space.
task<> sends(int fd) {
    static const std::array<char, 65536> bytes{};
    while (::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    co_await io::send(fd, const_buffer(bytes.data(), bytes.size()));
}

/// A socket is shown with the address of its peer, a listener with its own address. For TCP the
/// time since data was last received is shown too.
TEST(DumpWaits, Addresses) {
    for (const int family : {AF_INET, AF_INET6, AF_UNIX}) {
        const server one(family);
        if (one.client < 0) {
            EXPECT_EQ(family, AF_INET6);
            continue;
        }
        io_context ctx;
        ctx.co_spawn(receives(one.client));
        ctx.co_spawn(sends(one.client));
        const dumps got = dumps_of(ctx);
        const std::string fd = "fd " + std::to_string(one.client);
        const std::string idle = family == AF_UNIX ? "\n" : ", nothing received for 0.0";
        // One look-up for both: the idle time is shown with the send, too.
        expect_each(got.text, {": recv " + fd + ' ' + one.name + idle,
                               ": send " + fd + ' ' + one.name + idle});
        const std::string json = coil_test::parsed(got.json);
        expect_each(json, {"call=recv fd=" + std::to_string(one.client) + " peer=" + one.name});
        EXPECT_EQ(count_of(json, " idle_s=0"), family == AF_UNIX ? 0U : 2U) << json;

        io_context other;
        const int peer = ::accept(one.listener, nullptr, nullptr);
        other.co_spawn(accepts(one.listener));
        const dumps listening = dumps_of(other);
        ::close(peer);
        expect_each(listening.text,
                    {": accept fd " + std::to_string(one.listener) + " on " + one.name + '\n'});
        expect_each(coil_test::parsed(listening.json), {" local=" + one.name});
    }
}

task<> reads(int fd) {
    char c = 0;
    co_await io::read(fd, mutable_buffer(&c, 1), io::current_position);
}

TEST(DumpWaits, AFile) {
    const coil_test::pipe_pair p;
    std::array<char, 64> path{};
    ASSERT_GT(
        ::readlink(("/proc/self/fd/" + std::to_string(p.in)).c_str(), path.data(), path.size() - 1),
        0);
    io_context ctx;
    ctx.co_spawn(reads(p.in));
    const dumps got = dumps_of(ctx);
    expect_each(got.text, {": read fd " + std::to_string(p.in) + ' ' + path.data() + '\n'});
    expect_each(coil_test::parsed(got.json), {std::string(" path=") + path.data()});
}

/// So many files that several threads look them up.
TEST(DumpWaits, ManyFiles) {
    constexpr int count = 2500;
    ::rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    if (before.rlim_max < 2 * count + 100) {
        GTEST_SKIP() << "the hard limit of RLIMIT_NOFILE is " << before.rlim_max;
    }
    ::rlimit raised = before;
    raised.rlim_cur = before.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &raised);
    {
        const std::deque<coil_test::pipe_pair> pipes(count);
        io_context ctx;
        for (const auto& p : pipes) {
            ctx.co_spawn(reads(p.in));
        }
        std::set<std::string> wanted;
        for (const auto& p : pipes) {
            struct ::stat status{};
            ::fstat(p.in, &status);
            wanted.insert("read fd " + std::to_string(p.in) + " pipe:[" +
                          std::to_string(status.st_ino) + ']');
        }
        std::istringstream lines(dumps_of(ctx).text);
        std::size_t found = 0;
        for (std::string line; std::getline(lines, line);) {
            if (const auto at = line.find("read fd "); at != std::string::npos) {
                found += wanted.erase(line.substr(at));
            }
        }
        EXPECT_EQ(found, std::size_t{count});
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
}

task<> streams(int fd) {
    auto connections = io::accept_multishot(fd);
    static_cast<void>(co_await connections.next());
}
task<> streams_with_a_limit(int fd) {
    auto connections = io::accept_multishot(fd);
    static_cast<void>(co_await timeout(connections.next(), 1h));
}

TEST(DumpWaits, AStream) {
    const server one(AF_INET);
    const int peer = ::accept(one.listener, nullptr, nullptr);
    const std::string fd = " fd " + std::to_string(one.listener);
    const std::string accept = ": stream of accept" + fd + " on " + one.name;
    io_context ctx;
    ctx.co_spawn(streams(one.listener));
    ctx.co_spawn(streams_with_a_limit(one.listener));
    const dumps got = dumps_of(ctx);
    ::close(peer);
    expect_each(got.text, {accept + '\n', accept + ", for 0.", " s, limit in 359"});
    const std::string json = coil_test::parsed(got.json);
    EXPECT_EQ(count_of(json, ": stream call=accept "), 2U) << json;
    expect_each(json, {" call_limit_s=359"});
}

TEST(DumpWaits, AQueuedOperation) {
    const connection quiet;
    io_context ctx(coil_test::with([](auto& o) { o.max_in_flight = 1; }));
    ctx.co_spawn(receives(quiet.ends[0]));
    ctx.co_spawn(receives(quiet.ends[1]));
    const dumps got = dumps_of(ctx);
    EXPECT_EQ(count_of(got.text, ": recv fd "), 2U) << got.text;
    expect_each(got.text, {", waits to be submitted\n"});
    expect_each(coil_test::parsed(got.json), {": queued call=recv "});
}

task<> waits_in_a_chain(int fd) {
    char c = 0;
    char d = 0;
    co_await (timeout(io::recv(fd, mutable_buffer(&c, 1)), 90s) &&
              io::recv(fd, mutable_buffer(&d, 1)));
}

/// Only the kernel knows when it has started the timeout of a call in a chain.
TEST(DumpWaits, ALimitInAChain) {
    const connection quiet;
    io_context ctx;
    ctx.co_spawn(waits_in_a_chain(quiet.ends[0]));
    const dumps got = dumps_of(ctx);
    expect_each(got.text, {": recv fd " + std::to_string(quiet.ends[0]) + ", limit of 90.000 s\n"});
    expect_each(coil_test::parsed(got.json), {" call_limit_total_s=90.0"});
}

// ---- objects

task<> locks_shared(shared_mutex& m) {
    co_await m.lock_shared();
    co_await sleep_for(1h);
}
task<> locks(shared_mutex& m) { co_await m.lock(); }
task<> waits(latch& l) { co_await l.wait(); }
task<> arrives(barrier<>& b) { co_await b.arrive_and_wait(); }
task<> waits(wait_group& g) { co_await g.wait(); }
task<> waits(condition_variable& changed, mutex& m) {
    co_await m.lock();
    co_await changed.wait(m);
}
task<> listens(broadcast<int>& b) {
    auto mine = b.subscribe();
    co_await mine.recv();
}
task<> receives(oneshot<int>& o) { co_await o.recv(); }
task<> acquires(counting_semaphore<>& s) { co_await s.acquire(); }
task<> writes(shared_writer<net::socket&>& out) { co_await out.write(std::string(1 << 20, 'x')); }
task<> sends(channel<int>& c) { co_await c.send(1); }
task<> receives(channel<int>& c) { co_await c.recv(); }

TEST(DumpWaits, Objects) {
    shared_mutex shared;
    latch ends(1);
    barrier<> meets(2);
    wait_group group(1);
    mutex m;
    condition_variable changed;
    broadcast<int> news(4);
    oneshot<int> answer;
    counting_semaphore<> permits(0);
    auto [near, far] = net::socket::pair();
    ASSERT_EQ(near.set_send_buffer_size(4096), 0);
    shared_writer out(near, 2 << 20);
    io_context ctx;
    ctx.co_spawn(writes(out));
    ctx.co_spawn(writes(out)); // waits for the call of the first one
    ctx.co_spawn(locks_shared(shared));
    ctx.co_spawn(locks(shared));
    ctx.co_spawn(waits(ends));
    ctx.co_spawn(arrives(meets));
    ctx.co_spawn(waits(group));
    ctx.co_spawn(waits(changed, m));
    ctx.co_spawn(listens(news));
    ctx.co_spawn(receives(answer));
    ctx.co_spawn(acquires(permits));
    const dumps got = dumps_of(ctx);
    expect_each(got.text, {": shared_mutex at " + hex(&shared) + ", locked shared\n", ": latch at ",
                           ": barrier at ", ": wait_group at " + hex(&group) + '\n',
                           ": condition_variable", ": broadcast", ": oneshot",
                           ": semaphore at " + hex(&permits) + '\n', ": shared_writer::write at "});
    expect_each(coil_test::parsed(got.json),
                {" object=shared_mutex ", " object=latch", " object=barrier", " object=wait_group",
                 " object=condition_variable", " object=broadcast", " object=oneshot",
                 " object=semaphore", " object=shared_writer::write", " locked_shared=True"});
}

/// Correct even after the positions in the channel's ring have wrapped around.
TEST(DumpWaits, FillOfChannels) {
    for (const int capacity : {1, 3, 16}) {
        channel<int> full(static_cast<std::size_t>(capacity));
        for (int i = 0; i < 5 * capacity + 2; ++i) { // some laps
            ASSERT_TRUE(full.try_send(int{i}));
            ASSERT_TRUE(full.try_recv().has_value());
        }
        channel<int> empty(static_cast<std::size_t>(capacity));
        for (int i = 0; i < capacity; ++i) {
            ASSERT_TRUE(full.try_send(int{i}));
        }
        channel<int> rendezvous;
        channel<int> without_bound(unbounded);
        io_context ctx;
        ctx.co_spawn(sends(full));
        ctx.co_spawn(receives(empty));
        ctx.co_spawn(sends(rendezvous));
        ctx.co_spawn(receives(without_bound));
        const dumps got = dumps_of(ctx);
        const std::string most = std::to_string(capacity);
        expect_each(got.text,
                    {": channel::send at " + hex(&full) + ", " + most + " of " + most + '\n',
                     ": channel::recv at " + hex(&empty) + ", 0 of " + most + '\n',
                     ": channel::send at " + hex(&rendezvous) + ", 0 of 0\n",
                     ": channel::recv at " + hex(&without_bound) + ", unbounded\n"});
        expect_each(coil_test::parsed(got.json),
                    {" elements=" + most + " capacity=" + most, " elements=0 capacity=" + most,
                     " elements=0 capacity=0", " unbounded=True"});
    }
}

// ---- times

task<> sleeps() { co_await sleep_for(1h); }
task<> receives_for_at_most(int fd, std::chrono::steady_clock::time_point end) {
    char c = 0;
    co_await timeout_at(io::recv(fd, mutable_buffer(&c, 1)), end);
}

/// timeout_at() knows only the end of the wait, so the dump does not say how long it has lasted.
TEST(DumpWaits, ALimitByATimePoint) {
    const connection quiet;
    io_context ctx;
    ctx.co_spawn(receives_for_at_most(quiet.ends[0], std::chrono::steady_clock::now() + 1h));
    const dumps got = dumps_of(ctx);
    expect_each(got.text, {": recv fd " + std::to_string(quiet.ends[0]) + ", limit in 3599."});
}

/// A trace knows when each wait began.
TEST(DumpWaits, DurationsWhileATraceIsTaken) {
    const connection quiet;
    event never;
    io_context ctx;
    trace::start();
    ctx.co_spawn(receives(quiet.ends[0]));
    ctx.co_spawn(sleeps());
    ctx.co_spawn([](event& e) -> task<> { co_await e.wait(); }(never));
    std::string text;
    std::string json;
    ctx.co_spawn([](io_context& here, std::string& t, std::string& j) -> task<> {
        co_await sleep_for(50ms);
        t = here.dump_tasks();
        j = here.dump_tasks_json();
        here.stop();
    }(ctx, text, json));
    ctx.run();
    trace::stop();
    const std::string others = dumps_of(ctx).text;
    for (const char* what : {": recv fd ", ": sleep, 359", ": event at "}) {
        const auto at = text.find(what);
        ASSERT_NE(at, std::string::npos) << text;
        const std::string line = text.substr(at, text.find('\n', at) - at);
        const auto before = line.find(", for ");
        ASSERT_NE(before, std::string::npos) << text;
        const double seconds = std::strtod(line.c_str() + before + 6, nullptr);
        EXPECT_GE(seconds, 0.049) << line;
        EXPECT_LT(seconds, 30) << line;
    }
    EXPECT_EQ(count_of(coil_test::parsed(json), " waits_s=0."), 3U) << json;
    EXPECT_EQ(count_of(others, ", for "), 0U) << others;
}

} // namespace
