// Operations, buffers, streams and results.

#include <coil/coil.hpp>

#include <string>
#include <string_view>
#include <utility>

#if COIL_CASE == 1 // copied_lease
// expect: deleted

void caller(coil::buffer_lease& lease) {
#if defined(COIL_EXPECT_OK)
    const coil::buffer_lease other(std::move(lease));
#else
    const coil::buffer_lease other(lease);
#endif
}
#endif

#if COIL_CASE == 2 // dropped_stream
// expect: ignoring return value

void caller(int fd, coil::buffer_pool& pool) {
#if defined(COIL_EXPECT_OK)
    const auto incoming = coil::io::recv_multishot(fd, pool);
#else
    coil::io::recv_multishot(fd, pool);
#endif
}
#endif

#if COIL_CASE == 3 // eager_lvalue
// expect: an operation is started once: pass eager() a temporary, or std::move() it

coil::task<> caller(int fd) {
    char buf[16];
    auto op = coil::io::read(fd, buf);
#if defined(COIL_EXPECT_OK)
    auto pending = coil::eager(std::move(op));
#else
    auto pending = coil::eager(op);
#endif
    co_await pending;
}
#endif

#if COIL_CASE == 4 // forgotten_await_next
// expect: did you forget to co_await?

coil::task<> caller(coil::io::accept_stream& connections) {
#if defined(COIL_EXPECT_OK)
    const int fd = co_await connections.next();
    co_await coil::io::close(fd);
#else
    connections.next();
    co_return;
#endif
}
#endif

#if COIL_CASE == 5 // forgotten_await_operation
// expect: did you forget to co_await?
// mistake 2, warning: `io::read(fd, buf);` as a statement

coil::task<> caller(int fd) {
    char buf[16];
#if defined(COIL_EXPECT_OK)
    co_await coil::io::read(fd, buf);
#else
    coil::io::read(fd, buf);
    co_return;
#endif
}
#endif

#if COIL_CASE == 6 // forgotten_await_signal
// expect: did you forget to co_await?

coil::task<> caller(const coil::signal_set& signals) {
#if defined(COIL_EXPECT_OK)
    co_await signals.next();
#else
    signals.next();
    co_return;
#endif
}
#endif

#if COIL_CASE == 7 // forgotten_eager
// expect: dropping an eager operation cancels it

coil::task<> caller(int fd) {
    char buf[16];
#if defined(COIL_EXPECT_OK)
    auto pending = coil::eager(coil::io::read(fd, buf));
    co_await pending;
#else
    coil::eager(coil::io::read(fd, buf));
    co_return;
#endif
}
#endif

#if COIL_CASE == 8 // forgotten_member
// expect: did you forget to co_await?

coil::task<> user(coil::net::socket& s) {
#ifdef COIL_EXPECT_OK
    co_await s.close();
#else
    s.close();
    co_return;
#endif
}
#endif

#if COIL_CASE == 9 // ignored_close
// expect: an error would be lost
// only: clang

coil::task<> caller(coil::fs::file& file) {
#if defined(COIL_EXPECT_OK)
    static_cast<void>(co_await file.close());
#else
    co_await file.close();
#endif
}
#endif

#if COIL_CASE == 10 // ignored_data_sync
// expect: an error would be lost
// only: clang

coil::task<> caller(coil::fs::file& file) {
#if defined(COIL_EXPECT_OK)
    static_cast<void>(co_await file.data_sync());
#else
    co_await file.data_sync();
#endif
}
#endif

#if COIL_CASE == 11 // ignored_resize
// expect: an error would be lost
// only: clang

coil::task<> caller(coil::fs::file& file) {
#if defined(COIL_EXPECT_OK)
    static_cast<void>(co_await file.resize(1));
#else
    co_await file.resize(1);
#endif
}
#endif

#if COIL_CASE == 12 // ignored_stream_result
// expect: ignoring return value
// only: clang

// An accepted descriptor that is not used would leak.
coil::task<> caller(coil::io::accept_stream& connections) {
#if defined(COIL_EXPECT_OK)
    const int fd = co_await connections.next();
    co_await coil::io::close(fd);
#else
    co_await connections.next();
#endif
}
#endif

#if COIL_CASE == 13 // ignored_sync
// expect: an error would be lost
// only: clang

// Ignoring an error of fsync(2) loses data silently.
coil::task<> caller(coil::fs::file& file) {
#if defined(COIL_EXPECT_OK)
    (co_await file.data_sync()).value();
    (co_await file.resize(1)).value();
    (co_await file.close()).value();
    if (const int r = co_await file.sync(); r < 0) {
        co_return;
    }
#else
    co_await file.sync();
#endif
}
#endif

#if COIL_CASE == 14 // length_as_member_flags
// expect: the argument after the buffer is the flags; the length is part of the buffer
// mistake 21: `peer.send(buf, sizeof buf)`

coil::task<> caller(coil::net::socket& peer, std::size_t n) {
    char buf[16] = {};
#if defined(COIL_EXPECT_OK)
    co_await peer.recv({buf, n});
#else
    co_await peer.recv(buf, n);
#endif
}
#endif

#if COIL_CASE == 15 // length_as_offset
// expect: the argument after the buffer is the offset; the length is part of the buffer
// only: clang
// mistake 21, warning: `io::read(fd, buf, sizeof buf)`

coil::task<> caller(int fd) {
    char buf[16] = {};
#if defined(COIL_EXPECT_OK)
    co_await coil::io::read(fd, {buf, sizeof buf});
#else
    co_await coil::io::read(fd, buf, sizeof buf);
#endif
}
#endif

#if COIL_CASE == 16 // length_as_recv_flags
// expect: the argument after the buffer is the flags; the length is part of the buffer

coil::task<> caller(int fd, std::size_t n) {
    char buf[16] = {};
#if defined(COIL_EXPECT_OK)
    co_await coil::io::recv(fd, {buf, n});
#else
    co_await coil::io::recv(fd, buf, n);
#endif
}
#endif

#if COIL_CASE == 17 // length_as_send_flags
// expect: the argument after the buffer is the flags; the length is part of the buffer

coil::task<> caller(int fd, std::size_t n) {
    char buf[16] = {};
#if defined(COIL_EXPECT_OK)
    co_await coil::io::send(fd, {buf, n});
#else
    co_await coil::io::send(fd, buf, n);
#endif
}
#endif

#if COIL_CASE == 18 // length_as_send_zc_flags
// expect: the argument after the buffer is the flags; the length is part of the buffer

coil::task<> caller(int fd, std::size_t n) {
    char buf[16] = {};
#if defined(COIL_EXPECT_OK)
    co_await coil::io::send_zc(fd, {buf, n}, 0);
#else
    co_await coil::io::send_zc(fd, buf, n, 0);
#endif
}
#endif

#if COIL_CASE == 19 // length_as_write_offset
// expect: the argument after the buffer is the offset; the length is part of the buffer
// only: clang

coil::task<> caller(int fd) {
    char buf[16] = {};
#if defined(COIL_EXPECT_OK)
    co_await coil::io::write(fd, {buf, sizeof buf});
#else
    co_await coil::io::write(fd, buf, sizeof buf);
#endif
}
#endif

#if COIL_CASE == 20 // modified_lvalue
// expect: an operation is awaited once: pass a temporary, or std::move() the operation

coil::task<> caller(int fd) {
    auto sync = coil::io::fsync(fd);
#if defined(COIL_EXPECT_OK)
    co_await coil::io::force_async(std::move(sync));
#else
    co_await coil::io::force_async(sync);
#endif
}
#endif

#if COIL_CASE == 21 // moved_eager
// expect: deleted

coil::task<> caller(int fd) {
    char buf[16];
    auto pending = coil::eager(coil::io::read(fd, buf));
#if defined(COIL_EXPECT_OK)
    auto& same = pending;
#else
    auto same = std::move(pending);
#endif
    co_await same;
}
#endif

#if COIL_CASE == 22 // moved_stream
// expect: deleted

// The kernel identifies a stream by its address.
void caller(coil::io::recv_stream& incoming) {
#if defined(COIL_EXPECT_OK)
    coil::io::recv_stream& same = incoming;
#else
    coil::io::recv_stream same(std::move(incoming));
#endif
    static_cast<void>(same);
}
#endif

#if COIL_CASE == 23 // receive_into_const
// expect: the call writes to this buffer
// only: clang

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    char buf[4];
#else
    const char buf[4] = {};
#endif
    co_await peer.recv(buf);
}
#endif

#if COIL_CASE == 24 // stored_path
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(const std::string& name) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::open(name + ".tmp", 0);
    auto opens = coil::io::open(name, 0); // lives as long as the operation
    const coil::io_result fd = co_await opens;
    co_await coil::timeout(coil::io::open(name + "x", 0), std::chrono::seconds(1));
    const int linked = co_await (coil::io::unlink(name + "y") && coil::io::close(fd));
    static_cast<void>(linked);
#else
    auto opens = coil::io::open(name + ".tmp", 0);
    co_await opens;
#endif
}
#endif

#if COIL_CASE == 25 // stored_path_text
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(const std::string& name) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::unlink((name + ".tmp").c_str());
    auto opens = coil::io::open(name, 0); // lives as long as the operation
    const coil::io_result fd = co_await opens;
    co_await coil::timeout(coil::io::open(name + "x", 0), std::chrono::seconds(1));
    const int linked = co_await (coil::io::unlink(name + "y") && coil::io::close(fd));
    static_cast<void>(linked);
#else
    auto unlinks = coil::io::unlink((name + ".tmp").c_str());
    co_await unlinks;
#endif
}
#endif

#if COIL_CASE == 26 // stored_second_path
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(const std::string& name) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::rename(name, std::filesystem::path(name) / "x");
    auto opens = coil::io::open(name, 0); // lives as long as the operation
    const coil::io_result fd = co_await opens;
    co_await coil::timeout(coil::io::open(name + "x", 0), std::chrono::seconds(1));
    const int linked = co_await (coil::io::unlink(name + "y") && coil::io::close(fd));
    static_cast<void>(linked);
#else
    auto renames = coil::io::rename(name, std::filesystem::path(name) / "x");
    co_await renames;
#endif
}
#endif

#if COIL_CASE == 27 // operation_used_as_its_result
// expect: did you forget to co_await? Write int n = co_await io::read(fd, buf)
// mistake 2: `int n = io::read(fd, buf);`

coil::task<int> caller(int fd) {
    char buf[8];
#if defined(COIL_EXPECT_OK)
    const int n = co_await coil::io::read(fd, buf);
#else
    const int n = coil::io::read(fd, buf);
#endif
    co_return n;
}
#endif

#if COIL_CASE == 28 // operation_compared
// expect: did you forget to co_await? Write int n = co_await io::read(fd, buf)
// mistake 2: `if (peer.recv(buf) > 0)`

coil::task<> caller(coil::net::socket peer) {
    char buf[8];
#if defined(COIL_EXPECT_OK)
    while (co_await peer.recv(buf) > 0) {
    }
#else
    while (peer.recv(buf) > 0) {
    }
    co_return;
#endif
}
#endif

#if COIL_CASE == 29 // stored_temporary_buffer
// expect: will be destroyed at the end of the full-expression
// only: clang

coil::task<> caller(int fd, std::string text) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::write(fd, text + "\n");
    const coil::const_buffer tail = std::string_view(text).substr(1);
    auto writes = coil::io::write(fd, tail);
    co_await writes;
#else
    auto writes = coil::io::write(fd, text + "\n");
    co_await writes;
#endif
}
#endif

#if COIL_CASE == 30 // stored_operation
// expect: unused variable
// mistake 2, warning: `auto op = io::write(fd, x);` that is not used

coil::task<> caller(int fd) {
    auto writes = coil::io::write(fd, "x");
#if defined(COIL_EXPECT_OK)
    co_await writes;
#endif
    co_return;
}
#endif

#if COIL_CASE == 31 // pointer_and_length
// expect: pass the length as a part of the buffer
// mistake 21: `io::recv(fd, data, length)`

coil::task<> caller(int fd, char* data, int length) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::recv(fd, {data, length});
#else
    co_await coil::io::recv(fd, data, length);
#endif
}
#endif

#if COIL_CASE == 32 // pointer_and_length_of_a_socket
// expect: pass the length as a part of the buffer
// mistake 21: `peer.send(data, length)`

coil::task<> caller(coil::net::socket peer, const char* data, int length) {
#if defined(COIL_EXPECT_OK)
    co_await peer.send({data, length});
#else
    co_await peer.send(data, length);
#endif
}
#endif

#if COIL_CASE == 33 // array_and_length
// expect: pass the length as a part of the buffer
// mistake 21: `io::recv(fd, buf, sizeof buf, 0)`

coil::task<> caller(int fd) {
    char buf[64];
#if defined(COIL_EXPECT_OK)
    co_await coil::io::recv(fd, buf, 0);
#else
    co_await coil::io::recv(fd, buf, sizeof buf, 0);
#endif
}
#endif

#if COIL_CASE == 34 // array_and_length_of_send
// expect: pass the length as a part of the buffer

coil::task<> caller(int fd) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::send(fd, {"hello", 3}, MSG_MORE);
#else
    co_await coil::io::send(fd, "hello", 3, MSG_MORE);
#endif
}
#endif

#if COIL_CASE == 35 // array_and_length_of_send_all
// expect: the length is part of the buffer: {data, n}
// mistake 21: `peer.send_all(buf, n)`

coil::task<> caller(coil::net::socket peer, int n) {
    char buf[64] = {};
#if defined(COIL_EXPECT_OK)
    co_await peer.send_all({buf, n});
#else
    co_await peer.send_all(buf, n);
#endif
}
#endif

#if COIL_CASE == 36 // array_and_length_of_recv_all
// expect: the length is part of the buffer: {data, n}

coil::task<> caller(coil::net::socket peer) {
    char buf[64];
#if defined(COIL_EXPECT_OK)
    co_await peer.recv_all(buf);
#else
    co_await peer.recv_all(buf, sizeof buf);
#endif
}
#endif
