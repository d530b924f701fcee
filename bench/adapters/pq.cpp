// coil::pq and libpq: SELECT 1 in pipelines and one after the other, on one connection.

#include "pq/tests/postgres_server.hpp"
#include "rounds.hpp"

#include <coil/coil.hpp>
#include <coil/pq.hpp>

#include <poll.h>

using namespace coil;

namespace {

constexpr long depth = 100; // statements in a pipeline

void check(bool ok, ::PGconn* c) {
    if (!ok) {
        std::fprintf(stderr, "libpq: %s\n", ::PQerrorMessage(c));
        std::exit(1);
    }
}

struct blocking_connection {
    explicit blocking_connection(const std::string& conninfo)
        : get(::PQconnectdb(conninfo.c_str())) {
        check(::PQstatus(get) == CONNECTION_OK, get);
    }
    ~blocking_connection() { ::PQfinish(get); }
    ::PGconn* get;
};

/// Waits as an event loop does: only if libpq would block. Precondition: the connection does not
/// block.
::PGresult* next_result(::PGconn* c) {
    while (::PQisBusy(c) != 0) {
        check(::PQflush(c) == 0, c);
        ::pollfd socket{::PQsocket(c), POLLIN, 0};
        ::poll(&socket, 1, -1);
        check(::PQconsumeInput(c) == 1, c);
    }
    return ::PQgetResult(c);
}

/// `next` waits for a result.
void libpq_pipelines(const std::string& conninfo, long n, bool nonblocking,
                     ::PGresult* (*next)(::PGconn*)) {
    const blocking_connection c(conninfo);
    check(::PQsetnonblocking(c.get, nonblocking ? 1 : 0) == 0, c.get);
    check(::PQenterPipelineMode(c.get) == 1, c.get);
    rounds::prepared();
    for (long done = 0; done < n; done += depth) {
        for (long i = 0; i < depth; ++i) {
            check(::PQsendQueryParams(c.get, "select 1", 0, nullptr, nullptr, nullptr, nullptr,
                                      0) == 1,
                  c.get);
        }
        check(::PQpipelineSync(c.get) == 1, c.get);
        for (long i = 0; i < depth; ++i) {
            ::PGresult* const r = next(c.get);
            check(::PQresultStatus(r) == PGRES_TUPLES_OK, c.get);
            ::PQclear(r);
            check(::PQgetResult(c.get) == nullptr, c.get);
        }
        ::PGresult* const r = next(c.get);
        check(::PQresultStatus(r) == PGRES_PIPELINE_SYNC, c.get);
        ::PQclear(r);
    }
}

task<> pipelines(std::string conninfo, long n) {
    pq::connection c = co_await pq::connection::connect(conninfo);
    rounds::prepared();
    // NOLINTNEXTLINE(*-avoid-capturing-lambda-coroutines): pipeline() keeps the function
    co_await c.pipeline([&](pq::pipeline& p) -> task<> {
        for (long done = 0; done < n; done += depth) {
            for (long i = 0; i < depth; ++i) {
                p.query("select 1");
            }
            while (co_await p.next()) {
            }
        }
    });
}

void blocking_queries(const std::string& conninfo, long n) {
    const blocking_connection c(conninfo);
    rounds::prepared();
    for (long i = 0; i < n; ++i) {
        ::PGresult* const r = ::PQexec(c.get, "select 1");
        check(::PQresultStatus(r) == PGRES_TUPLES_OK, c.get);
        ::PQclear(r);
    }
}

task<> queries(std::string conninfo, long n) {
    pq::connection c = co_await pq::connection::connect(conninfo);
    rounds::prepared();
    for (long i = 0; i < n; ++i) {
        co_await c.query("select 1");
    }
}

} // namespace

int main(int argc, char** argv) {
    if (pq_test::postgres_programs().empty()) {
        std::puts("coil::pq: install postgresql");
        return 0;
    }
    const pq_test::postgres server;
    const std::string to = server.conninfo();
    const long n = rounds::operations(argc, argv, 100'000);
    rounds::compare(
        "select 1, pipelines of 100", n,
        {{"libpq, blocking", [&](long k) { libpq_pipelines(to, k, false, &::PQgetResult); }},
         {"libpq, non-blocking, poll()",
          [&](long k) { libpq_pipelines(to, k, true, &next_result); }},
         {"coil, pipeline()", [&](long k) { coil::run(pipelines(to, k)); }}});
    rounds::compare("select 1, one after the other", n / 10,
                    {{"libpq, blocking", [&](long k) { blocking_queries(to, k); }},
                     {"coil, query()", [&](long k) { coil::run(queries(to, k)); }}});
}
