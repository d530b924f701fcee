// Cancellation, deadlines, broken connections and destroyed frames.

#include "postgres.hpp"

#include <atomic>
#include <string_view>
#include <thread>

namespace pq_test {
namespace {

using adapter_test::cutting_proxy;
using pq::connection;
using pq::copy_writer;
using pq::pipeline;
using clock = std::chrono::steady_clock;
using Failure = PqTest;

/// Calls of every kind, which together have many awaits.
task<> calls_of_each_kind(connection& c) {
    co_await c.query("create temp table if not exists mix (i int)");
    const pq::statement s = co_await c.prepare("select $1::int + count(*) from mix");
    co_await c.query(s, 1);
    co_await c.transaction([](connection& x) -> task<> {
        co_await x.query("insert into mix values (1)");
        co_await x.transaction(
            [](connection& y) -> task<> { co_await y.query("select pg_sleep(0.002)"); });
    });
    co_await c.pipeline([](pipeline& p) -> task<> {
        for (int i = 0; i < 20; ++i) {
            p.query("select $1::text || pg_sleep(0.0001)", std::string(5000, 'x'));
            if (i % 7 == 0) {
                p.sync();
            }
        }
        while (co_await p.next()) {
        }
    });
    co_await c.copy_in("copy mix from stdin", [](copy_writer& w) -> task<> {
        for (int i = 0; i < 40; ++i) {
            std::string rows;
            for (int k = 0; k < 1000; ++k) {
                rows += "7\n";
            }
            co_await w.write(rows);
        }
    });
    {
        auto rows =
            c.copy_out("copy (select repeat('x', 100) from generate_series(1, 3000)) to stdout");
        while (co_await rows.next()) {
        }
    }
    co_await c.query("truncate mix");
}

TEST_F(Failure, ATimeLimitCancelsTheStatement) {
    with_connection([](connection& c) -> task<> {
        const auto started = clock::now();
        const auto late =
            co_await thrown<std::system_error>(timeout(c.query("select pg_sleep(100)"), 20ms));
        EXPECT_EQ(late->code(), std::errc::timed_out);
        EXPECT_LT(clock::now() - started, 5s);
        EXPECT_TRUE(co_await works(c));
        const auto running = co_await c.query(
            "select count(*) from pg_stat_activity where query like 'select pg_sleep(100)%'");
        EXPECT_EQ(running.value_as<int>(), 0);
        // A cancelled statement rolls back its transaction.
        co_await c.query("create temp table t (i int)");
        const auto inside =
            co_await thrown<std::system_error>(timeout(c.transaction([](connection& x) -> task<> {
                co_await x.query("insert into t values (1)");
                co_await x.query("select pg_sleep(100)");
            }),
                                                       50ms));
        EXPECT_EQ(inside->code(), std::errc::timed_out);
        EXPECT_EQ((co_await c.query("select count(*) from t")).value_as<int>(), 0);
        EXPECT_TRUE(c.is_reusable());
    });
}

TEST_F(Failure, AStopBeforeACallSendsNothing) {
    with_connection([](connection& c) -> task<> {
        co_await c.query("create temp table t (i int)");
        inplace_stop_source stop;
        stop.request_stop();
        for (int i = 0; i < 3; ++i) {
            const auto e = co_await thrown<std::system_error>(
                with_stop_token(c.query("insert into t values (1)"), stop.get_token()));
            EXPECT_EQ(e->code(), std::errc::operation_canceled);
        }
        EXPECT_EQ((co_await c.query("select count(*) from t")).value_as<int>(), 0);
    });
}

TEST_F(Failure, ACancelledCallLeavesTheConnectionUsable) {
    with_connection([](connection& c) -> task<> {
        int cancelled = 0;
        const int rounds = coil_test::rounds(60, 1000);
        for (int i = 0; i < rounds; ++i) {
            // Each delay interrupts a different await.
            try {
                co_await timeout(calls_of_each_kind(c), i * 700us);
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::timed_out);
                ++cancelled;
            }
            EXPECT_FALSE(c.broken());
            EXPECT_TRUE(co_await works(c)) << i;
            EXPECT_TRUE(c.is_reusable()) << i;
        }
        EXPECT_GT(cancelled, rounds / 4);
        co_await calls_of_each_kind(c);
    });
}

TEST_F(Failure, AnotherTaskCancels) {
    with_connection([](connection& c) -> task<> {
        auto sleeping = coil::spawn(c.query("select pg_sleep(100)"));
        co_await sleep_for(5ms);
        sleeping.cancel();
        const auto e = co_await thrown<std::system_error>(
            [](auto& h) -> task<> { co_await std::move(h); }(sleeping));
        EXPECT_EQ(e->code(), std::errc::operation_canceled);
        EXPECT_TRUE(co_await works(c));
    });
}

TEST_F(Failure, ADestroyedFrameLeavesTheConnectionUsable) {
    with_connection([](connection& c) -> task<> {
        for (int i = 0; i < 30; ++i) {
            {
                scope s;
                s.spawn(calls_of_each_kind(c));
                co_await sleep_for(i * 700us);
            } // destroys the child
            if (i % 2 == 0) {
                EXPECT_TRUE(co_await c.transaction(works)) << i;
            }
            EXPECT_TRUE(co_await works(c)) << i;
            EXPECT_TRUE(c.is_reusable()) << i;
        }
        // An inner transaction that is destroyed leaves the outer one open.
        co_await c.query("create temp table t (i int)");
        co_await c.transaction([](connection& x) -> task<> {
            co_await x.query("insert into t values (1)");
            {
                scope s;
                s.spawn(x.transaction([](connection& y) -> task<> {
                    co_await y.query("insert into t values (10)");
                    co_await y.query("select pg_sleep(100)");
                }));
                co_await sleep_for(30ms);
            }
            co_await x.query("insert into t values (2)");
        });
        EXPECT_EQ((co_await c.query("select sum(i) from t")).value_as<int>(), 3);
        {
            scope s; // in the middle of a cancellation
            auto child = s.spawn(c.query("select pg_sleep(100)"));
            co_await sleep_for(2ms);
            child.cancel();
            co_await yield();
        }
        EXPECT_TRUE(co_await works(c));
    });
}

TEST_F(Failure, ConnectErrorsNameTheServer) {
    const auto free = std::to_string(adapter_test::free_port());
    const auto fails = [](std::string conninfo) -> task<std::string> {
        const auto e = co_await thrown<pq::connection_error>(connection::connect(conninfo));
        co_return e->what();
    };
    const auto all = [](auto fail, std::string port) -> task<> {
        const std::string refused = co_await fail("host=127.0.0.1 port=" + port + " dbname=x");
        EXPECT_TRUE(refused.starts_with("pq: 127.0.0.1:" + port + "/x: ")) << refused;
        EXPECT_NE(refused.find("refused"), std::string::npos) << refused;
        const std::string unknown = co_await fail("postgresql://u@no-such-host.invalid:1/x");
        EXPECT_TRUE(unknown.starts_with("pq: no-such-host.invalid:1/x: ")) << unknown;
        const std::string database = co_await fail(server().conninfo() + " dbname=missing");
        EXPECT_NE(database.find("\"missing\" does not exist"), std::string::npos) << database;
        const std::string bad = co_await fail("nonsense");
        EXPECT_NE(bad.find("nonsense"), std::string::npos) << bad;
        co_await fail("host=a,b port=1,2,3");
        const std::string no_socket = co_await fail("host=/nowhere");
        EXPECT_NE(no_socket.find("/nowhere"), std::string::npos);

        // The addresses of a name, the next host, and a Unix socket.
        const std::string good = std::to_string(server().port());
        for (const std::string& conninfo :
             {"host=localhost user=postgres port=" + good,
              "host=127.0.0.1,no-such-host.invalid,localhost user=postgres port=" + port + ",1," +
                  good,
              "host=" + server().folder() + " user=postgres port=" + good,
              "postgresql://postgres@127.0.0.1:" + good + "/postgres?application_name=test"}) {
            connection c = co_await connection::connect(conninfo);
            EXPECT_TRUE(co_await works(c));
        }
    };
    coil::run(all(fails, free));
}

TEST_F(Failure, ASilentServerDoesNotHoldAConnect) {
    cutting_proxy proxy(server().port());
    proxy.stall();
    const auto all = [](std::string conninfo) -> task<> {
        const auto started = clock::now();
        const auto e =
            co_await thrown<std::system_error>(timeout(connection::connect(conninfo), 50ms));
        EXPECT_EQ(e->code(), std::errc::timed_out);
        EXPECT_LT(clock::now() - started, 5s);
    };
    coil::run(all(postgres::conninfo_of(proxy.port())));
    proxy.resume();
}

TEST_F(Failure, AStalledNetworkEndsWithTheGracePeriod) {
    cutting_proxy proxy(server().port());
    const auto all = [](cutting_proxy& network) -> task<> {
        pq::connection_options options;
        options.cancel_grace = 100ms;
        connection c = co_await connection::connect(postgres::conninfo_of(network.port()), options);
        EXPECT_TRUE(co_await works(c));
        network.stall();
        const auto started = clock::now();
        const auto e = co_await thrown<std::system_error>(timeout(c.query("select 1"), 50ms));
        EXPECT_EQ(e->code(), std::errc::timed_out);
        EXPECT_GE(clock::now() - started, 150ms);
        EXPECT_LT(clock::now() - started, 5s);
        EXPECT_TRUE(c.broken());
        const auto broken = co_await thrown<pq::connection_error>(c.query("select 1"));
        EXPECT_NE(std::string(broken->what()).find(c.server()), std::string::npos);
        network.resume();
    };
    coil::run(all(proxy));
    // PQcancel() occupies a thread of the pool until its connection ends.
    while (default_blocking_pool().metrics().idle_threads <
           default_blocking_pool().metrics().threads) {
        std::this_thread::sleep_for(1ms);
    }
}

task<> use_until_cut(std::string conninfo) {
    connection c = co_await connection::connect(conninfo);
    std::exception_ptr failure;
    while (!failure) {
        try {
            co_await calls_of_each_kind(c);
        } catch (const pq::connection_error&) {
            failure = std::current_exception();
        }
    }
    EXPECT_TRUE(c.broken());
    EXPECT_FALSE(c.is_reusable());
    co_await thrown<pq::connection_error>(c.query("select 1"));
    std::rethrow_exception(failure);
}

TEST_F(Failure, ANetworkThatIsCutIsReported) {
    // Cut after different numbers of bytes: while connecting, and in each kind of call.
    const int step = coil_test::long_run() ? 97 : 997;
    const auto all = [](int apart) -> task<> {
        std::vector<std::uint64_t> limits{1, 2, 13, 100, 300, 400, 600};
        for (int bytes = 1000; bytes < 440'000; bytes += bytes < 20'000 ? apart : 21 * apart) {
            limits.push_back(static_cast<std::uint64_t>(bytes));
        }
        for (const std::uint64_t limit : limits) {
            cutting_proxy proxy(server().port());
            proxy.cut_after(limit);
            const std::string conninfo = postgres::conninfo_of(proxy.port());
            const auto e =
                co_await thrown<pq::connection_error>(timeout(use_until_cut(conninfo), 30s));
            EXPECT_NE(std::string(e->what()).find("127.0.0.1:" + std::to_string(proxy.port())),
                      std::string::npos)
                << e->what();
        }
    };
    coil::run(all(step));
}

TEST_F(Failure, AKilledServerIsReported) {
    postgres mine;
    const auto query = [](std::string conninfo, std::string sql) -> task<> {
        connection c = co_await connection::connect(conninfo);
        if (sql == "listen") {
            co_await c.listen("x");
            auto none = c.notifications();
            co_await none.next();
        } else if (sql == "pipeline") {
            co_await c.pipeline([](pipeline& p) -> task<> {
                p.query("select pg_sleep(100)");
                p.sync();
                p.query("select 2");
                co_await p.next();
            });
        } else if (sql == "copy") {
            co_await c.query("create temp table t (i int)");
            co_await c.copy_in("copy t from stdin", [](copy_writer& w) -> task<> {
                for (;;) {
                    co_await w.write("1\n");
                    co_await yield();
                }
            });
        } else {
            co_await c.query(sql);
        }
    };
    const auto all = [](auto work, postgres& p) -> task<> {
        std::vector<join_handle<>> waiting;
        for (const char* what : {"select pg_sleep(100)", "listen", "pipeline", "copy"}) {
            waiting.push_back(coil::spawn(work(p.conninfo(), what)));
        }
        co_await sleep_for(200ms);
        co_await blocking([&] { p.process().kill(); });
        for (auto& w : waiting) {
            const auto e = co_await timeout(
                thrown<pq::connection_error>([](auto& h) -> task<> { co_await std::move(h); }(w)),
                20s);
            EXPECT_NE(std::string(e->what()).find(std::to_string(p.port())), std::string::npos);
        }
    };
    coil::run(all(query, mine));
}

TEST_F(Failure, AnAdministratorEndsTheSession) {
    with_connection([](connection& c) -> task<> {
        connection other = co_await connection::connect(server().conninfo());
        const auto pid = (co_await other.query("select pg_backend_pid()")).value_as<int>();
        co_await c.query("select pg_terminate_backend($1, 1000)", pid);
        EXPECT_FALSE(other.is_reusable());
        const auto e = co_await thrown<pq::connection_error>(other.query("select 1"));
        EXPECT_NE(std::string(e->what()).find("administrator command"), std::string::npos)
            << e->what();
        EXPECT_TRUE(other.broken());
    });
}

} // namespace
} // namespace pq_test
