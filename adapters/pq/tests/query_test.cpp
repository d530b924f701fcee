// Statements, values, errors, prepared statements and transactions.

#include "postgres.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

namespace {

struct point {
    int x;
    int y;
};

} // namespace

template <>
struct coil::pq::value<point> {
    static std::string to_text(const point& p) {
        return '(' + std::to_string(p.x) + ',' + std::to_string(p.y) + ')';
    }
    static point from_text(std::string_view text) {
        const auto comma = text.find(',');
        return {value<int>::from_text(text.substr(1, comma - 1)),
                value<int>::from_text(text.substr(comma + 1, text.size() - comma - 2))};
    }
};

namespace pq_test {
namespace {

using pq::connection;
using Query = PqTest;

template <class T>
task<> round_trip(connection& c, const char* type, T v) {
    const pq::result r = co_await c.query("select $1::" + std::string(type), v);
    EXPECT_EQ(r.value_as<T>(), v) << type;
}

TEST_F(Query, ReturnsTheValuesOfEachType) {
    with_connection([](connection& c) -> task<> {
        co_await round_trip(c, "int", 42);
        co_await round_trip(c, "int2", std::numeric_limits<short>::min());
        co_await round_trip(c, "int8", std::numeric_limits<std::int64_t>::min());
        co_await round_trip(c, "int8", std::numeric_limits<std::int64_t>::max());
        co_await round_trip(c, "numeric", std::numeric_limits<std::uint64_t>::max());
        co_await round_trip(c, "float8", 0.1);
        co_await round_trip(c, "float8", std::numeric_limits<double>::denorm_min());
        co_await round_trip(c, "float8", -std::numeric_limits<double>::infinity());
        co_await round_trip(c, "float4", 1.0F / 3);
        co_await round_trip(c, "bool", true);
        co_await round_trip(c, "bool", false);
        co_await round_trip(c, "text", std::string("it's \"ü\\x\n"));
        co_await round_trip(c, "text", std::string());
        co_await round_trip(c, "bytea",
                            std::vector<std::byte>{std::byte{0}, std::byte{255}, std::byte{39}});
        co_await round_trip(c, "bytea", std::vector<std::byte>{});
        co_await round_trip(c, "int", std::optional<int>(7));
        co_await round_trip(c, "int", std::optional<int>());
        const auto nan = co_await c.query("select $1::float8", std::nan(""));
        EXPECT_TRUE(std::isnan(nan.value_as<double>()));
        const auto p = co_await c.query("select $1::point", point{3, -4});
        EXPECT_EQ(p.value_as<point>().y, -4);
        const auto n =
            co_await c.query("select $1::int is null, $2::text is null", nullptr, std::nullopt);
        EXPECT_EQ(n[0].as<bool>(), std::tuple(true));
        EXPECT_TRUE(n[0][1].as<bool>());
    });
}

TEST_F(Query, ReturnsRowsAndColumns) {
    with_connection([](connection& c) -> task<> {
        const pq::result r = co_await c.query(
            "select i as \"Number\", i::text as name from generate_series(1, $1) i", 3);
        EXPECT_EQ(r.size(), 3U);
        EXPECT_EQ(r.columns(), 2U);
        EXPECT_EQ(r.affected_rows(), 3U);
        int sum = 0;
        for (const pq::row& row : r) {
            const auto [number, name] = row.as<int, std::string_view>();
            EXPECT_EQ(std::to_string(number), name);
            sum += row["Number"].as<int>();
        }
        EXPECT_EQ(sum, 6);
        EXPECT_THROW(static_cast<void>(r[3]), std::out_of_range);
        EXPECT_THROW(static_cast<void>(r[0][2]), std::out_of_range);
        EXPECT_THROW(static_cast<void>(r[0]["number"]), std::out_of_range);
        EXPECT_THROW(static_cast<void>(r.value_as<int>()), pq::error);
        const pq::result none = co_await c.query("select 1 where false");
        EXPECT_TRUE(none.empty());
        EXPECT_TRUE(none.begin() == none.end());
        const pq::result empty = co_await c.query("");
        EXPECT_EQ(empty.columns(), 0U);
        const pq::result several =
            co_await c.query("create temp table t (i int); insert into t values (1), (2)");
        EXPECT_EQ(several.affected_rows(), 2U);
        pq::parameters values;
        values.add(1);
        values.add("2");
        const pq::result dynamic = co_await c.query("select i from t where i in ($1, $2)", values);
        EXPECT_EQ(dynamic.size(), 2U);
    });
}

TEST_F(Query, RefusesValuesThatAreNotOfTheType) {
    with_connection([](connection& c) -> task<> {
        const pq::result r = co_await c.query("select 'x' as name, null as nothing, 70000 as big");
        try {
            static_cast<void>(r[0]["name"].as<int>());
            ADD_FAILURE();
        } catch (const pq::error& e) {
            EXPECT_STREQ(e.what(), "pq: column \"name\", row 0: not a number of this type: 'x'");
        }
        EXPECT_THROW(static_cast<void>(r[0]["nothing"].as<std::string>()), pq::error);
        EXPECT_THROW(static_cast<void>(r[0]["big"].as<short>()), pq::error);
        EXPECT_THROW(static_cast<void>(r[0]["big"].as<bool>()), pq::error);
        EXPECT_THROW(static_cast<void>(r[0]["big"].as<std::vector<std::byte>>()), pq::error);
        EXPECT_EQ(r[0]["nothing"].as<std::optional<int>>(), std::nullopt);
        EXPECT_THROW(static_cast<void>(c.query("select $1", std::string("a\0b", 3))),
                     std::invalid_argument);
        EXPECT_TRUE(co_await works(c));
    });
}

TEST_F(Query, ErrorsNameServerStatementAndCause) {
    with_connection([](connection& c) -> task<> {
        const auto missing = co_await thrown(c.query("select * from missing"));
        EXPECT_EQ(missing->what(), "pq: " + c.server() +
                                       ": ERROR 42P01: relation \"missing\" does not exist, in "
                                       "\"select * from missing\"");
        EXPECT_EQ(missing->sqlstate(), "42P01");
        EXPECT_EQ(c.server(), "127.0.0.1:" + std::to_string(server().port()) + "/postgres");
        co_await c.query("create temp table u (i int primary key); insert into u values (1)");
        const auto twice = co_await thrown(c.query("insert into u values ($1)", 1));
        EXPECT_EQ(twice->sqlstate(), "23505");
        EXPECT_EQ(twice->detail(), "Key (i)=(1) already exists.");
        const auto first = co_await thrown(c.query("select 1/0; select * from missing"));
        EXPECT_EQ(first->sqlstate(), "22012");
        pq::parameters too_many;
        for (int i = 0; i < 70'000; ++i) {
            too_many.add(i);
        }
        const auto many = co_await thrown(c.query("select 1", std::move(too_many)));
        EXPECT_NE(std::string(many->what()).find("number of parameters"), std::string::npos);
        for (const char* copy : {"copy u to stdout", "copy u from stdin"}) {
            const auto e = co_await thrown(c.query(copy));
            EXPECT_NE(std::string(e->what()).find("copy_in() or copy_out()"), std::string::npos);
            EXPECT_TRUE(co_await works(c));
        }
        co_await c.query("set statement_timeout = 20");
        const auto slow = co_await thrown(c.query("select pg_sleep(10)"));
        EXPECT_EQ(slow->sqlstate(), "57014");
        EXPECT_TRUE(co_await works(c));
    });
}

TEST_F(Query, NoticesGoToTheHandler) {
    std::vector<std::string> notices;
    pq::connection_options options;
    options.on_notice = [&](std::string_view text) { notices.emplace_back(text); };
    const auto raise = [](connection& c) -> task<> {
        co_await c.query("do $$ begin raise notice 'look'; end $$");
    };
    testing::internal::CaptureStderr();
    with_connection(raise, options);
    with_connection(raise);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_EQ(notices[0], "NOTICE:  look");
}

TEST_F(Query, ASecondCallIsRefused) {
    with_connection([](connection& c) -> task<> {
        auto sleeping = coil::spawn(c.query("select pg_sleep(0.05)"));
        co_await yield();
        co_await yield();
        co_await thrown<std::logic_error>(c.query("select 1"));
        co_await std::move(sleeping);
        EXPECT_TRUE(co_await works(c));
    });
}

TEST_F(Query, PreparedStatements) {
    with_connection([](connection& c) -> task<> {
        const pq::statement add = co_await c.prepare("select $1::int + $2::int");
        const pq::statement twice = co_await c.prepare("select $1 || $1");
        for (int i = 0; i < 10; ++i) {
            EXPECT_EQ((co_await c.query(add, i, 1)).value_as<int>(), i + 1);
            EXPECT_EQ((co_await c.query(twice, "ab")).value_as<std::string>(), "abab");
        }
        EXPECT_EQ((co_await thrown(c.prepare("selekt")))->sqlstate(), "42601");
        const auto e = co_await thrown(c.query(add, "x", 1));
        EXPECT_EQ(e->sqlstate(), "22P02");
        EXPECT_NE(std::string(e->what()).find("select $1::int + $2::int"), std::string::npos);
        EXPECT_TRUE(co_await works(c));
    });
}

task<> insert(connection& c, int i) { co_await c.query("insert into t values ($1)", i); }
task<int> sum_of(connection& c) {
    co_return (co_await c.query("select coalesce(sum(i), 0) from t")).value_as<int>();
}

TEST_F(Query, TransactionsCommitOrRollBack) {
    with_connection([](connection& c) -> task<> {
        co_await c.query("create temp table t (i int unique deferrable initially deferred)");
        const int value = co_await c.transaction([](connection& x) -> task<int> {
            co_await insert(x, 1);
            co_return 5;
        });
        EXPECT_EQ(value, 5);
        co_await thrown<std::domain_error>(c.transaction([](connection& x) -> task<> {
            co_await insert(x, 10);
            throw std::domain_error("no");
        }));
        EXPECT_EQ(co_await sum_of(c), 1);

        // An inner transaction that fails leaves the outer one intact.
        co_await c.transaction([](connection& x) -> task<> {
            co_await insert(x, 2);
            co_await thrown(x.transaction([](connection& y) -> task<> {
                co_await insert(y, 100);
                co_await y.query("select 1/0");
            }));
            co_await x.transaction([](connection& y) { return insert(y, 4); });
        });
        EXPECT_EQ(co_await sum_of(c), 7);

        // If an error is caught inside, the rollback must not look like a commit.
        co_await thrown(c.transaction([](connection& x) -> task<> {
            co_await insert(x, 1000);
            co_await thrown(x.query("select 1/0"));
        }));
        co_await c.transaction([](connection& x) -> task<> {
            co_await thrown(x.transaction([](connection& y) -> task<> {
                co_await insert(y, 1000);
                co_await thrown(y.query("select 1/0"));
            }));
            EXPECT_TRUE(co_await works(x));
        });
        // A commit that fails.
        EXPECT_EQ((co_await thrown(c.transaction([](connection& x) {
                      return insert(x, 1);
                  })))->sqlstate(),
                  "23505");
        EXPECT_EQ(co_await sum_of(c), 7);
        EXPECT_TRUE(c.is_reusable());
    });
}

} // namespace
} // namespace pq_test
