// Constructors and calls with an argument too many, too few, or of a type that only looks right.

#include <coil/coil.hpp>

#include <chrono>

#if COIL_CASE == 1 // channel_without_an_element_type
// expect: a channel needs an element type: channel<int> numbers(5)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::channel<int> numbers(5);
    co_return;
#else
    coil::channel numbers(5);
    co_return;
#endif
}
#endif

#if COIL_CASE == 2 // length_and_offset
// expect: pass the length as a part of the buffer: {data, n}

coil::task<> caller(int fd) {
#if defined(COIL_EXPECT_OK)
    char buf[64];
    co_await coil::io::read(fd, {buf, 4}, 0);
#else
    char buf[64];
    co_await coil::io::read(fd, buf, 4, 0);
#endif
}
#endif

#if COIL_CASE == 3 // socket_as_a_descriptor
// expect: pass its descriptor: owner.native_handle(); or call its member
// only: clang

coil::task<> caller(coil::net::socket& s) {
#if defined(COIL_EXPECT_OK)
    char buf[64];
    co_await coil::io::recv(s.native_handle(), buf);
#else
    char buf[64];
    co_await coil::io::recv(s, buf);
#endif
}
#endif

#if COIL_CASE == 4 // file_as_a_descriptor
// expect: pass its descriptor: owner.native_handle(); or call its member
// only: clang

coil::task<> caller(coil::fs::file& f) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::fsync(f.native_handle());
#else
    co_await coil::io::fsync(f);
#endif
}
#endif

#if COIL_CASE == 5 // socket_with_an_address
// expect: a socket is connected by connect(): net::socket s = co_await net::connect("127.0.0.1",
// 80)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::net::socket s = co_await coil::net::connect("127.0.0.1", 80);
#else
    coil::net::socket s("127.0.0.1", 80);
    co_return;
#endif
}
#endif

#if COIL_CASE == 6 // connect_with_a_separate_port
// expect: the address and the port are one argument: s.connect({"127.0.0.1", 80})

coil::task<> caller(coil::net::socket& s) {
#if defined(COIL_EXPECT_OK)
    co_await s.connect({"127.0.0.1", 80});
#else
    co_await s.connect("127.0.0.1", 80);
#endif
}
#endif

#if COIL_CASE == 7 // address_as_one_text
// expect: pass the port, or parse both: inet_address("127.0.0.1", 80)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const coil::net::inet_address a("127.0.0.1", 80);
    co_return;
#else
    const coil::net::inet_address a("127.0.0.1:80");
    co_return;
#endif
}
#endif

#if COIL_CASE == 8 // port_before_the_address
// expect: the address comes before the port: inet_address("127.0.0.1", 80)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const coil::net::inet_address a("127.0.0.1", 80);
    co_return;
#else
    const coil::net::inet_address a(80, "127.0.0.1");
    co_return;
#endif
}
#endif

#if COIL_CASE == 9 // sleep_as_text
// expect: pass a duration with a unit: sleep_for(3s)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::sleep_for(std::chrono::seconds(5));
#else
    co_await coil::sleep_for("5s");
#endif
}
#endif

#if COIL_CASE == 10 // on_without_an_executor
// expect: on takes an executor and a task: on(executor, f())

coil::task<> f();

coil::task<> caller(coil::thread_pool& pool) {
#if defined(COIL_EXPECT_OK)
    co_await coil::on(pool, f());
#else
    static_cast<void>(pool);
    co_await coil::on(f());
#endif
}
#endif

#if COIL_CASE == 11 // run_without_a_task
// expect: run takes a task: run(co_main())

coil::task<> co_main();

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::run(co_main());
    co_return;
#else
    coil::run();
    co_return;
#endif
}
#endif

#if COIL_CASE == 12 // connect_with_a_number_as_its_limit
// expect: pass the limit as a duration with a unit: connect("example.org", 443, 5s)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::connect("example.org", 443, std::chrono::seconds(5));
#else
    co_await coil::net::connect("example.org", 443, 5);
#endif
}
#endif

#if COIL_CASE == 13 // reader_without_a_stream
// expect: pass the stream to read from: buffered_reader r{peer}
// only: clang

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    coil::buffered_reader r{peer};
    co_return;
#else
    static_cast<void>(peer);
    coil::buffered_reader r;
    co_return;
#endif
}
#endif

#if COIL_CASE == 14 // writer_without_a_stream
// expect: pass the stream to write to: buffered_writer w{peer}
// only: clang

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    coil::buffered_writer w{peer};
    co_return;
#else
    static_cast<void>(peer);
    coil::buffered_writer w;
    co_return;
#endif
}
#endif

#if COIL_CASE == 15 // shared_writer_without_a_stream
// expect: pass the stream to write to: shared_writer w{peer}
// only: clang

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    coil::shared_writer w{peer};
    co_return;
#else
    static_cast<void>(peer);
    coil::shared_writer w;
    co_return;
#endif
}
#endif
