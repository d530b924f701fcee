// Arguments that are not buffers.

#include <coil/coil.hpp>

#include <cstddef>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if COIL_CASE == 1 // pointer_as_a_buffer
// expect: a pointer has no length: pass std::string_view(p), or {p, n}
// only: clang
// mistake 21: `peer.send(pointer)`

coil::task<> caller(coil::net::socket& peer, const char* text) {
#if defined(COIL_EXPECT_OK)
    co_await peer.send(std::string_view(text));
#else
    co_await peer.send(text);
#endif
}
#endif

#if COIL_CASE == 2 // pointer_to_send_all
// expect: a pointer has no length: pass std::string_view(p), or {p, n}
// only: clang

coil::task<> caller(coil::net::socket& peer, const char* text) {
#if defined(COIL_EXPECT_OK)
    co_await peer.send_all(std::string_view(text));
#else
    co_await peer.send_all(text);
#endif
}
#endif

#if COIL_CASE == 3 // pointer_and_length_to_send_all
// expect: pass the length as a part of the buffer

coil::task<> caller(coil::net::socket& peer, const char* text, std::size_t n) {
#if defined(COIL_EXPECT_OK)
    co_await peer.send_all({text, n});
#else
    co_await peer.send_all(text, n);
#endif
}
#endif

#if COIL_CASE == 4 // pointer_and_length_to_recv_all
// expect: pass the length as a part of the buffer

coil::task<> caller(coil::net::socket& peer, char* memory, std::size_t n) {
#if defined(COIL_EXPECT_OK)
    co_await peer.recv_all({memory, n});
#else
    co_await peer.recv_all(memory, n);
#endif
}
#endif

#if COIL_CASE == 5 // pointer_and_length_to_write_all
// expect: pass the length as a part of the buffer

coil::task<> caller(coil::net::socket& peer, const char* text, std::size_t n) {
#if defined(COIL_EXPECT_OK)
    co_await coil::write_all(peer, {text, n});
#else
    co_await coil::write_all(peer, text, n);
#endif
}
#endif

#if COIL_CASE == 6 // pointer_to_a_writer
// expect: a pointer has no length: pass std::string_view(p), or {p, n}
// only: clang

coil::task<> caller(coil::net::socket& peer, const char* text) {
#if defined(COIL_EXPECT_OK)
    coil::buffered_writer w(peer);
    co_await w.write(std::string_view(text));
#else
    coil::buffered_writer w(peer);
    co_await w.write(text);
#endif
}
#endif

#if COIL_CASE == 7 // receive_into_a_view
// expect: the call writes to this buffer
// only: clang

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    std::string buf(4, '\0');
    co_await peer.recv(buf);
#else
    std::string_view buf;
    co_await peer.recv(buf);
#endif
}
#endif

#if COIL_CASE == 8 // strings_as_a_buffer
// expect: not a buffer: pass contiguous memory of trivially copyable elements
// only: clang

coil::task<> caller(coil::net::socket& peer, std::vector<std::string> lines) {
#if defined(COIL_EXPECT_OK)
    co_await peer.send(lines[0]);
#else
    co_await peer.send(lines);
#endif
}
#endif

#if COIL_CASE == 9 // list_as_a_buffer
// expect: not a buffer: pass contiguous memory of trivially copyable elements
// only: clang

coil::task<> caller(coil::net::socket& peer, std::list<char> bytes) {
#if defined(COIL_EXPECT_OK)
    co_await peer.send(std::string(bytes.begin(), bytes.end()));
#else
    co_await peer.send(bytes);
#endif
}
#endif

#if COIL_CASE == 10 // number_as_a_buffer
// expect: not a buffer: pass contiguous memory of trivially copyable elements
// only: clang

coil::task<> caller(coil::net::socket& peer, int number) {
#if defined(COIL_EXPECT_OK)
    co_await peer.send({&number, sizeof number});
#else
    co_await peer.send(number);
#endif
}
#endif

#if COIL_CASE == 11 // number_as_a_file
// expect: not a buffer: pass contiguous memory of trivially copyable elements
// only: clang

coil::task<> caller(int number) {
#if defined(COIL_EXPECT_OK)
    co_await coil::fs::write_file("counter", std::to_string(number));
#else
    co_await coil::fs::write_file("counter", number);
#endif
}
#endif

#if COIL_CASE == 12 // receive_into_a_temporary
// expect: what the call writes to this temporary is lost: pass a variable that has a size
// only: clang
// mistake 5: `co_await peer.recv(std::string());`

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    std::string buf(4096, '\0');
    co_await peer.recv(buf);
    co_await peer.send(std::string("x"));
    co_await peer.recv(std::span(buf).first(10));
#else
    co_await peer.recv(std::string());
#endif
}
#endif

#if COIL_CASE == 13 // read_into_a_temporary
// expect: what the call writes to this temporary is lost: pass a variable that has a size
// only: clang

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    std::vector<char> buf(4096);
    co_await peer.read_some(buf);
#else
    co_await peer.read_some(std::vector<char>());
#endif
}
#endif
