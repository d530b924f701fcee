// Calls that Linux refuses, or that have no effect, on each type of descriptor.

#include "conformance/support.hpp"

#include <linux/falloc.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace conformance {

namespace {

class Refusals : public Conformance {};
COIL_ON_ALL_BACKENDS(Refusals);

task<int> opened(std::string path, int flags, ::mode_t mode = 0) {
    const int fd = co_await io::open(path, flags | O_CLOEXEC, mode);
    EXPECT_GE(fd, 0) << path;
    co_return fd;
}

/// A descriptor opened with O_PATH refers to a file without access to its content.
task<> path_descriptors(std::string dir) {
    for (const std::string& name : {dir, dir + "f"}) {
        co_await gives(io::close(co_await opened(dir + "f", O_CREAT | O_WRONLY, 0600)), 0);
        const int fd = co_await opened(name, O_PATH);
        const address to(1);
        char byte = 0;
        int value = 0;
        ::socklen_t length = sizeof value;
        co_await gives(io::ftruncate(fd, 1), -EBADF);
        co_await gives(io::ftruncate(fd, -1), -EBADF);
        co_await gives(io::poll(fd, POLLIN), -EBADF);
        co_await gives(io::accept(fd), -EBADF);
        co_await gives(io::recv(fd, {&byte, 1}), -EBADF);
        co_await gives(io::send(fd, {&byte, 1}), -EBADF);
        co_await gives(io::shutdown(fd, SHUT_RD), -EBADF);
        co_await gives(io::listen(fd, 1), -EBADF);
        co_await gives(io::bind(fd, to.get(), to.length), -EBADF);
        co_await gives(io::connect(fd, to.get(), to.length), -EBADF);
        co_await gives(io::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, length), -EBADF);
        co_await gives(io::getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length), -EBADF);
        const ends p = co_await piped();
        co_await gives(io::write(p.b, "abc"), 3);
        co_await gives(io::tee(p.a, fd, 3, 0), -EBADF);
        co_await gives(io::splice(p.a, nullptr, fd, nullptr, 3, 0), -EBADF);
        co_await closed(p);
        co_await gives(io::close(fd), 0);
    }
}
TEST_P(Refusals, OfAPathDescriptor) { run(path_descriptors(directory())); }

/// read(2) of no bytes neither waits nor takes a datagram.
task<> nothing_is_read() {
    char buf[8];
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        const ends s = paired(type);
        co_await gives(io::read(s.a, {buf, 0}), 0);
        co_await gives(io::send(s.b, "abc"), 3);
        co_await gives(io::read(s.a, {buf, 0}), 0);
        co_await gives(io::recv(s.a, buf), 3, "the datagram is still there");
        co_await closed(s);
    }
}
TEST_P(Refusals, NothingIsRead) { run(nothing_is_read()); }

task<> calls_on_files(int fd, int allocated, int ranged, int advised) {
    char byte = 0;
    co_await gives(io::fallocate(fd, 0, 0, 3), allocated);
    co_await gives(io::sync_file_range(fd, 0, 1, 0), ranged);
    co_await gives(io::fadvise(fd, 0, 1, POSIX_FADV_NORMAL), advised);
    co_await gives(io::ftruncate(fd, 3), -EINVAL);
    co_await gives(io::fsync(fd), -EINVAL);
    co_await gives(io::fgetxattr(fd, "user.x", {&byte, 1}), -ENODATA);
    co_await gives(io::fsetxattr(fd, "user.x", {&byte, 1}, 0), -EPERM);
}

task<> files_only() {
    const ends s = paired(SOCK_STREAM);
    co_await calls_on_files(s.a, -ENODEV, -ESPIPE, 0);
    co_await closed(s);
    const ends p = co_await piped();
    co_await calls_on_files(p.a, -EBADF, -ESPIPE, -ESPIPE);
    co_await calls_on_files(p.b, -ESPIPE, -ESPIPE, -ESPIPE);
    co_await closed(p);
}
TEST_P(Refusals, OfCallsOnFilesOnly) { run(files_only()); }

task<int> linked(int fd, std::string path) {
    const int result = co_await io::linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH);
    co_return result;
}

/// A file whose last name was removed gets no new one, and neither does one that was opened with
/// O_TMPFILE and O_EXCL.
task<> removed_files(std::string dir) {
    const int removed = co_await opened(dir + "f", O_CREAT | O_RDWR, 0600);
    co_await gives(io::unlink(dir + "f"), 0);
    co_await gives(linked(removed, dir + "again"), -ENOENT);
    co_await gives(io::close(removed), 0);

    const int exclusive = co_await opened(dir, O_TMPFILE | O_EXCL | O_RDWR, 0600);
    co_await gives(linked(exclusive, dir + "again"), -ENOENT);
    co_await gives(io::close(exclusive), 0);

    const int nameless = co_await opened(dir, O_TMPFILE | O_RDWR, 0600);
    co_await gives(linked(nameless, dir + "again"), 0);
    co_await gives(io::unlink(dir + "again"), 0);
    co_await gives(linked(nameless, dir + "again"), -ENOENT, "it has had a name");
    co_await gives(io::close(nameless), 0);
}
TEST_P(Refusals, ARemovedFileGetsNoName) { run(removed_files(directory())); }

task<> on_disk(std::string dir) {
    co_await gives(io::symlink(std::string(4096, 'x'), dir + "l"), -ENAMETOOLONG);
    struct ::statx status{};
    co_await gives(io::statx(AT_FDCWD, dir, AT_STATX_SYNC_TYPE, STATX_BASIC_STATS, &status),
                   -EINVAL);
    const ends p = co_await piped();
    co_await gives(io::write(p.b, "abc"), 3);
    const int appends = co_await opened(dir + "f", O_CREAT | O_WRONLY | O_APPEND, 0600);
    co_await gives(io::splice(p.a, nullptr, appends, nullptr, 3, 0), -EINVAL, "O_APPEND");
    const int top = co_await opened(dir, O_RDONLY | O_DIRECTORY);
    co_await gives(io::splice(top, nullptr, p.b, nullptr, 3, 0), -EINVAL, "a directory");
    co_await gives(io::tee(p.a, top, 3, 0), -EBADF, "not open for writing");
    char byte = 0;
    co_await gives(io::read(appends, {&byte, 0}), -EBADF);
    co_await gives(io::read(appends, {&byte, 0}, 0), -EBADF);
    co_await gives(io::read(top, {&byte, 0}), 0);
    co_await gives(io::read(top, {&byte, 1}), -EISDIR);
    co_await gives(io::close(top), 0);
    co_await gives(io::close(appends), 0);
    co_await closed(p);
}
TEST_P(Refusals, OnADisk) { run(on_disk(directory())); }

template <class Address>
::sockaddr* general(Address& a) {
    return reinterpret_cast<::sockaddr*>(&a);
}

template <class Address>
Address of_family(::sa_family_t family) {
    Address a{};
    general(a)->sa_family = family;
    return a;
}

task<> addresses() {
    auto v4 = of_family<::sockaddr_in>(AF_INET);
    auto v6 = of_family<::sockaddr_in6>(AF_INET6);
    auto local = of_family<::sockaddr_un>(AF_UNIX);
    auto odd = of_family<::sockaddr_storage>(77);
    auto none = of_family<::sockaddr_storage>(AF_UNSPEC);
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        int fd = co_await io::socket(AF_INET, type | SOCK_CLOEXEC);
        co_await gives(io::bind(fd, general(v6), sizeof v6), -EAFNOSUPPORT);
        co_await gives(io::bind(fd, general(local), 7), -EINVAL, "too short");
        co_await gives(io::bind(fd, general(odd), 16), -EAFNOSUPPORT);
        co_await gives(io::bind(fd, general(none), 16), 0, "INADDR_ANY without a family");
        co_await gives(io::connect(fd, general(v6), sizeof v6), -EAFNOSUPPORT);
        co_await gives(io::connect(fd, general(local), 7), -EINVAL, "too short");
        co_await gives(io::connect(fd, general(v4), 200), -EINVAL, "too long");
        co_await gives(io::close(fd), 0);

        fd = co_await io::socket(AF_UNIX, type | SOCK_CLOEXEC);
        for (::sockaddr* const other : {general(v4), general(odd)}) {
            co_await gives(io::bind(fd, other, 16), -EINVAL);
            co_await gives(io::connect(fd, other, 16), -EINVAL);
        }
        co_await gives(io::bind(fd, general(none), 16), -EINVAL);
        co_await gives(io::connect(fd, general(none), 16), type == SOCK_STREAM ? -EINVAL : 0);
        co_await gives(io::close(fd), 0);
    }
}
TEST_P(Refusals, OfAddresses) { run(addresses()); }

task<> pipe_flags() {
    int fds[2] = {-1, -1};
    co_await gives(io::pipe2(fds, O_APPEND), -EINVAL);
    const ends p = co_await piped();
    co_await gives(io::close(p.a), 0);
    co_await gives(io::write(p.b, coil::const_buffer("", 0)), 0, "nothing is written");
    co_await gives(io::write(p.b, "x"), -EPIPE);
    co_await gives(io::close(p.b), 0);
}
TEST_P(Refusals, OfPipes) { run(pipe_flags()); }

/// Calls with a result, on a socket that is known not to be ready.
task<> after_a_wait(int type) {
    const ends s = paired(type);
    char buf[8];
    co_await gives(coil::timeout(io::recv(s.a, buf), 1ms), -ETIMEDOUT);
    ::iovec one{buf, sizeof buf};
    co_await gives(coil::timeout(io::readv(s.a, {&one, 0}), 1s), 0);
    co_await gives(coil::timeout(io::read(s.a, {buf, 0}), 1s), 0);
    co_await gives(coil::timeout(io::read(s.a, buf, 7), 1s), -ESPIPE);
    co_await gives(coil::timeout(io::accept(s.a), 1s), type == SOCK_STREAM ? -EINVAL : -EOPNOTSUPP);
    co_await closed(s);
}
TEST_P(Refusals, AfterAWait) { run(after_a_wait(SOCK_STREAM)); }
TEST_P(Refusals, AfterAWaitForADatagram) { run(after_a_wait(SOCK_DGRAM)); }

/// Datagrams end for a socket that was shut down, whether or not it waits.
task<> shut_datagrams() {
    const ends s = paired(SOCK_DGRAM);
    char buf[8];
    auto waiting = coil::eager(coil::timeout(io::recv(s.a, buf), 1s));
    co_await coil::yield();
    co_await gives(io::shutdown(s.a, SHUT_RD), 0);
    const int result = co_await waiting;
    EXPECT_EQ(result, 0);
    ::iovec one{buf, sizeof buf};
    ::msghdr message{};
    message.msg_iov = &one;
    message.msg_iovlen = 1;
    co_await gives(coil::timeout(io::recv(s.a, buf), 1s), 0);
    co_await gives(coil::timeout(io::recvmsg(s.a, &message), 1s), 0);
    co_await gives(coil::timeout(io::read(s.a, buf), 1s), 0);
    co_await gives(io::recv(s.a, buf, MSG_DONTWAIT), -EAGAIN);
    co_await gives(io::shutdown(s.b, SHUT_RD), 0);
    co_await gives(coil::timeout(io::read(s.b, buf), 1s), 0, "before anything has waited");
    co_await closed(s);
}
TEST_P(Refusals, OfDatagramsAfterTheEnd) { run(shut_datagrams()); }

task<> negative_sizes(std::string dir) {
    char byte = 0;
    const std::size_t huge = ~std::size_t{0};
    ::iovec parts[] = {{&byte, 1}, {&byte, huge}};
    ::msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ends s = paired(SOCK_STREAM);
    const int file = co_await opened(dir + "f", O_CREAT | O_RDWR, 0600);
    for (const int fd : {s.a, file}) {
        co_await gives(coil::timeout(io::readv(fd, {parts, 2}), 1s), -EINVAL);
        co_await gives(io::writev(fd, {parts, 2}), -EINVAL);
        co_await gives(coil::timeout(io::readv(fd, {parts + 1, 1}), 1s), -EINVAL);
    }
    co_await gives(coil::timeout(io::recvmsg(s.a, &message), 1s), -EINVAL);
    co_await gives(io::sendmsg(s.a, &message), -EINVAL);
    co_await gives(io::close(file), 0);
    co_await closed(s);
}
TEST_P(Refusals, OfNegativeSizes) { run(negative_sizes(directory())); }

task<> direct_directory(std::string dir) {
    co_await gives(io::open(dir, O_RDONLY | O_DIRECT), -EINVAL);
    co_await gives(io::open(dir, O_WRONLY | O_DIRECT), -EISDIR);
    co_await gives(io::close(co_await opened(dir, O_PATH | O_DIRECT)), 0);
}
TEST_P(Refusals, OfADirectoryWithODirect) { run(direct_directory(directory())); }

/// An address of another machine is refused before a second bind(2) is.
task<> second_bind() {
    const address any;
    address other;
    other.in.sin_addr.s_addr = htonl(0x01020304);
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        const int fd = co_await io::socket(AF_INET, type | SOCK_CLOEXEC);
        co_await gives(io::bind(fd, any.get(), any.length), 0);
        co_await gives(io::bind(fd, any.get(), any.length), -EINVAL);
        co_await gives(io::bind(fd, other.get(), other.length), -EADDRNOTAVAIL);
        co_await gives(io::close(fd), 0);
    }
}
TEST_P(Refusals, OfASecondBind) { run(second_bind()); }

} // namespace

} // namespace conformance
