// splice, tee, pipe: effects and results are those of the system calls.

#include "io/support.hpp"

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;
using coil_test::descriptor;
using coil_test::pipe_pair;
using io_test::outcome;

namespace {

class Pipe : public io_test::Calls {
protected:
    static descriptor file(std::string_view contents) {
        descriptor fd{::open(std::filesystem::temp_directory_path().c_str(),
                             O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
        EXPECT_EQ(::pwrite(fd, contents.data(), contents.size(), 0),
                  static_cast<ssize_t>(contents.size()));
        return fd;
    }
    static std::string taken_from(int fd) {
        std::string text(100, '\0');
        const ssize_t n = ::read(fd, text.data(), text.size());
        text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
        return text;
    }
};

TEST_F(Pipe, SpliceFromAFileMovesTheOffsetItWasGiven) {
    const auto fd = file("0123456789");
    const pipe_pair p;
    ::off64_t at = 3;
    EXPECT_EQ(result_of(io::splice(fd, &at, p.out, nullptr, 4)), 4);
    EXPECT_EQ(at, 7);
    EXPECT_EQ(taken_from(p.in), "3456");
    EXPECT_EQ(result_of(io::splice(fd, &at, p.out, nullptr, 100)), 3);
    EXPECT_EQ(at, 10);
    EXPECT_EQ(result_of(io::splice(fd, &at, p.out, nullptr, 100)), 0); // the end of the file
    EXPECT_EQ(at, 10);
    EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 0); // the file's own position stays
}

TEST_F(Pipe, SpliceWithoutOffsetsMovesThePosition) {
    const auto fd = file("0123456789");
    const pipe_pair p;
    EXPECT_EQ(result_of(io::splice(fd, nullptr, p.out, nullptr, 4)), 4);
    EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 4);
    const auto to = file("");
    ::off64_t at = 5;
    EXPECT_EQ(result_of(io::splice(p.in, nullptr, to, &at, 100)), 4);
    EXPECT_EQ(at, 9);
    EXPECT_EQ(::lseek(to, 0, SEEK_END), 9);
}

TEST_F(Pipe, SpliceFailsAsTheSystemCallDoes) {
    const auto a = file("x");
    const auto b = file("y");
    const pipe_pair p;
    ::off64_t zero = 0;
    EXPECT_EQ(result_of(io::splice(a, nullptr, b, nullptr, 1)),
              outcome(::splice(a, nullptr, b, nullptr, 1, 0)));
    EXPECT_EQ(result_of(io::splice(p.in, &zero, b, nullptr, 1)), -ESPIPE);
    EXPECT_EQ(result_of(io::splice(-1, nullptr, p.out, nullptr, 1)), -EBADF);
    EXPECT_EQ(zero, 0);
}

TEST_F(Pipe, SpliceInAChainMovesItsOffsetToo) {
    const auto fd = file("0123456789");
    const pipe_pair p;
    auto chain = [](int from, int to, ::off64_t& at) -> task<int> {
        co_return co_await (io::splice(from, &at, to, nullptr, 4) && io::write(to, "!"));
    };
    ::off64_t at = 0;
    EXPECT_EQ(coil::run(chain(fd, p.out, at)), 1);
    EXPECT_EQ(at, 4);
    EXPECT_EQ(taken_from(p.in), "0123!");
}

TEST_F(Pipe, TeeLeavesTheDataWhereItIs) {
    const pipe_pair from;
    const pipe_pair to;
    from.put("hello");
    EXPECT_EQ(result_of(io::tee(from.in, to.out, 3)), 3);
    EXPECT_EQ(taken_from(to.in), "hel");
    EXPECT_EQ(taken_from(from.in), "hello");
    EXPECT_EQ(result_of(io::tee(-1, to.out, 3)), -EBADF);
    const auto no_pipe = file("x");
    EXPECT_EQ(result_of(io::tee(no_pipe, to.out, 3)), outcome(::tee(no_pipe, to.out, 3, 0)));
}

TEST_F(Pipe, PipeMakesTwoDescriptorsWithFlags) {
    int fds[2] = {-1, -1};
    ASSERT_EQ(result_of(io::pipe(fds, O_CLOEXEC | O_NONBLOCK)), 0);
    const descriptor in{fds[0]};
    const descriptor out{fds[1]};
    EXPECT_NE(::fcntl(in, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(out, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(::write(out, "x", 1), 1);
    EXPECT_EQ(taken_from(in), "x");
    int untouched[2] = {-7, -8};
    EXPECT_EQ(result_of(io::pipe(untouched, ~0)), -EINVAL);
    EXPECT_EQ(untouched[0], -7);
}

TEST_F(Pipe, Pipe2IsPipeWithFlags) {
    int fds[2] = {-1, -1};
    ASSERT_EQ(result_of(io::pipe2(fds, O_CLOEXEC | O_DIRECT)), 0);
    const descriptor in{fds[0]};
    const descriptor out{fds[1]};
    EXPECT_EQ(::fcntl(out, F_GETFD), FD_CLOEXEC);
    EXPECT_NE(::fcntl(out, F_GETFL) & O_DIRECT, 0);
    EXPECT_EQ(result_of(io::pipe2(fds, ~0)), outcome(::pipe2(fds, ~0)));
}

TEST_F(Pipe, G4_AnUnreceivedPipeIsClosed) {
    int fds[2] = {-1, -1};
    auto makes = [](int(&to)[2]) -> task<> { co_await io::pipe(to); };
    auto chain = [](int(&to)[2]) -> task<> { EXPECT_EQ(co_await (io::pipe(to) && io::nop()), 0); };
    for (int i = 0; i < 20; ++i) {
        io_context ctx;
        ctx.co_spawn(makes(fds));
        ctx.stop();
        ctx.run();
    }
    coil::run(chain(fds));
    EXPECT_EQ(fds[0], -1); // the result of a link in the middle is not delivered
}

} // namespace
