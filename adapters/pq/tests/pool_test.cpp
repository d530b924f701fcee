// The pool, many operations, TLS, and the example.

#include "postgres.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include <malloc.h>

#if COIL_SANITIZED && __has_include(<sanitizer/allocator_interface.h>)
#include <sanitizer/allocator_interface.h>
#endif

namespace pq_test {
namespace {

using pq::connection;
using pq::pipeline;
using pq::pool;
using pq::pool_options;
using Pool = PqTest;

pool_options small(std::size_t size) {
    pool_options options;
    options.size = size;
    return options;
}

TEST_F(Pool, SharesAtMostSizeConnections) {
    const auto all = []() -> task<> {
        std::atomic<int> made{0};
        std::atomic<int> in_use{0};
        int most = 0;
        pool_options options = small(3);
        options.on_connect = [&](connection&) -> task<> {
            ++made;
            co_return;
        };
        pool db(server().conninfo(), options);
        std::set<int> processes;
        scope s;
        for (int i = 0; i < 50; ++i) {
            s.spawn([](pool& p, std::atomic<int>& used, int& top, std::set<int>& pids) -> task<> {
                auto c = co_await p.acquire();
                top = std::max(top, ++used);
                pids.insert((co_await c->query("select pg_backend_pid(), pg_sleep(0.001)"))[0][0]
                                .as<int>());
                --used;
            }(db, in_use, most, processes));
        }
        co_await s.join();
        EXPECT_EQ(most, 3);
        EXPECT_EQ(made.load(), 3);
        EXPECT_EQ(processes.size(), 3U);
        EXPECT_EQ(db.idle(), 3U);
        EXPECT_EQ((co_await db.query("select $1::int", 5)).value_as<int>(), 5);
        db.close_idle();
        EXPECT_EQ(db.idle(), 0U);
    };
    coil::run(all());
}

TEST_F(Pool, ConnectionsThatAreNotCleanAreClosed) {
    const auto all = []() -> task<> {
        pool db(server().conninfo(), small(1));
        {
            auto c = co_await db.acquire();
            co_await c->query("begin");
        }
        EXPECT_EQ(db.idle(), 0U);
        {
            auto c = co_await db.acquire();
            auto left = c->copy_out("copy (select generate_series(1, 1000000)) to stdout");
            co_await left.next();
        }
        EXPECT_EQ(db.idle(), 0U);
        {
            auto c = co_await db.acquire();
            const int pid = ::PQbackendPID(c->get());
            connection admin = co_await connection::connect(server().conninfo());
            co_await admin.query("select pg_terminate_backend($1, 5000)", pid);
            co_await thrown<pq::connection_error>(c->query("select 1"));
        }
        EXPECT_EQ(db.idle(), 0U);
        // A connection that breaks while it is idle.
        int pid = 0;
        {
            auto c = co_await db.acquire();
            pid = ::PQbackendPID(c->get());
        }
        EXPECT_EQ(db.idle(), 1U);
        connection admin = co_await connection::connect(server().conninfo());
        co_await admin.query("select pg_terminate_backend($1, 5000)", pid);
        EXPECT_NE((co_await db.query("select pg_backend_pid()")).value_as<int>(), pid);
        // A failed statement does not make the pool close its connection.
        co_await thrown(db.query("select 1/0"));
        EXPECT_EQ(db.idle(), 1U);
    };
    coil::run(all());
}

TEST_F(Pool, IdleConnectionsAreChecked) {
    adapter_test::cutting_proxy proxy(server().port());
    const auto all = [](adapter_test::cutting_proxy& network) -> task<> {
        pool_options options = small(2);
        options.check_after = 0ns;
        options.check_limit = 50ms;
        pool db(pq_test::postgres::conninfo_of(network.port()), options);
        co_await db.query("select 1");
        co_await db.query("select 1");
        EXPECT_EQ(network.accepted(), 1);
        // A connection that has become silent is replaced, once the network works again.
        network.stall();
        auto query = coil::spawn(db.query("select 1"));
        co_await sleep_for(200ms);
        network.resume();
        co_await std::move(query);
        EXPECT_EQ(network.accepted(), 2);
        EXPECT_EQ(db.idle(), 1U);
    };
    coil::run(all(proxy));
}

TEST_F(Pool, WaitersAreServedInOrderAndCanBeCancelled) {
    const auto all = []() -> task<> {
        pool db(server().conninfo(), small(1));
        std::vector<int> order;
        scope s;
        {
            auto c = co_await db.acquire();
            for (int i = 0; i < 5; ++i) {
                s.spawn([](pool& p, std::vector<int>& done, int number) -> task<> {
                    const auto e = co_await p.acquire();
                    done.push_back(number);
                }(db, order, i));
            }
            const auto late = co_await thrown<std::system_error>(timeout(db.acquire(), 10ms));
            EXPECT_EQ(late->code(), std::errc::timed_out);
            EXPECT_TRUE(order.empty());
        }
        co_await s.join();
        EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
        // Failed attempts to connect release their permits.
        pool nowhere("host=127.0.0.1 port=1", small(1));
        for (int i = 0; i < 3; ++i) {
            co_await thrown<pq::connection_error>(nowhere.query("select 1"));
        }
    };
    coil::run(all());
}

TEST_F(Pool, RecoversAfterTheServer) {
    postgres mine;
    const auto all = [](postgres& p) -> task<> {
        pool db(p.conninfo(), small(4));
        co_await db.query("create table t (i int)");
        std::vector<join_handle<>> running;
        for (int i = 0; i < 4; ++i) {
            running.push_back(coil::spawn(db.transaction([](connection& c) -> task<> {
                co_await c.query("insert into t values (1)");
                co_await c.query("select pg_sleep(100)");
            })));
        }
        co_await sleep_for(300ms);
        co_await blocking([&] { p.process().kill(); });
        for (auto& r : running) {
            co_await thrown<pq::connection_error>(
                [](auto& h) -> task<> { co_await std::move(h); }(r));
        }
        EXPECT_EQ(db.idle(), 0U);
        co_await thrown<pq::connection_error>(db.query("select 1"));
        p.restart(); // on this thread, because the server ends with the thread that starts it
        EXPECT_EQ((co_await db.query("select count(*) from t")).value_as<int>(), 0);
    };
    coil::run(all(mine));
}

TEST_F(Pool, ServesSeveralContexts) {
    runtime rt(3);
    pool db(server().conninfo(), small(4));
    std::atomic<int> sum{0};
    const auto worker = [](pool& p, std::atomic<int>& total) -> task<> {
        for (int i = 0; i < 50; ++i) {
            total += (co_await p.query("select $1::int", i)).value_as<int>();
        }
    };
    for (int i = 0; i < 12; ++i) {
        rt.co_spawn(worker(db, sum));
    }
    rt.run();
    EXPECT_EQ(sum.load(), 12 * 49 * 25);
}

std::size_t allocated() {
#if COIL_SANITIZED && __has_include(<sanitizer/allocator_interface.h>)
    return __sanitizer_get_current_allocated_bytes();
#else
    return ::mallinfo2().uordblks;
#endif
}

std::size_t descriptors() {
    std::size_t count = 0;
    for (const auto& d : std::filesystem::directory_iterator("/proc/self/fd")) {
        static_cast<void>(d);
        ++count;
    }
    return count;
}

TEST_F(Pool, ManyOperationsLeaveNothingBehind) {
    const auto some = [](pool& db, int count) -> task<> {
        for (int i = 0; i < count / 50; ++i) {
            co_await db.query("select $1::text", "one");
            if (i % 10 == 0) {
                co_await thrown(db.query("select 1/0"));
                co_await thrown<std::system_error>(timeout(db.query("select pg_sleep(10)"), 1ms));
            }
        }
        auto c = co_await db.acquire();
        for (int i = 0; i < count; i += 100) {
            co_await c->pipeline([](pipeline& p) -> task<> {
                for (int k = 0; k < 100; ++k) {
                    p.query("select $1::int", k);
                }
                while (co_await p.next()) {
                }
            });
        }
    };
    const auto all = [](auto work) -> task<> {
        pool db(server().conninfo(), small(2));
        co_await work(db, 1000);
        const std::size_t memory = allocated();
        const std::size_t files = descriptors();
        co_await work(db, coil_test::rounds(10'000, 100'000));
        EXPECT_LE(allocated(), memory + 65'536);
        EXPECT_EQ(descriptors(), files);
    };
    coil::run(all(some));
}

TEST_F(Pool, WorksOverTls) {
    if (!adapter_test::has_program("openssl")) {
        GTEST_SKIP() << "install openssl";
    }
    postgres mine({}, true);
    const auto all = [](std::string conninfo) -> task<> {
        connection c = co_await connection::connect(conninfo + " sslmode=require");
        EXPECT_NE(::PQsslInUse(c.get()), 0);
        // Results around the sizes of records and of libpq's buffer.
        for (int size = 1; size < 300'000; size += size < 40'000 ? 731 : 16'384) {
            const auto r = co_await timeout(c.query("select repeat('x', $1)", size), 10s);
            EXPECT_EQ(r[0][0].text().size(), static_cast<std::size_t>(size));
        }
        co_await timeout(c.pipeline([](pipeline& p) -> task<> {
            for (int i = 0; i < 500; ++i) {
                p.query("select $1::text", std::string(9000, 'x'));
            }
            while (co_await p.next()) {
            }
        }),
                         20s);
        std::size_t bytes = 0;
        {
            auto rows = c.copy_out(
                "copy (select repeat('x', i * 10) from generate_series(1, 3000) i) to stdout");
            while (const auto row = co_await rows.next()) {
                bytes += row->size() - 1;
            }
        }
        EXPECT_EQ(bytes, 10U * 3000 * 3001 / 2);
        co_await thrown<std::system_error>(timeout(c.query("select pg_sleep(10)"), 5ms));
        EXPECT_TRUE(co_await works(c));
        co_await c.listen("x");
        co_await c.query("notify x");
        auto range = c.notifications();
        EXPECT_TRUE(co_await range.next());
        co_await thrown<std::system_error>(timeout(range.next(), 20ms));
    };
    coil::run(all(mine.conninfo()));
}

TEST_F(Pool, TheExampleRuns) {
    const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
    const std::string program = std::string(folder != nullptr ? folder : "examples") + "/pq_jobs";
    if (!std::filesystem::exists(program)) {
        GTEST_SKIP() << program << " was not built";
    }
    const std::string command =
        program + " 'postgresql://postgres@127.0.0.1:" + std::to_string(server().port()) +
        "/postgres' 20";
    const std::unique_ptr<FILE, int (*)(FILE*)> out(::popen(command.c_str(), "r"), &::pclose);
    ASSERT_TRUE(out);
    std::string text;
    char buffer[512];
    while (const auto n = std::fread(buffer, 1, sizeof buffer, out.get())) {
        text.append(buffer, n);
    }
    EXPECT_NE(text.find("20 jobs done, 0 open"), std::string::npos) << text;
}

} // namespace
} // namespace pq_test
