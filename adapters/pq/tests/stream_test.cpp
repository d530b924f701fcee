// Pipelines, COPY, LISTEN and NOTIFY.

#include "postgres.hpp"

#include <algorithm>

namespace pq_test {
namespace {

using pq::connection;
using pq::copy_writer;
using pq::pipeline;
using Stream = PqTest;

TEST_F(Stream, PipelineReturnsResultsInOrder) {
    with_connection([](connection& c) -> task<> {
        const pq::statement twice = co_await c.prepare("select 2 * $1::int");
        const int sum = co_await c.pipeline([&](pipeline& p) -> task<int> {
            for (int i = 0; i < 100; ++i) {
                p.query("select $1::int", i);
                p.query(twice, i);
            }
            p.query("create temp table t (i int)");
            EXPECT_EQ(p.outstanding(), 201U);
            int total = 0;
            for (int i = 0; i < 100; ++i) {
                EXPECT_EQ((co_await p.next())->value_as<int>(), i);
                const int doubled = (co_await p.next())->value_as<int>();
                EXPECT_EQ(doubled, 2 * i);
                total += doubled;
            }
            EXPECT_TRUE(co_await p.next());
            EXPECT_FALSE(co_await p.next());
            EXPECT_FALSE(co_await p.next());
            p.query("select 'again'");
            EXPECT_EQ((co_await p.next())->value_as<std::string>(), "again");
            co_return total;
        });
        EXPECT_EQ(sum, 99 * 100);
        EXPECT_TRUE(co_await works(c));
        co_await c.pipeline([](pipeline&) -> task<> { co_return; });
        EXPECT_TRUE(c.is_reusable());
    });
}

TEST_F(Stream, PipelineSendsAndReceivesAtTheSameTime) {
    // Both directions exceed the sockets' buffers: a client that only writes or only reads hangs.
    with_connection([](connection& c) -> task<> {
        const std::string text(10'000, 'x');
        co_await timeout(c.pipeline([&](pipeline& p) -> task<> {
            for (int i = 0; i < 3000; ++i) {
                p.query("select $1::text", text);
            }
            int received = 0;
            while (const auto r = co_await p.next()) {
                EXPECT_EQ((*r)[0][0].text().size(), text.size());
                ++received;
            }
            EXPECT_EQ(received, 3000);
        }),
                         30s);
        EXPECT_TRUE(co_await works(c));
    });
}

TEST_F(Stream, AFailedCommitIsReportedBeforeTheNextGroup) {
    with_connection([](connection& c) -> task<> {
        co_await c.query("create temp table t (i int unique deferrable initially deferred)");
        co_await c.pipeline([](pipeline& p) -> task<> {
            p.query("insert into t values (1), (1)"); // checked by the commit
            p.sync();
            p.query("select 2");
            p.query("select 3");
            EXPECT_EQ((co_await p.next())->affected_rows(), 2U);
            EXPECT_EQ((co_await thrown(p.next()))->sqlstate(), "23505");
            EXPECT_EQ(p.outstanding(), 2U);
            EXPECT_EQ((co_await p.next())->value_as<int>(), 2);
            EXPECT_EQ((co_await p.next())->value_as<int>(), 3);
            EXPECT_FALSE(co_await p.next());
        });
        EXPECT_EQ((co_await c.query("select count(*) from t")).value_as<int>(), 0);
    });
}

TEST_F(Stream, AnErrorSkipsTheStatementsUpToTheNextSync) {
    with_connection([](connection& c) -> task<> {
        co_await c.query("create temp table t (i int)");
        co_await c.pipeline([](pipeline& p) -> task<> {
            p.query("insert into t values (1)");
            p.query("select 1/0");
            p.query("insert into t values (2)");
            p.sync();
            p.query("insert into t values (4)");
            EXPECT_EQ((co_await p.next())->affected_rows(), 1U);
            EXPECT_EQ((co_await thrown(p.next()))->sqlstate(), "22012");
            const auto skipped = co_await thrown(p.next());
            EXPECT_NE(std::string(skipped->what()).find("not executed"), std::string::npos);
            EXPECT_NE(std::string(skipped->what()).find("values (2)"), std::string::npos);
            EXPECT_EQ((co_await p.next())->affected_rows(), 1U);
            EXPECT_FALSE(co_await p.next());
        });
        // The first group was one transaction.
        EXPECT_EQ((co_await c.query("select sum(i) from t")).value_as<int>(), 4);
        // Errors that were not fetched are thrown at the end.
        const auto unfetched = co_await thrown(c.pipeline([](pipeline& p) -> task<> {
            p.query("select 1");
            p.query("selekt");
            p.query("select 2");
            co_return;
        }));
        EXPECT_EQ(unfetched->sqlstate(), "42601");
        EXPECT_TRUE(co_await works(c));
        co_await thrown<std::domain_error>(c.pipeline([](pipeline& p) -> task<> {
            p.query("select pg_sleep(100)");
            p.sync();
            throw std::domain_error("no");
        }));
        EXPECT_TRUE(co_await works(c));
    });
}

TEST_F(Stream, CopiesBothWays) {
    with_connection([](connection& c) -> task<> {
        co_await c.query("create temp table t (i int, text text)");
        const int count = coil_test::rounds(30'000, 300'000);
        const auto rows = co_await c.copy_in("copy t from stdin", [&](copy_writer& w) -> task<> {
            for (int i = 0; i < count; ++i) {
                co_await w.write(std::to_string(i) + "\tsome text, ");
                co_await w.write("and more\n");
            }
        });
        EXPECT_EQ(rows, static_cast<std::uint64_t>(count));
        const std::string large(1 << 20, 'y');
        co_await c.copy_in("copy t from stdin", [&](copy_writer& w) -> task<> {
            co_await w.write("-1\t" + large + "\n");
        });
        int received = 0;
        std::size_t longest = 0;
        {
            auto out = c.copy_out("copy t to stdout");
            while (const auto row = co_await out.next()) {
                if (received < count) {
                    EXPECT_TRUE(row->starts_with(std::to_string(received) + '\t'));
                }
                longest = std::max(longest, row->size());
                ++received;
            }
            EXPECT_FALSE(co_await out.next());
        }
        EXPECT_EQ(received, count + 1);
        EXPECT_EQ(longest, large.size() + 4);
        EXPECT_TRUE(c.is_reusable());
    });
}

TEST_F(Stream, ACopyThatFailsLeavesTheConnectionUsable) {
    with_connection([](connection& c) -> task<> {
        co_await c.query("create temp table t (i int)");
        const auto bad = co_await thrown(
            c.copy_in("copy t from stdin", [](copy_writer& w) { return w.write("1\nx\n"); }));
        EXPECT_EQ(bad->sqlstate(), "22P02");
        co_await thrown<std::domain_error>(
            c.copy_in("copy t from stdin", [](copy_writer& w) -> task<> {
                co_await w.write("1\n2\n");
                throw std::domain_error("no");
            }));
        EXPECT_EQ((co_await c.query("select count(*) from t")).value_as<int>(), 0);
        const auto nothing = [](copy_writer&) -> task<> { co_return; };
        EXPECT_EQ(co_await c.copy_in("copy t from stdin", nothing), 0U);
        EXPECT_EQ((co_await thrown(c.copy_in("copy x from stdin", nothing)))->sqlstate(), "42P01");
        co_await thrown(c.copy_in("select 1", nothing));
        co_await thrown(c.copy_in("copy t to stdout", nothing));
        EXPECT_TRUE(co_await works(c));
        {
            auto wrong = c.copy_out("select 1");
            EXPECT_THROW(co_await wrong.next(), pq::error);
            auto missing = c.copy_out("copy x to stdout");
            EXPECT_THROW(co_await missing.next(), pq::error);
            auto late =
                c.copy_out("copy (select 1 / (100 - i) from generate_series(1, 200) i) to stdout");
            int rows = 0;
            const auto all = [](auto& range, int& n) -> task<> {
                while (co_await range.next()) {
                    ++n;
                }
            };
            EXPECT_EQ((co_await thrown(all(late, rows)))->sqlstate(), "22012");
            EXPECT_EQ(rows, 99);
        }
        EXPECT_TRUE(co_await works(c));
        {
            auto left = c.copy_out("copy (select generate_series(1, 100000000)) to stdout");
            EXPECT_EQ(*co_await left.next(), "1\n");
            co_await thrown<std::logic_error>(c.query("select 1"));
        }
        EXPECT_FALSE(c.is_reusable());
        EXPECT_TRUE(co_await works(c));
        EXPECT_TRUE(c.is_reusable());
    });
}

task<> notify(std::string conninfo, int count) {
    connection c = co_await connection::connect(conninfo);
    for (int i = 0; i < count; ++i) {
        co_await c.query("select pg_notify('Jobs', $1)", i);
    }
}

TEST_F(Stream, NotificationsArriveInOrderAndNoneIsLost) {
    with_connection([](connection& c) -> task<> {
        co_await c.listen("Jobs");
        constexpr int count = 200;
        auto notifying = coil::spawn(notify(server().conninfo(), count));
        int next = 0;
        int cancelled = 0;
        std::optional range = c.notifications();
        while (next < count) {
            try {
                const auto n = co_await timeout(range->next(), 300us);
                if (!n) {
                    range.emplace(c.notifications());
                    continue;
                }
                EXPECT_EQ(n->channel, "Jobs");
                EXPECT_EQ(n->payload, std::to_string(next));
                EXPECT_NE(n->server_process, 0);
                ++next;
                if (next % 3 == 0) { // between two of them the connection can be used
                    EXPECT_TRUE(co_await works(c));
                }
            } catch (const std::system_error& e) {
                EXPECT_TRUE(e.code() == std::errc::timed_out ||
                            e.code() == std::errc::operation_canceled);
                ++cancelled;
            }
        }
        co_await std::move(notifying);
        EXPECT_GT(cancelled, 0);
        EXPECT_TRUE(c.is_reusable());
        co_await thrown(c.listen(std::string("\xff\xfe", 2)));
        EXPECT_TRUE(co_await works(c));
    });
}

} // namespace
} // namespace pq_test
