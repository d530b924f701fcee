// coil::hiredis and hiredis: blocking pipelines, and asynchronous ones on libuv's loop.

#include "rounds.hpp"
#include "support/server_process.hpp"

#include <coil/coil.hpp>
#include <coil/hiredis.hpp>

#include <hiredis/hiredis.h>

#if defined(COIL_HAVE_LIBUV)
#include <hiredis/adapters/libuv.h>
#include <hiredis/async.h>
#endif

using namespace coil;

namespace {

constexpr long depth = 50; // commands in flight

void check(bool ok, const char* what) {
    if (!ok) {
        std::fprintf(stderr, "%s failed\n", what);
        std::exit(1);
    }
}

void blocking(int port, long n) {
    ::redisContext* const c = ::redisConnect("127.0.0.1", port);
    check(c != nullptr && c->err == 0, "redisConnect");
    for (long done = 0; done < n; done += depth) {
        for (long i = 0; i < depth; ++i) {
            ::redisAppendCommand(c, "SET %s %b", "key", "value", std::size_t{5});
        }
        for (long i = 0; i < depth; ++i) {
            void* reply = nullptr;
            check(::redisGetReply(c, &reply) == REDIS_OK, "redisGetReply");
            ::freeReplyObject(reply);
        }
    }
    ::redisFree(c);
}

task<> pipelines(hiredis::options to, long n) {
    auto c = co_await hiredis::connection::connect(to);
    for (long done = 0; done < n; done += depth) {
        auto p = c.pipelined();
        for (long i = 0; i < depth; ++i) {
            p.command("SET %s %b", "key", "value", std::size_t{5});
        }
        co_await std::move(p).execute();
    }
}

task<> set_many(hiredis::connection& c, long n) {
    for (long i = 0; i < n; ++i) {
        co_await c.command("SET %s %b", "key", "value", std::size_t{5});
    }
}
task<> call_many(hiredis::connection& c, long n) {
    for (long i = 0; i < n; ++i) {
        co_await c.call("SET", "key", "value");
    }
}
template <class F>
task<> concurrent(F each, hiredis::options to, long n, long tasks) {
    auto c = co_await hiredis::connection::connect(to);
    scope all;
    for (long i = 0; i < tasks; ++i) {
        all.spawn(each(c, n / tasks));
    }
    co_await all.join();
}

#if defined(COIL_HAVE_LIBUV)
struct uv_work {
    long to_send;
    long to_receive;
};

void uv_send(::redisAsyncContext* c);
void uv_answered(::redisAsyncContext* c, void*, void*) {
    auto& work = *static_cast<uv_work*>(c->data);
    if (work.to_send > 0) {
        uv_send(c);
    }
    if (--work.to_receive == 0) {
        ::redisAsyncDisconnect(c);
    }
}
void uv_send(::redisAsyncContext* c) {
    --static_cast<uv_work*>(c->data)->to_send;
    ::redisAsyncCommand(c, &uv_answered, nullptr, "SET %s %b", "key", "value", std::size_t{5});
}

void on_libuv(int port, long n, long in_flight) {
    ::uv_loop_t loop;
    check(::uv_loop_init(&loop) == 0, "uv_loop_init");
    ::redisAsyncContext* const c = ::redisAsyncConnect("127.0.0.1", port);
    check(c != nullptr && c->err == 0, "redisAsyncConnect");
    uv_work work{n, n};
    c->data = &work;
    ::redisLibuvAttach(c, &loop);
    for (long i = 0; i < in_flight; ++i) {
        uv_send(c);
    }
    ::uv_run(&loop, UV_RUN_DEFAULT);
    check(work.to_receive == 0, "uv_run");
    ::uv_loop_close(&loop);
}
#endif

} // namespace

int main(int argc, char** argv) {
    const long n = rounds::operations(argc, argv, 200'000);
    const adapter_test::temporary_folder folder;
    const std::uint16_t port = adapter_test::free_port();
    const adapter_test::server_process server(
        {"redis-server", "--port", std::to_string(port), "--save", ""}, port,
        folder.path() / "log");
    const hiredis::options to{.port = port};

    rounds::compare("SET, pipelines of 50", n,
                    {{"hiredis, blocking", [&](long k) { blocking(port, k); }},
                     {"coil, pipelined()", [&](long k) { coil::run(pipelines(to, k)); }}});
    std::vector<rounds::variant> many;
    std::vector<rounds::variant> one;
#if defined(COIL_HAVE_LIBUV)
    many.push_back({"hiredis on libuv", [&](long k) { on_libuv(port, k, depth); }});
    one.push_back({"hiredis on libuv", [&](long k) { on_libuv(port, k, 1); }});
#endif
    many.push_back(
        {"coil, command()", [&](long k) { coil::run(concurrent(&set_many, to, k, depth)); }});
    many.push_back(
        {"coil, call()", [&](long k) { coil::run(concurrent(&call_many, to, k, depth)); }});
    one.push_back({"coil, command()", [&](long k) { coil::run(concurrent(&set_many, to, k, 1)); }});
    rounds::compare("SET, 50 concurrent commands on one connection", n, std::move(many));
    rounds::compare("SET, one command after the other", n / 10, std::move(one));
}
