// Streams and their buffers.

#include <coil/coil.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sys/uio.h>

#if COIL_CASE == 1 // unawaited_received_string
// expect: did you forget to co_await? Only that gives the result
// mistake 2: `std::string text = in.recv();`

coil::task<> caller(coil::channel<std::string>& in) {
#if defined(COIL_EXPECT_OK)
    const std::optional<std::string> text = co_await in.recv();
#else
    const std::string text = in.recv();
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // unawaited_element
// expect: did you forget to co_await? Only that gives the result

coil::task<> caller(coil::channel<std::string>& in) {
#if defined(COIL_EXPECT_OK)
    static_cast<void>((co_await in.recv())->size());
#else
    static_cast<void>(in.recv()->size());
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // unawaited_line
// expect: did you forget to co_await? Only that gives the result

coil::task<> caller(coil::buffered_reader<coil::net::socket&>& r) {
#if defined(COIL_EXPECT_OK)
    const std::optional<std::string_view> line = co_await r.read_until('\n');
    static_cast<void>(line);
#else
    const std::optional<std::string_view> line = r.read_until('\n');
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // unawaited_line_in_a_loop
// expect: did you forget to co_await? Only that gives the result

coil::task<> caller(coil::buffered_reader<coil::net::socket&>& r) {
#if defined(COIL_EXPECT_OK)
    while (auto line = co_await r.read_until('\n')) {
    }
#else
    while (auto line = r.read_until('\n')) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // delimiter_of_two_chars
// expect: the delimiter is one char

coil::task<> caller(coil::buffered_reader<coil::net::socket&>& r) {
#if defined(COIL_EXPECT_OK)
    co_await r.read_until('\n');
#else
    co_await r.read_until("\r\n");
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // for_over_lines
// expect: write while (auto line = co_await lines.next()) instead of for

coil::task<> caller(coil::buffered_reader<coil::net::socket&>& r) {
#if defined(COIL_EXPECT_OK)
    auto lines = r.lines();
    while (auto line = co_await lines.next()) {
    }
#else
    for (auto line : r.lines()) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // awaited_lines
// expect: await its elements: co_await lines.next()

coil::task<> caller(coil::buffered_reader<coil::net::socket&>& r) {
#if defined(COIL_EXPECT_OK)
    auto lines = r.lines();
    co_await lines.next();
#else
    co_await r.lines();
#endif
    co_return;
}
#endif

#if COIL_CASE == 8 // reader_of_a_number
// expect: a buffered_reader reads a byte_source

coil::task<> caller(coil::net::socket& s) {
#if defined(COIL_EXPECT_OK)
    coil::buffered_reader r{s};
#else
    coil::buffered_reader r{3};
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // writer_of_a_number
// expect: a buffered_writer writes to a byte_sink

coil::task<> caller(coil::net::socket& s) {
#if defined(COIL_EXPECT_OK)
    coil::buffered_writer w{s};
#else
    coil::buffered_writer w{3};
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // unawaited_write
// expect: did you forget to co_await? Only that gives the result

coil::task<> caller(coil::buffered_writer<coil::net::socket&>& w) {
#if defined(COIL_EXPECT_OK)
    const int n = co_await w.write("text");
    static_cast<void>(n);
#else
    const int n = w.write("text");
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // write_of_a_pointer_and_a_length
// expect: pass the length as a part of the buffer: {data, n}

coil::task<> caller(coil::buffered_writer<coil::net::socket&>& w, const char* data) {
#if defined(COIL_EXPECT_OK)
    co_await w.write({data, 3});
#else
    co_await w.write(data, 3);
#endif
    co_return;
}
#endif

#if COIL_CASE == 12 // copy_from_text
// expect: copy(from, to) takes two named streams

coil::task<> caller(coil::net::socket& a, coil::net::socket& b) {
#if defined(COIL_EXPECT_OK)
    co_await coil::copy(a, b);
#else
    co_await coil::copy("text", b);
#endif
    co_return;
}
#endif

#if COIL_CASE == 13 // write_all_swapped
// expect: the sink comes first: write_all(sink, data)

coil::task<> caller(coil::net::socket& s) {
#if defined(COIL_EXPECT_OK)
    co_await coil::write_all(s, "text");
#else
    co_await coil::write_all("text", s);
#endif
    co_return;
}
#endif

#if COIL_CASE == 14 // sendfile_to_a_pipe
// expect: sendfile(socket, file) takes a net::socket or, with <coil/tls.hpp>, a tls::stream

coil::task<> caller(coil::net::socket& socket, coil::pipe_end& pipe, coil::fs::file& file) {
#if defined(COIL_EXPECT_OK)
    co_await coil::sendfile(socket, file);
    co_await coil::copy(file, pipe);
#else
    co_await coil::sendfile(pipe, file);
#endif
    co_return;
}
#endif

#if COIL_CASE == 15 // rate_limited_number
// expect: a rate_limited limits a byte_stream, such as a net::socket

coil::task<> caller(coil::net::socket& socket, int descriptor) {
#if defined(COIL_EXPECT_OK)
    coil::rate_limited slow{socket, {.read = {.per_second = 100}}};
    char buf[10];
    co_await slow.read_some(buf);
#else
    coil::rate_limited slow{descriptor, {.read = {.per_second = 100}}};
#endif
    co_return;
}
#endif

#if COIL_CASE == 16 // shared_writer_of_a_number
// expect: a shared_writer writes to a byte_sink

coil::task<> caller(coil::net::socket& s) {
#if defined(COIL_EXPECT_OK)
    coil::shared_writer w{s};
    co_await w.write("text");
#else
    coil::shared_writer w{3};
#endif
    co_return;
}
#endif

#if COIL_CASE == 17 // shared_write_of_a_pointer_and_a_length
// expect: pass the length as a part of the buffer: {data, n}

coil::task<> caller(coil::shared_writer<coil::net::socket&>& w, const char* data) {
#if defined(COIL_EXPECT_OK)
    co_await w.write({data, 3});
#else
    co_await w.write(data, 3);
#endif
    co_return;
}
#endif
