#include "support/run.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <netdb.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

using addresses = std::vector<net::inet_address>;

/// A replacement for getaddrinfo: waits at a gate, then returns 127.0.0.1 for any name. Never
/// destroyed, because a helper thread whose look-up was abandoned may call it late.
struct fake_lookup {
    std::mutex mutex;
    std::condition_variable changed;
    int calls = 0;
    int inside = 0;
    int most_at_once = 0;
    bool open = false;
    bool signals_blocked = false;
    int answer = 0;
    int system_error = 0;
    std::string host;
    std::string service;

    int enter(const char* for_host, const char* for_service, const ::addrinfo* hints,
              ::addrinfo** results) {
        std::unique_lock lock(mutex);
        host = for_host;
        service = for_service;
        ::sigset_t mask;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        signals_blocked = ::sigismember(&mask, SIGINT) == 1 && ::sigismember(&mask, SIGTERM) == 1;
        ++calls;
        most_at_once = std::max(most_at_once, ++inside);
        changed.notify_all();
        changed.wait(lock, [this] { return open; });
        const int result = answer != 0 ? answer : ::getaddrinfo("127.0.0.1", "80", hints, results);
        --inside;
        changed.notify_all();
        errno = system_error;
        return result;
    }
};

fake_lookup& fake = *new fake_lookup;

/// Installs the replacement, with its gate closed or open; the destructor waits until no thread is
/// inside.
class with_fake_lookup {
public:
    explicit with_fake_lookup(bool open) {
        const std::scoped_lock lock(fake.mutex);
        fake.calls = fake.most_at_once = fake.answer = fake.system_error = 0;
        fake.open = open;
        before_ = net::detail::exchange_lookup_function(
            [](const char* host, const char* service, const ::addrinfo* hints,
               ::addrinfo** results) { return fake.enter(host, service, hints, results); });
    }
    ~with_fake_lookup() {
        open_gate();
        std::unique_lock lock(fake.mutex);
        fake.changed.wait(lock, [] { return fake.inside == 0; });
        net::detail::exchange_lookup_function(before_);
    }
    with_fake_lookup(const with_fake_lookup&) = delete;
    with_fake_lookup& operator=(const with_fake_lookup&) = delete;

    static void open_gate() {
        const std::scoped_lock lock(fake.mutex);
        fake.open = true;
        fake.changed.notify_all();
    }
    static void wait_for_calls(int n) {
        std::unique_lock lock(fake.mutex);
        fake.changed.wait(lock, [&] { return fake.calls >= n; });
    }
    static int calls() {
        const std::scoped_lock lock(fake.mutex);
        return fake.calls;
    }

private:
    net::detail::lookup_function before_;
};

constexpr bool gate_open = true;
constexpr bool gate_closed = false;

struct failure {
    std::error_code code;
    std::string message;
};

/// The error of a look-up.
template <class Service>
failure failure_of(std::string host, Service service) {
    try {
        (void)run(net::resolve(std::move(host), service));
    } catch (const std::system_error& e) {
        return {e.code(), e.what()};
    }
    return {};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(Resolve, NumericAddressesAreAnsweredWithoutALookUp) {
    const with_fake_lookup resolver(gate_closed); // would block
    EXPECT_EQ(run(net::resolve("127.0.0.1", 80)), addresses{net::inet_address("127.0.0.1", 80)});
    EXPECT_EQ(run(net::resolve("::1", 8080)), addresses{net::inet_address("::1", 8080)});
    EXPECT_EQ(run(net::resolve("10.1.2.3", "443")), addresses{net::inet_address("10.1.2.3", 443)});
    EXPECT_EQ(with_fake_lookup::calls(), 0);
}

TEST(Resolve, Localhost) {
    const addresses found = run(net::resolve("localhost", 6379));
    ASSERT_FALSE(found.empty());
    for (const net::inet_address& address : found) {
        EXPECT_TRUE(address.ip() == "127.0.0.1" || address.ip() == "::1") << address.to_string();
        EXPECT_EQ(address.port(), 6379);
    }
}

TEST(Resolve, PassesHostAndServiceOn) {
    const with_fake_lookup resolver(gate_open);
    EXPECT_EQ(run(net::resolve("example.org", "https")),
              addresses{net::inet_address("127.0.0.1", 80)});
    EXPECT_EQ(fake.host, "example.org");
    EXPECT_EQ(fake.service, "https");
    (void)run(net::resolve("example.org", 65535));
    EXPECT_EQ(fake.service, "65535");
}

TEST(Resolve, AnUnknownHostIsAnErrorThatNamesIt) {
    const failure f = failure_of("no-such-host.invalid", std::uint16_t{80});
    EXPECT_EQ(f.code.category(), net::resolver_category());
    EXPECT_TRUE(contains(f.message, "no-such-host.invalid")) << f.message;
    EXPECT_TRUE(contains(f.message, ::gai_strerror(f.code.value()))) << f.message;
}

TEST(Resolve, BadArgumentsAreErrorsAtOnce) {
    const with_fake_lookup resolver(gate_closed); // would block
    const std::error_code no_name(EAI_NONAME, net::resolver_category());
    const std::error_code no_service(EAI_SERVICE, net::resolver_category());
    EXPECT_EQ(failure_of("", std::uint16_t{80}).code, no_name);
    EXPECT_EQ(failure_of(std::string("localhost\0.example", 18), std::uint16_t{80}).code, no_name);
    EXPECT_EQ(failure_of("localhost", std::string("65536")).code, no_service);
    EXPECT_EQ(failure_of("127.0.0.1", std::string("65616")).code, no_service);
    for (const char* const odd :
         {" 65617", "+65617", "-1", " 80", "+80", "\t\n80", " +80", " -65456", "+", " "}) {
        EXPECT_EQ(failure_of("localhost", std::string(odd)).code, no_service) << odd;
        EXPECT_EQ(failure_of("127.0.0.1", std::string(odd)).code, no_service) << odd;
    }
    EXPECT_EQ(failure_of("localhost", std::string()).code, no_service);
    EXPECT_EQ(failure_of("localhost", std::string("http\0s", 6)).code, no_service);
    EXPECT_EQ(with_fake_lookup::calls(), 0);
}

TEST(Resolve, ErrorsOfTheResolverAndOfTheSystem) {
    const with_fake_lookup resolver(gate_open);
    fake.answer = EAI_AGAIN;
    const failure again = failure_of("example.org", std::string("https"));
    EXPECT_EQ(again.code, std::error_code(EAI_AGAIN, net::resolver_category()));
    EXPECT_EQ(again.code, std::errc::resource_unavailable_try_again);
    EXPECT_TRUE(contains(again.message, "\"https\"")) << again.message;
    fake.answer = EAI_SYSTEM;
    fake.system_error = EMFILE;
    EXPECT_EQ(failure_of("example.org", std::uint16_t{80}).code, std::errc::too_many_files_open);
}

TEST(Resolve, TheLoopContinuesWhileALookUpBlocks) {
    const with_fake_lookup resolver(gate_closed);
    run([]() -> task<> {
        auto found = spawn(net::resolve("slow.example", 1));
        // On a busy machine the helper thread may start late.
        for (int tick = 0; tick < 20 || with_fake_lookup::calls() == 0; ++tick) {
            co_await sleep_for(1ms);
        }
        EXPECT_FALSE(found.done());
        EXPECT_EQ(with_fake_lookup::calls(), 1);
        with_fake_lookup::open_gate();
        EXPECT_EQ((co_await found).size(), 1u);
    }());
    EXPECT_TRUE(fake.signals_blocked);
}

TEST(Resolve, AStopEndsTheAwaitWhileTheLookUpBlocks) {
    const with_fake_lookup resolver(gate_closed);
    run([]() -> task<> {
        auto found = spawn(net::resolve("slow.example", 1));
        while (with_fake_lookup::calls() == 0) {
            co_await sleep_for(1ms);
        }
        found.cancel();
        try {
            (void)co_await found;
            ADD_FAILURE() << "the look-up was not cancelled";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
            EXPECT_TRUE(contains(e.what(), "slow.example")) << e.what();
        }
    }());
}

TEST(Resolve, AStopBeforeTheLookUp) {
    const with_fake_lookup resolver(gate_closed);
    run([]() -> task<> {
        auto found = spawn(net::resolve("slow.example", 1));
        found.cancel();
        try {
            (void)co_await found;
            ADD_FAILURE() << "the look-up was not cancelled";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
        }
    }());
    EXPECT_EQ(with_fake_lookup::calls(), 0);
}

TEST(Resolve, AStopFromAnotherThread) {
    const with_fake_lookup resolver(gate_closed);
    io_context context;
    auto found = context.spawn(net::resolve("slow.example", 1));
    context.start();
    with_fake_lookup::wait_for_calls(1);
    found.cancel();
    EXPECT_THROW((void)found.get(), std::system_error);
    context.join();
}

/// A coroutine that waits for a look-up and sets a flag if it resumes.
coil_test::manual waiting_for_look_up(bool& went_on) {
    (void)co_await net::resolve("slow.example", 1);
    went_on = true;
}

TEST(Resolve, AFrameDestroyedWhileTheLookUpBlocks) {
    const with_fake_lookup resolver(gate_closed);
    run([]() -> task<> {
        bool went_on = false;
        coil_test::manual waiting = waiting_for_look_up(went_on);
        waiting.start();
        while (with_fake_lookup::calls() == 0) {
            co_await sleep_for(1ms);
        }
        waiting.destroy();
        with_fake_lookup::open_gate();
        co_await sleep_for(5ms);
        EXPECT_FALSE(went_on);
    }());
}

TEST(Resolve, AFrameDestroyedWhileTheAnswerIsOnItsWay) {
    const with_fake_lookup resolver(gate_open);
    run([]() -> task<> {
        bool went_on = false;
        for (int round = 0; round < 50; ++round) {
            coil_test::manual waiting = waiting_for_look_up(went_on);
            waiting.start();
            with_fake_lookup::wait_for_calls(round + 1);
            // Blocks the loop on purpose: the result arrives while the loop does not process its
            // inbox.
            std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
            waiting.destroy();
        }
        co_await sleep_for(5ms);
        EXPECT_FALSE(went_on);
    }());
}

TEST(Resolve, TheContextMayEndBeforeTheAnswer) {
    const with_fake_lookup resolver(gate_closed);
    {
        io_context context;
        context.co_spawn([]() -> task<> {
            (void)co_await net::resolve("slow.example", 1);
            ADD_FAILURE() << "the coroutine was resumed";
        }());
        context.start();
        with_fake_lookup::wait_for_calls(1);
        context.stop();
    }
    with_fake_lookup::open_gate();
}

TEST(Resolve, ManyLookUpsShareAFewThreads) {
    constexpr int count = 100;
    const with_fake_lookup resolver(gate_closed);
    run([]() -> task<> {
        std::vector<join_handle<addresses>> all;
        for (int i = 0; i < count; ++i) {
            all.push_back(spawn(net::resolve("host.example", 1)));
        }
        while (with_fake_lookup::calls() < static_cast<int>(net::detail::max_lookup_threads)) {
            co_await sleep_for(1ms);
        }
        co_await sleep_for(10ms); // more threads would have called the look-up by now
        with_fake_lookup::open_gate();
        for (auto& found : all) {
            EXPECT_EQ((co_await found).size(), 1u);
        }
    }());
    EXPECT_EQ(with_fake_lookup::calls(), count);
    EXPECT_EQ(fake.most_at_once, static_cast<int>(net::detail::max_lookup_threads));
}

/// Results, stop requests and ends of contexts in every order: for the sanitizers.
TEST(Resolve, AnswersRaceWithStopsAndShutdowns) {
    const with_fake_lookup resolver(gate_open);
    for (int round = 0; round < 300; ++round) {
        io_context context(8);
        std::vector<join_handle<addresses>> found;
        for (int i = 0; i < 4; ++i) {
            found.push_back(context.spawn(net::resolve("host.example", 1)));
        }
        context.start();
        if (round % 3 == 0) {
            with_fake_lookup::wait_for_calls(round % 7);
        }
        found[static_cast<std::size_t>(round % 4)].cancel();
        if (round % 2 == 0) {
            context.stop();
        }
        for (auto& one : found) {
            try {
                EXPECT_EQ(one.get().size(), 1u);
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::operation_canceled);
            }
        }
    }
}

} // namespace
