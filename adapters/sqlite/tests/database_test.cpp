// coil::sqlite: values, errors, transactions, cancellation, locks.

#include "support/run.hpp"
#include "support/server_process.hpp"

#include <coil/coil.hpp>
#include <coil/sqlite.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>
#include <sqlite3.h>

#if COIL_SANITIZED && __has_include(<sanitizer/allocator_interface.h>)
#include <sanitizer/allocator_interface.h>
#endif

namespace {

using namespace coil;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using sqlite::connection;
using sqlite::database;

constexpr const char* endless =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

class Sqlite : public testing::Test {
protected:
    [[nodiscard]] std::string path() const { return (folder_.path() / "test.db").string(); }
    /// Runs `f(database&)`, which returns a task.
    template <class F>
    void with_database(F f, sqlite::options o = {}) {
        const auto all = [](F& body, std::string p, sqlite::options chosen) -> task<> {
            database db(std::move(p), std::move(chosen));
            co_await body(db);
        };
        coil::run(all(f, path(), std::move(o)));
    }

private:
    adapter_test::temporary_folder folder_;
};

template <class E = sqlite::error, class A>
task<std::optional<E>> thrown(A work) {
    try {
        co_await std::move(work);
    } catch (const E& e) {
        co_return e;
    }
    ADD_FAILURE() << "nothing was thrown";
    co_return std::nullopt;
}

template <class T>
task<> round_trip(database& db, T v) {
    const sqlite::result r = co_await db.query("select ?", v);
    EXPECT_EQ(r.value_as<T>(), v);
}

TEST_F(Sqlite, ReturnsTheValuesOfEachType) {
    with_database([](database& db) -> task<> {
        co_await round_trip(db, 42);
        co_await round_trip(db, std::numeric_limits<std::int64_t>::min());
        co_await round_trip(db, true);
        co_await round_trip(db, 0.1);
        co_await round_trip(db, std::string("ü'\"\0x", 6));
        co_await round_trip(db, std::string());
        co_await round_trip(db, sqlite::blob{std::byte{0}, std::byte{255}});
        co_await round_trip(db, sqlite::blob{});
        co_await round_trip(db, std::optional<int>(3));
        co_await round_trip(db, std::optional<std::string>());
        const auto r =
            co_await db.query("select ?1 is null as n, ?2 as \"two words\", 300", nullptr, "text");
        EXPECT_EQ(r.columns(), (std::vector<std::string>{"n", "two words", "300"}));
        EXPECT_EQ((r[0].as<bool, std::string_view>()), std::tuple(true, std::string_view("text")));
        EXPECT_THROW(static_cast<void>(r[0].get<signed char>(2)), sqlite::error);
        EXPECT_THROW(static_cast<void>(r[0].get<int>(1)), sqlite::error);
        EXPECT_THROW(static_cast<void>(r[0].get<int>(3)), std::out_of_range);
        EXPECT_THROW(static_cast<void>(r[1]), std::out_of_range);
        EXPECT_THROW(static_cast<void>(r.value_as<int>()), sqlite::error);
        EXPECT_THROW(static_cast<void>(db.query("select ?", ~std::uint64_t{0})), std::out_of_range);
        const auto several = co_await db.query(
            "create table t (i integer primary key, x); insert into t (x) values (1), (2); -- end");
        EXPECT_EQ(several.changes(), 2);
        EXPECT_EQ(several.last_insert_rowid(), 2);
        EXPECT_TRUE((co_await db.query("")).empty());
    });
}

TEST_F(Sqlite, ErrorsNameDatabaseAndStatement) {
    with_database([this](database& db) -> task<> {
        co_await db.query("create table t (i integer unique)");
        co_await db.query("insert into t values (1)");
        const auto twice = co_await thrown(db.query("insert into t values (?)", 1));
        EXPECT_EQ(twice->code(), SQLITE_CONSTRAINT_UNIQUE);
        EXPECT_EQ(twice->what(), "sqlite: " + path() +
                                     ": UNIQUE constraint failed: t.i (2067), in \"insert into t "
                                     "values (?)\"");
        EXPECT_EQ((co_await thrown(db.query("selekt")))->code(), SQLITE_ERROR);
        co_await thrown(db.query("select ?"));
        co_await thrown(db.query("select 1", 1));
        database missing("/nowhere/x.db");
        const auto e = co_await thrown(missing.query("select 1"));
        EXPECT_EQ(e->code(), SQLITE_CANTOPEN);
        EXPECT_NE(std::string(e->what()).find("/nowhere/x.db"), std::string::npos);
        co_await thrown(missing.query("select 1")); // the permit was given back
    });
}

TEST_F(Sqlite, TransactionsCommitOrRollBack) {
    with_database([](database& db) -> task<> {
        co_await db.query("create table t (i integer unique)");
        const int value = co_await db.transaction([](connection& c) -> task<int> {
            co_await c.query("insert into t values (1)");
            co_return (co_await c.query("select i from t")).value_as<int>();
        });
        EXPECT_EQ(value, 1);
        co_await thrown<std::domain_error>(db.transaction([](connection& c) -> task<> {
            co_await c.query("insert into t values (2)");
            throw std::domain_error("no");
        }));
        co_await thrown(db.transaction([](connection& c) -> task<> {
            co_await c.query("insert into t values (3)");
            co_await c.query("insert or rollback into t values (1)"); // ends the transaction
        }));
        const auto late =
            co_await thrown<std::system_error>(timeout(db.transaction([](connection& c) -> task<> {
                co_await c.query("insert into t values (4)");
                co_await c.query(endless);
            }),
                                                       30ms));
        EXPECT_EQ(late->code(), std::errc::timed_out);
        // A limit that expires before the commit.
        co_await thrown<std::system_error>(timeout(db.transaction([](connection& c) -> task<> {
            co_await c.query("insert into t values (5)");
            co_await shield(sleep_for(30ms));
        }),
                                                   10ms));
        EXPECT_EQ((co_await db.query("select sum(i) from t")).value_as<int>(), 1);
    });
}

TEST_F(Sqlite, CancellationInterruptsTheStatement) {
    sqlite::options o;
    o.connections = 1;
    with_database(
        [](database& db) -> task<> {
            for (int i = 0; i < coil_test::rounds(100, 1000); ++i) {
                const auto started = clock::now();
                const auto e = co_await thrown<std::system_error>(
                    timeout(db.query(endless), std::chrono::microseconds(i * 50)));
                EXPECT_EQ(e->code(), std::errc::timed_out);
                EXPECT_LT(clock::now() - started, 5s);
                // The interruption does not reach the connection's next statement.
                EXPECT_EQ((co_await db.query("select ?", i)).value_as<int>(), i);
            }
            auto running = coil::spawn(db.query(endless));
            auto waiting = coil::spawn(db.query("select 1"));
            co_await sleep_for(5ms);
            waiting.cancel(); // while it waits for the connection
            const auto join = [](auto& h) -> task<> { co_await std::move(h); };
            EXPECT_EQ((co_await thrown<std::system_error>(join(waiting)))->code(),
                      std::errc::operation_canceled);
            running.cancel();
            EXPECT_EQ((co_await thrown<std::system_error>(join(running)))->code(),
                      std::errc::operation_canceled);
        },
        o);
}

TEST_F(Sqlite, ADestroyedFrameIsNotWaitedFor) {
    sqlite::options o;
    o.connections = 1;
    with_database(
        [](database& db) -> task<> {
            co_await db.query("create table t (i)");
            for (int i = 0; i < 30; ++i) {
                {
                    scope s;
                    s.spawn(db.transaction([](connection& c) -> task<> {
                        co_await c.query("insert into t values (1)");
                        co_await c.query(endless);
                    }));
                    co_await sleep_for(i * 100us);
                }
                EXPECT_EQ((co_await db.query("select count(*) from t")).value_as<int>(), 0);
            }
            // The database may be destroyed while a statement runs.
            auto other = std::make_unique<database>(":memory:");
            auto running = coil::spawn(other->query(endless));
            co_await sleep_for(5ms);
            other.reset();
            running.cancel();
            co_await thrown<std::system_error>(
                [](auto& h) -> task<> { co_await std::move(h); }(running));
        },
        o);
}

TEST_F(Sqlite, WaitsForLocksOfOthers) {
    const std::string file = path();
    with_database(
        [file](database& db) -> task<> {
            co_await db.query("create table t (i)");
            ::sqlite3* other = nullptr;
            ::sqlite3_open(file.c_str(), &other);
            const std::unique_ptr<::sqlite3, int (*)(::sqlite3*)> owner(other, &::sqlite3_close);
            const auto execute = [&](const char* sql) {
                EXPECT_EQ(::sqlite3_exec(other, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql;
            };
            execute("begin immediate");
            auto started = clock::now();
            const auto busy = co_await thrown(db.query("insert into t values (1)"));
            EXPECT_EQ(busy->code(), SQLITE_BUSY);
            EXPECT_GE(clock::now() - started, 200ms);
            // Cancellation while it waits.
            started = clock::now();
            co_await thrown<std::system_error>(timeout(db.query("insert into t values (1)"), 10ms));
            EXPECT_LT(clock::now() - started, 200ms + (coil_test::sanitized ? 2000ms : 0ms));
            // The lock is released in time; readers do not wait.
            auto inserting = coil::spawn(db.query("insert into t values (1)"));
            EXPECT_EQ((co_await db.query("select count(*) from t")).value_as<int>(), 0);
            co_await sleep_for(20ms);
            execute("commit");
            co_await std::move(inserting);
            EXPECT_EQ((co_await db.query("select count(*) from t")).value_as<int>(), 1);
        },
        [] {
            sqlite::options o;
            o.busy_limit = 200ms;
            return o;
        }());
}

TEST_F(Sqlite, StatementsRunAtTheSameTimeOnSeveralContexts) {
    runtime rt(2);
    database db(path());
    rt.block_on([](database& d) -> task<> { co_await d.query("create table t (i)"); }(db));
    std::atomic<int> seen{0};
    for (int i = 0; i < 8; ++i) {
        rt.co_spawn([](database& d, std::atomic<int>& count) -> task<> {
            for (int k = 0; k < 20; ++k) {
                co_await d.transaction([](connection& c) -> task<> {
                    const int n = (co_await c.query("select count(*) from t")).value_as<int>();
                    co_await c.query("insert into t values (?)", n);
                });
                count += (co_await d.query("select 1")).value_as<int>();
            }
        }(db, seen));
    }
    rt.run();
    EXPECT_EQ(seen.load(), 160);
    // Serializable: each transaction has seen those before it.
    rt.block_on([](database& d) -> task<> {
        EXPECT_EQ((co_await d.query("select count(distinct i) from t")).value_as<int>(), 160);
    }(db));
}

std::size_t allocated() {
#if COIL_SANITIZED && __has_include(<sanitizer/allocator_interface.h>)
    return __sanitizer_get_current_allocated_bytes();
#else
    return ::mallinfo2().uordblks;
#endif
}

TEST_F(Sqlite, ManyOperationsLeaveNothingBehind) {
    const auto descriptors = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    };
    const auto some = [](database& db, int count) -> task<> {
        for (int i = 0; i < count; ++i) {
            co_await db.query("select ?", "some text that is not short");
            if (i % 100 == 0) {
                co_await thrown(db.query("selekt"));
                co_await thrown<std::system_error>(timeout(db.query(endless), 1ms));
            }
        }
    };
    sqlite::options o;
    o.connections = 1;
    with_database(
        [&](database& db) -> task<> {
            co_await some(db, 500);
            const std::size_t memory = allocated();
            const auto files = descriptors();
            co_await some(db, coil_test::rounds(5000, 100'000));
            EXPECT_LE(allocated(), memory + 65'536);
            EXPECT_EQ(descriptors(), files);
        },
        o);
}

TEST_F(Sqlite, TheExampleRuns) {
    const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
    const std::string program =
        std::string(folder != nullptr ? folder : "examples") + "/sqlite_count";
    if (!std::filesystem::exists(program)) {
        GTEST_SKIP() << program << " was not built";
    }
    std::string files;
    for (int i = 0; i < 8; ++i) {
        const std::string file = path() + std::to_string(i);
        std::ofstream(file) << "one two two " << (i % 2 == 0 ? "two" : "three");
        files += ' ' + file;
    }
    const std::unique_ptr<FILE, int (*)(FILE*)> out(
        ::popen((program + ' ' + path() + files).c_str(), "r"), &::pclose);
    std::string text(200, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), out.get()));
    EXPECT_EQ(text, "20 two\n8 one\n4 three\n");
}

} // namespace
