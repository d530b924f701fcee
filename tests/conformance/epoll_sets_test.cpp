// epoll(7) on every backend: triggers, order, nesting, closed descriptors, errors.

#include "conformance/support.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include <sys/epoll.h>

namespace conformance {

namespace {

class EpollSets : public Conformance {};
COIL_ON_ALL_BACKENDS(EpollSets);

/// EPOLL_CTL_ADD and _MOD, with the descriptor as data.
task<> set_events(int set, int op, int fd, std::uint32_t events, int wanted = 0,
                  std::source_location at = std::source_location::current()) {
    ::epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    co_await gives(io::epoll_ctl(set, op, fd, &event), wanted, "epoll_ctl", at);
}
task<> add(int set, int fd, std::uint32_t events, int wanted = 0,
           std::source_location at = std::source_location::current()) {
    co_await set_events(set, EPOLL_CTL_ADD, fd, events, wanted, at);
}

struct report {
    int fd;
    std::uint32_t events;
    friend bool operator==(const report&, const report&) = default;
    friend std::ostream& operator<<(std::ostream& out, const report& r) {
        return out << "{#" << r.fd << ", 0x" << std::hex << r.events << std::dec << '}';
    }
};
using reports = std::vector<report>;

/// (GCC does not support a list in braces within an awaited expression.)
template <class... Reports>
reports these(Reports... all) {
    return reports{all...};
}

/// What the set reports within 2 ms.
task<reports> reported(int set, std::size_t room = 8) {
    std::vector<::epoll_event> events(room);
    const int found = co_await io::epoll_wait(set, events, 2);
    EXPECT_GE(found, 0);
    reports all;
    for (int i = 0; i < found; ++i) {
        const auto& one = events[static_cast<std::size_t>(i)];
        all.push_back({one.data.fd, one.events});
    }
    co_return all;
}

task<> sees(int set, reports wanted, const char* why = "",
            std::source_location at = std::source_location::current()) {
    const reports got = co_await reported(set);
    if (got != wanted) {
        ADD_FAILURE_AT(at.file_name(), static_cast<int>(at.line()))
            << testing::PrintToString(got) << ", not " << testing::PrintToString(wanted) << ": "
            << why;
    }
}

task<> takes(int fd, int count) {
    std::array<char, 64> buffer{};
    co_await gives(io::read(fd, {buffer.data(), static_cast<std::size_t>(count)}), count);
}

task<> levels() {
    const int set = io::epoll_create1();
    const ends p = co_await piped();
    const ends q = co_await piped();
    co_await add(set, p.a, EPOLLIN);
    co_await add(set, q.a, EPOLLIN);
    co_await sees(set, these(), "nothing is ready");
    co_await gives(io::write(q.b, "xyz"), 3);
    co_await gives(io::write(p.b, "xyz"), 3);
    co_await sees(set, these(report{q.a, EPOLLIN}, report{p.a, EPOLLIN}),
                  "in the order of arrival");
    co_await takes(q.a, 1);
    co_await sees(set, these(report{q.a, EPOLLIN}, report{p.a, EPOLLIN}),
                  "as long as there is data");
    for (const int fd : {q.a, p.a, q.a}) {
        const reports one = co_await reported(set, 1);
        EXPECT_EQ(one, (reports{{fd, EPOLLIN}})) << "little room: each in its turn";
    }
    co_await takes(q.a, 2);
    co_await sees(set, these(report{p.a, EPOLLIN}));
    co_await gives(io::close(p.b), 0);
    co_await sees(set, these(report{p.a, EPOLLIN | EPOLLHUP}), "EPOLLHUP is always reported");
    co_await gives(io::close(q.b), 0);
    co_await sees(set, these(report{p.a, EPOLLIN | EPOLLHUP}, report{q.a, EPOLLHUP}));
    for (const int fd : {p.a, q.a, set}) {
        co_await gives(io::close(fd), 0);
    }
}
TEST_P(EpollSets, Levels) { run(levels()); }

task<> edges() {
    const int set = io::epoll_create1();
    const ends p = co_await piped();
    co_await gives(io::write(p.b, "abc"), 3);
    co_await add(set, p.a, EPOLLIN | EPOLLET);
    co_await sees(set, these(report{p.a, EPOLLIN}), "ready when it was added");
    co_await sees(set, these(), "no change since");
    co_await takes(p.a, 1);
    co_await sees(set, these(), "taking data away is no edge");
    co_await gives(io::write(p.b, "d"), 1);
    co_await gives(io::write(p.b, "e"), 1);
    co_await sees(set, these(report{p.a, EPOLLIN}), "more data is one");
    co_await sees(set, these());
    co_await gives(io::write(p.b, "f"), 1);
    co_await takes(p.a, 5);
    co_await sees(set, these(), "it is not ready any more");
    co_await set_events(set, EPOLL_CTL_MOD, p.a, EPOLLIN | EPOLLET);
    co_await gives(io::write(p.b, "g"), 1);
    co_await sees(set, these(report{p.a, EPOLLIN}));
    co_await set_events(set, EPOLL_CTL_MOD, p.a, EPOLLIN | EPOLLET);
    co_await sees(set, these(report{p.a, EPOLLIN}), "EPOLL_CTL_MOD looks anew");
    co_await gives(io::close(p.b), 0);
    co_await sees(set, these(report{p.a, EPOLLIN | EPOLLHUP}));
    co_await sees(set, these());
    co_await gives(io::close(p.a), 0);
    co_await gives(io::close(set), 0);
}
TEST_P(EpollSets, Edges) { run(edges()); }

task<> space_in_a_pipe() {
    const int set = io::epoll_create1();
    const ends p = co_await piped();
    co_await add(set, p.b, EPOLLOUT | EPOLLET);
    co_await sees(set, these(report{p.b, EPOLLOUT}));
    const std::vector<char> page(4096, 'x');
    for (int i = 0; i < 16; ++i) {
        co_await gives(io::write(p.b, {page.data(), page.size()}), 4096);
    }
    co_await sees(set, these(), "full");
    std::vector<char> buffer(4096);
    co_await gives(io::read(p.a, buffer), 4096);
    co_await sees(set, these(report{p.b, EPOLLOUT}), "there is space again");
    co_await gives(io::read(p.a, buffer), 4096);
    co_await sees(set, these(), "there was space before");
    co_await gives(io::close(p.a), 0);
    co_await sees(set, these(report{p.b, EPOLLOUT | EPOLLERR}));
    co_await gives(io::close(p.b), 0);
    co_await gives(io::close(set), 0);
}
TEST_P(EpollSets, SpaceInAPipe) { run(space_in_a_pipe()); }

task<> once() {
    const int set = io::epoll_create1();
    const ends p = co_await piped();
    co_await add(set, p.a, EPOLLIN | EPOLLONESHOT);
    co_await gives(io::write(p.b, "a"), 1);
    co_await sees(set, these(report{p.a, EPOLLIN}));
    co_await gives(io::write(p.b, "b"), 1);
    co_await sees(set, these(), "disabled");
    co_await add(set, p.a, EPOLLIN, -EEXIST);
    co_await set_events(set, EPOLL_CTL_MOD, p.a, EPOLLIN | EPOLLONESHOT);
    co_await sees(set, these(report{p.a, EPOLLIN}));
    co_await gives(io::close(p.b), 0);
    co_await sees(set, these(), "EPOLLHUP is disabled, too");
    co_await gives(io::close(p.a), 0);
    co_await gives(io::close(set), 0);
}
TEST_P(EpollSets, Once) { run(once()); }

task<> a_wait_in_progress() {
    const int set = io::epoll_create1();
    const ends p = co_await piped();
    const ends q = co_await piped();
    co_await gives(io::write(p.b, "a"), 1);
    co_await gives(io::write(q.b, "a"), 1);
    std::array<::epoll_event, 4> events{};
    auto first = coil::eager(io::epoll_wait(set, events));
    co_await coil::yield();
    co_await add(set, p.a, EPOLLIN | EPOLLET); // ready already
    const int first_found = co_await first;
    EXPECT_EQ(first_found, 1);
    EXPECT_EQ(events[0].data.fd + 0, p.a);
    co_await add(set, q.a, 0);
    auto second = coil::eager(io::epoll_wait(set, events));
    co_await coil::yield();
    co_await set_events(set, EPOLL_CTL_MOD, q.a, EPOLLIN | EPOLLET);
    const int second_found = co_await second;
    EXPECT_EQ(second_found, 1);
    EXPECT_EQ(events[0].data.fd + 0, q.a);
    // A cancelled wait takes no event with it.
    co_await gives(coil::timeout(io::epoll_wait(set, events), 2ms), -ETIMEDOUT);
    co_await gives(io::write(p.b, "b"), 1);
    co_await sees(set, these(report{p.a, EPOLLIN}));
    const std::int64_t begin = now_ns();
    co_await gives(io::epoll_wait(set, events, 20), 0);
    EXPECT_GE(now_ns() - begin, 20'000'000);
    co_await closed(p);
    co_await closed(q);
    co_await gives(io::close(set), 0);
}
TEST_P(EpollSets, AWaitInProgress) { run(a_wait_in_progress()); }

task<> two_waits() {
    const int set = io::epoll_create1();
    const ends p = co_await piped();
    co_await add(set, p.a, EPOLLIN | EPOLLET);
    std::array<::epoll_event, 4> one{};
    std::array<::epoll_event, 4> two{};
    auto first = coil::eager(io::epoll_wait(set, one, 50));
    auto second = coil::eager(io::epoll_wait(set, two, 50));
    co_await coil::yield();
    co_await gives(io::write(p.b, "a"), 1);
    const int in_first = co_await first;
    const int in_second = co_await second;
    EXPECT_EQ(in_first + in_second, 1) << "one edge is reported once";
    co_await closed(p);
    co_await gives(io::close(set), 0);
}
TEST_P(EpollSets, TwoWaits) { run(two_waits()); }

task<> closed_descriptors() {
    const int set = io::epoll_create1();
    const ends p = co_await piped();
    co_await add(set, p.a, EPOLLIN);
    co_await gives(io::write(p.b, "a"), 1);
    co_await gives(io::close(p.a), 0);
    co_await sees(set, these(), "a closed file is not watched");
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_DEL, p.a, nullptr), -EBADF);
    const ends q = co_await piped(); // reuses the number, unless another thread was faster
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_DEL, q.a, nullptr), -ENOENT);
    co_await add(set, q.a, EPOLLIN);
    co_await gives(io::write(q.b, "a"), 1);
    co_await sees(set, these(report{q.a, EPOLLIN}));
    co_await gives(io::close(set), 0);
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_DEL, q.a, nullptr), -EBADF);
    co_await takes(q.a, 1); // it outlives the set
    co_await closed(q);
    co_await gives(io::close(p.b), 0);
}
TEST_P(EpollSets, ClosedDescriptors) { run(closed_descriptors()); }

task<> nested() {
    const int outer = io::epoll_create1();
    const int inner = io::epoll_create1();
    const ends p = co_await piped();
    co_await add(inner, p.a, EPOLLIN);
    co_await add(outer, inner, EPOLLIN);
    co_await gives(coil::timeout(io::poll(inner, POLLIN), 2ms), -ETIMEDOUT);
    auto polling = coil::eager(io::poll(inner, POLLIN));
    auto outside = coil::eager(io::poll(outer, POLLIN));
    co_await coil::yield();
    co_await gives(io::write(p.b, "a"), 1);
    const int polling_found = co_await polling;
    EXPECT_EQ(polling_found, POLLIN);
    const int outside_found = co_await outside;
    EXPECT_EQ(outside_found, POLLIN);
    co_await sees(outer, these(report{inner, EPOLLIN}));
    co_await sees(inner, these(report{p.a, EPOLLIN}));
    co_await takes(p.a, 1);
    co_await sees(outer, these());
    co_await gives(io::write(p.b, "a"), 1);
    co_await gives(io::epoll_ctl(inner, EPOLL_CTL_DEL, p.a, nullptr), 0);
    co_await sees(outer, these(), "the inner set is empty");
    co_await add(inner, p.a, EPOLLIN);
    co_await sees(outer, these(report{inner, EPOLLIN}));
    co_await gives(io::close(inner), 0);
    co_await sees(outer, these());
    co_await closed(p);
    co_await gives(io::close(outer), 0);
}
TEST_P(EpollSets, Nested) { run(nested()); }

task<> exclusive() {
    constexpr std::uint32_t only = EPOLLEXCLUSIVE;
    const int one = io::epoll_create1();
    const int two = io::epoll_create1();
    const ends p = co_await piped();
    co_await add(one, two, EPOLLIN | only, -EINVAL);
    co_await add(one, p.a, EPOLLIN | EPOLLONESHOT | only, -EINVAL);
    co_await add(one, p.a, EPOLLIN | EPOLLRDHUP | only, -EINVAL);
    co_await add(one, p.a, EPOLLIN | EPOLLET | only);
    co_await set_events(one, EPOLL_CTL_MOD, p.a, EPOLLIN | only, -EINVAL);
    co_await set_events(one, EPOLL_CTL_MOD, p.a, EPOLLIN, -EINVAL);
    co_await gives(io::write(p.b, "a"), 1);
    co_await sees(one, these(report{p.a, EPOLLIN}));
    co_await gives(io::epoll_ctl(one, EPOLL_CTL_DEL, p.a, nullptr), 0);
    co_await closed(p);
    co_await closed({one, two});
}
TEST_P(EpollSets, Exclusive) { run(exclusive()); }

task<> errors(std::string directory) {
    EXPECT_EQ(io::epoll_create1(1), -EINVAL);
    const int set = io::epoll_create1();
    const int other = io::epoll_create1(0);
    const ends p = co_await piped();
    const int file = co_await io::openat(AT_FDCWD, (directory + "file").c_str(),
                                         O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    EXPECT_GE(file, 0);
    co_await add(set, file, EPOLLIN, -EPERM);
    co_await add(set, set, EPOLLIN, -EINVAL);
    co_await add(p.a, p.b, EPOLLIN, -EINVAL);
    co_await add(p.a, file, EPOLLIN, -EPERM);
    co_await add(set, -1, EPOLLIN, -EBADF);
    co_await add(-1, p.a, EPOLLIN, -EBADF);
    co_await set_events(set, EPOLL_CTL_MOD, p.a, EPOLLIN, -ENOENT);
    co_await set_events(set, 77, p.a, EPOLLIN, -EINVAL);
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_DEL, p.a, nullptr), -ENOENT);
    co_await gives(io::epoll_ctl(set, EPOLL_CTL_ADD, p.a, nullptr), -EFAULT);
    co_await add(set, other, EPOLLIN);
    co_await add(other, set, EPOLLIN, -ELOOP);
    co_await add(set, p.a, EPOLLIN);
    co_await add(set, p.a, EPOLLIN, -EEXIST);
    std::array<::epoll_event, 1> events{};
    co_await gives(io::epoll_wait(set, {events.data(), 0}), -EINVAL);
    co_await gives(io::epoll_wait(p.a, events), -EINVAL);
    co_await gives(io::epoll_wait(file, events), -EINVAL);
    co_await gives(io::epoll_wait(-1, events), -EBADF);
    co_await closed(p);
    co_await closed({set, other});
    co_await gives(io::close(file), 0);
}
TEST_P(EpollSets, Errors) { run(errors(directory())); }

task<> sockets() {
    const int set = io::epoll_create1();
    const int listener = co_await listening();
    co_await add(set, listener, EPOLLIN);
    co_await sees(set, these());
    const address at = name_of(listener);
    ends c;
    c.a = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    co_await gives(io::connect(c.a, at.get(), at.length), 0);
    co_await sees(set, these(report{listener, EPOLLIN}));
    c.b = co_await io::accept(listener, nullptr, nullptr, SOCK_CLOEXEC);
    co_await sees(set, these());
    co_await add(set, c.b, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    co_await sees(set, these(report{c.b, EPOLLOUT}));
    co_await sees(set, these());
    co_await gives(io::send(c.a, "abc", 0), 3);
    co_await sees(set, these(report{c.b, EPOLLIN | EPOLLOUT}), "all that is ready now");
    std::array<char, 1> byte{};
    co_await gives(io::recv(c.b, byte, 0), 1);
    co_await sees(set, these(), "part of the data is no edge");
    co_await gives(io::send(c.a, "d", 0), 1);
    co_await sees(set, these(report{c.b, EPOLLIN | EPOLLOUT}));
    co_await gives(io::shutdown(c.a, SHUT_WR), 0);
    co_await sees(set, these(report{c.b, EPOLLIN | EPOLLOUT | EPOLLRDHUP}));
    co_await sees(set, these());
    co_await gives(io::close(listener), 0);
    co_await closed(c);
    co_await gives(io::close(set), 0);
}
TEST_P(EpollSets, Sockets) { run(sockets()); }

task<> local_sockets() {
    const int set = io::epoll_create1();
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        const ends s = paired(type);
        co_await add(set, s.b, EPOLLIN | EPOLLET);
        co_await gives(io::send(s.a, "abc", 0), 3);
        co_await gives(io::send(s.a, "def", 0), 3);
        co_await sees(set, these(report{s.b, EPOLLIN}));
        std::array<char, 3> buffer{};
        co_await gives(io::recv(s.b, buffer, 0), 3);
        co_await sees(set, these(), "more is waiting, but nothing has come");
        co_await gives(io::send(s.a, "ghi", 0), 3);
        co_await sees(set, these(report{s.b, EPOLLIN}));
        co_await closed(s);
    }
    co_await gives(io::close(set), 0);
}
TEST_P(EpollSets, LocalSockets) { run(local_sockets()); }

} // namespace

} // namespace conformance
