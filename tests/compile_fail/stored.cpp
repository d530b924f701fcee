// Operations that refer to a temporary buffer, or to a temporary list of buffers.

#include <coil/coil.hpp>

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <linux/futex.h>
#include <sys/uio.h>

#if COIL_CASE == 1 // temporary_in_a_stored_operation
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto op = io::write(fd, std::string("x"));`

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = coil::io::write(fd, text);
    co_await op;
#else
    auto op = coil::io::write(fd, std::string("text"));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 2 // temporary_in_a_stored_limited_operation
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto op = timeout(io::write(fd, std::string("x")), 1s);`

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = timeout(coil::io::write(fd, text), std::chrono::seconds(1));
    co_await op;
#else
    auto op = timeout(coil::io::write(fd, std::string("text")), std::chrono::seconds(1));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 3 // temporary_in_a_stored_eager_operation
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto op = eager(io::write(fd, std::string("x")));`

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = coil::eager(coil::io::write(fd, text));
    co_await op;
#else
    auto op = coil::eager(coil::io::write(fd, std::string("text")));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 4 // temporary_in_a_stored_eager_limited_operation
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = coil::eager(timeout(coil::io::write(fd, "literal"), std::chrono::seconds(1)));
    co_await op;
#else
    auto op =
        coil::eager(timeout(coil::io::write(fd, std::string("text")), std::chrono::seconds(1)));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 5 // temporary_in_a_stored_buffer
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `const_buffer b = std::string("x");`

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    const coil::const_buffer data = std::string_view(text).substr(1);
    co_await coil::io::write(fd, data);
#else
    const coil::const_buffer data = std::string("text");
    co_await coil::io::write(fd, data);
#endif
}
#endif

#if COIL_CASE == 6 // temporary_list_in_a_stored_writev
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto op = io::writev(fd, std::vector<::iovec>{...});`

coil::task<> caller(int fd, std::vector<::iovec> parts) {
#if defined(COIL_EXPECT_OK)
    auto op = coil::io::writev(fd, parts);
    auto rest = coil::io::writev(fd, std::span(parts).subspan(1));
    co_await coil::io::writev(fd, std::vector<::iovec>(parts));
    co_await op;
    co_await rest;
#else
    auto op = coil::io::writev(fd, std::vector<::iovec>(parts));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 7 // temporary_list_in_a_stored_readv
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(int fd, char* memory) {
#if defined(COIL_EXPECT_OK)
    const std::array<::iovec, 1> parts{{{memory, 4}}};
    auto op = coil::io::readv(fd, parts);
    co_await op;
#else
    auto op = coil::io::readv(fd, std::array<::iovec, 1>{{{memory, 4}}});
    co_await op;
#endif
}
#endif

#if COIL_CASE == 8 // temporary_list_in_a_stored_writev_all
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto t = writev_all(peer, std::vector<const_buffer>{a, b});`

coil::task<> caller(coil::net::socket& peer, std::string text) {
#if defined(COIL_EXPECT_OK)
    const coil::const_buffer parts[] = {"header", text};
    auto all = coil::writev_all(peer, parts);
    co_await coil::writev_all(peer, std::array<coil::const_buffer, 2>{"header", text});
    co_await std::move(all);
#else
    auto all = coil::writev_all(peer, std::vector<coil::const_buffer>{"header", text});
    co_await std::move(all);
#endif
}
#endif

#if COIL_CASE == 9 // temporary_list_in_a_stored_writev_some
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(coil::fs::file& f, std::string text) {
#if defined(COIL_EXPECT_OK)
    const coil::const_buffer parts[] = {"header", text};
    auto some = f.writev_some(parts);
    co_await std::move(some);
#else
    auto some = f.writev_some(std::vector<coil::const_buffer>{"header", text});
    co_await std::move(some);
#endif
}
#endif

#if COIL_CASE == 10 // temporary_list_of_descriptors
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(coil::net::socket& peer, std::vector<int> descriptors) {
#if defined(COIL_EXPECT_OK)
    auto sent = peer.send_descriptors(descriptors, "x");
    co_await peer.send_descriptors(std::vector<int>(descriptors), "x");
    co_await std::move(sent);
#else
    auto sent = peer.send_descriptors(std::vector<int>(descriptors), "x");
    co_await std::move(sent);
#endif
}
#endif

#if COIL_CASE == 11 // temporary_in_a_stored_write_all
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto t = write_all(out, std::string("x"));`

coil::task<> caller(coil::pipe_end& out, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto all = coil::write_all(out, text);
    auto literal = coil::write_all(out, "text");
    auto rest = coil::write_all(out, std::string_view(text).substr(1));
    co_await coil::write_all(out, std::string("text"));
    co_await std::move(all);
    co_await std::move(literal);
    co_await std::move(rest);
#else
    auto all = coil::write_all(out, std::string("text"));
    co_await std::move(all);
#endif
}
#endif

#if COIL_CASE == 12 // temporary_in_a_stored_pipe_write
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(coil::pipe_end& out, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = out.write_some(text);
    co_await op;
#else
    auto op = out.write_some(std::string("text"));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 13 // temporary_in_a_stored_buffered_write
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 5, warning: `auto op = writer.write(std::string("x"));`

coil::task<> caller(coil::buffered_writer<coil::net::socket&>& out, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = out.write(text);
    co_await out.write(std::string("text"));
    co_await op;
#else
    auto op = out.write(std::string("text"));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 14 // temporary_list_of_futexes
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(std::vector<struct ::futex_waitv> words) {
#if defined(COIL_EXPECT_OK)
    auto op = coil::io::futex_waitv(words);
    auto first = coil::io::futex_waitv(std::span(words).first(1));
    co_await op;
    co_await first;
#else
    auto op = coil::io::futex_waitv(std::vector<struct ::futex_waitv>(words));
    co_await op;
#endif
}
#endif

#if COIL_CASE == 15 // temporary_name_of_an_attribute
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(std::string name, std::string value) {
#if defined(COIL_EXPECT_OK)
    auto op = coil::io::getxattr("file", name.c_str(), value);
    auto literal = coil::io::getxattr("file", "user.name", value);
    co_await op;
    co_await literal;
#else
    auto op = coil::io::getxattr("file", std::string(name).c_str(), value);
    co_await op;
#endif
}
#endif

#if COIL_CASE == 16 // temporary_file_in_a_stored_sendfile
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    co_await coil::sendfile(peer, co_await coil::fs::file::open("page"));
    const coil::fs::file page = co_await coil::fs::file::open("page");
    auto sent = coil::sendfile(peer, page);
    co_await std::move(sent);
#else
    auto sent = coil::sendfile(peer, co_await coil::fs::file::open("page"));
    co_await std::move(sent);
#endif
}
#endif

#if COIL_CASE == 17 // lines_of_a_temporary_reader
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    coil::buffered_reader reader(peer);
    auto lines = reader.lines();
    co_await lines.next();
#else
    auto lines = coil::buffered_reader(peer).lines();
    co_await lines.next();
#endif
}
#endif

#if COIL_CASE == 18 // temporary_in_a_stored_shared_write
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(coil::shared_writer<coil::net::socket&>& out, std::string text) {
#if defined(COIL_EXPECT_OK)
    auto op = out.write(text);
    co_await out.write(std::string("text"));
    co_await std::move(op);
#else
    auto op = out.write(std::string("text"));
    co_await std::move(op);
#endif
}
#endif
