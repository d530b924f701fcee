// Locks, TLS, callbacks and simulated worlds.

#include <coil/coil.hpp>
#include <coil/tls.hpp>

#include <chrono>
#include <string>

#if COIL_CASE == 1 // semaphore_without_permits
// expect: pass the number of permits: counting_semaphore s(10)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::counting_semaphore<> s(10);
#else
    coil::counting_semaphore<> s;
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // tls_context_without_a_side
// expect: write tls::context::client(), or tls::context::server(certificate_file, key_file)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::tls::context ctx = coil::tls::context::client();
#else
    coil::tls::context ctx;
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // tls_handshake_without_a_name
// expect: pass the name that the server's certificate must have

coil::task<> caller(coil::tls::stream& s) {
#if defined(COIL_EXPECT_OK)
    co_await s.handshake("example.org");
#else
    co_await s.handshake();
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // tls_send
// expect: write_some(data), or the whole: write_all(stream, data)

coil::task<> caller(coil::tls::stream& s) {
#if defined(COIL_EXPECT_OK)
    co_await coil::write_all(s, "text");
#else
    co_await s.send("text");
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // tls_alpn_text
// expect: pass a list: set_alpn({"h2"})

coil::task<> caller(coil::tls::context& ctx) {
#if defined(COIL_EXPECT_OK)
    ctx.set_alpn({"h2"});
#else
    ctx.set_alpn("h2");
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // tls_certificate_without_a_key
// expect: pass the files of the certificate and of its key

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    static_cast<void>(coil::tls::context::server("cert.pem", "key.pem"));
#else
    static_cast<void>(coil::tls::context::server("cert.pem"));
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // callback_without_a_type
// expect: name the type of the result: from_callback<int>(initiate)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::from_callback<int>([](coil::completion<int> done) { done(1); });
#else
    co_await coil::from_callback([](coil::completion<int> done) { done(1); });
#endif
    co_return;
}
#endif

#if COIL_CASE == 8 // callback_with_another_value
// expect: a completion<T> takes what a T is constructed from

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::from_callback<int>([](coil::completion<int> done) { done(1); });
#else
    co_await coil::from_callback<int>([](coil::completion<int> done) { done("x"); });
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // callback_unawaited
// expect: did you forget to co_await? Only that gives the result

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const int n = co_await coil::from_callback<int>([](coil::completion<int> done) { done(1); });
    static_cast<void>(n);
#else
    const int n = coil::from_callback<int>([](coil::completion<int> done) { done(1); });
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // world_without_a_seed
// expect: pass a seed: sim::world w(1)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::sim::world w(1);
#else
    coil::sim::world w;
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // world_runs_a_task
// expect: spawn the task on a host

coil::task<> work();

coil::task<> caller(coil::sim::world& w) {
#if defined(COIL_EXPECT_OK)
    w.host("a").co_spawn(work());
    w.run();
#else
    w.run(work());
#endif
    co_return;
}
#endif

#if COIL_CASE == 12 // world_runs_for_a_number
// expect: pass a duration with a unit: w.run_for(3s)

coil::task<> caller(coil::sim::world& w) {
#if defined(COIL_EXPECT_OK)
    w.run_for(std::chrono::seconds(3));
#else
    w.run_for(3);
#endif
    co_return;
}
#endif

#if COIL_CASE == 13 // host_by_value
// expect: the world owns its hosts: auto& server = w.host("server")

coil::task<> caller(coil::sim::world& w) {
#if defined(COIL_EXPECT_OK)
    auto& server = w.host("server");
    server.crash();
#else
    auto server = w.host("server");
#endif
    co_return;
}
#endif

#if COIL_CASE == 14 // host_spawn_of_a_result
// expect: co_spawn takes a task<>, which has no result

coil::task<int> number();

coil::task<> caller(coil::sim::host& h) {
#if defined(COIL_EXPECT_OK)
    auto handle = h.spawn(number(), "name");
    static_cast<void>(co_await handle);
#else
    h.co_spawn(number(), "name");
#endif
    co_return;
}
#endif

#if COIL_CASE == 15 // seeds_of_a_world
// expect: the function takes a seed and makes the world

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::sim::for_each_seed(10, [](std::uint64_t seed) { coil::sim::world w(seed); });
#else
    coil::sim::for_each_seed(10, [](coil::sim::world& w) { w.run(); });
#endif
    co_return;
}
#endif
