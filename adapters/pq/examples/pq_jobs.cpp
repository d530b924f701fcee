// A queue of jobs in PostgreSQL: jobs are copied into a table, NOTIFY wakes up the workers, and
// each worker takes one job at a time in a transaction of its own. A worker that dies loses no job.
//
//     pq_jobs postgresql://user@db.example/shop 1000
//
// It shows the pool, COPY, LISTEN and NOTIFY, and transactions.

#include <coil/coil.hpp>
#include <coil/pq.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

using namespace coil;
using namespace std::chrono_literals;

namespace {

// [worker]
/// Takes a job that no other worker has, and does it; false if there is none.
task<bool> do_one(pq::connection& c) {
    const pq::result job = co_await c.query("select id, text from coil_jobs where done is null "
                                            "order by id limit 1 for update skip locked");
    if (job.empty()) {
        co_return false;
    }
    const auto [id, text] = job[0].as<long, std::string_view>();
    co_await c.query("update coil_jobs set done = now(), result = $2 where id = $1", id,
                     "did " + std::string(text));
    co_return true;
}

task<> work(pq::pool& db) {
    while (co_await db.transaction(do_one)) {
    }
}
// [/worker]

task<> add_jobs(pq::pool& db, int count) {
    auto c = co_await db.acquire();
    co_await c->copy_in("copy coil_jobs (text) from stdin", [&](pq::copy_writer& w) -> task<> {
        for (int i = 0; i < count; ++i) {
            co_await w.write("job " + std::to_string(i) + '\n');
        }
    });
    co_await c->query("select pg_notify('coil_jobs', $1)", count);
}

task<int> co_main(std::string conninfo, int count) {
    pq::pool db(conninfo, {.size = 4});
    co_await db.query("create table if not exists coil_jobs (id bigserial primary key, text text, "
                      "done timestamptz, result text); truncate coil_jobs");
    pq::connection listener = co_await pq::connection::connect(conninfo);
    co_await listener.listen("coil_jobs");

    scope s;
    s.spawn(add_jobs(db, count));
    auto news = listener.notifications();
    if (const auto n = co_await timeout(news.next(), 30s)) {
        std::printf("%s new jobs\n", n->payload.c_str());
        for (int i = 0; i < 4; ++i) {
            s.spawn(work(db));
        }
    }
    co_await s.join();

    const pq::result counts =
        co_await db.query("select count(done), count(*) - count(done) from coil_jobs");
    const auto [done, open] = counts[0].as<int, int>();
    std::printf("%d jobs done, %d open\n", done, open);
    co_await db.query("drop table coil_jobs");
    co_return open == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s CONNINFO JOBS\n", argv[0]);
        return EXIT_FAILURE;
    }
    try {
        return coil::run(co_main(argv[1], std::atoi(argv[2])));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return EXIT_FAILURE;
    }
}
