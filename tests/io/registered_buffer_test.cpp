// read_fixed, write_fixed: like read and write, but with registered buffers.

#include "io/support.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace coil;
using coil_test::descriptor;
using coil_test::pipe_pair;

namespace {

class RegisteredBuffer : public ::testing::Test {
protected:
    static descriptor file(std::string_view contents) {
        descriptor fd{::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
        EXPECT_EQ(::pwrite(fd, contents.data(), contents.size(), 0),
                  static_cast<ssize_t>(contents.size()));
        return fd;
    }
};

/// Registers `buffers` with the ring of the current context.
task<> use_buffers(std::span<::iovec> buffers) {
    EXPECT_EQ(
        this_context().loop().ring().get_backend().do_register(
            uring::register_op::buffers, buffers.data(), static_cast<unsigned>(buffers.size())),
        0);
    co_return;
}

struct two_buffers {
    std::vector<char> first = std::vector<char>(4096, 'f');
    std::vector<char> second = std::vector<char>(8192, 's');
    std::array<::iovec, 2> all{{{first.data(), first.size()}, {second.data(), second.size()}}};
};

TEST_F(RegisteredBuffer, ReadAndWriteAtOffsetsIntoPartsOfThem) {
    const auto fd = file("0123456789");
    auto main = [](int f) -> task<> {
        two_buffers b;
        co_await use_buffers(b.all);
        EXPECT_EQ(co_await io::read_fixed(f, {b.second.data() + 5000, 4}, 3, 1), 4);
        EXPECT_EQ(std::string(b.second.data() + 4999, 6), "s3456s");
        EXPECT_EQ(co_await io::read_fixed(f, b.first, 8, 0), 2);
        EXPECT_EQ(co_await io::read_fixed(f, b.first, 100, 0), 0); // the end of the file
        EXPECT_EQ(co_await io::write_fixed(f, {b.second.data() + 5000, 2}, 20, 1), 2);
        EXPECT_EQ(co_await io::read_fixed(f, {b.first.data(), 5}, io::current_position, 0), 5);
        EXPECT_EQ(std::string(b.first.data(), 5), "01234");
        EXPECT_EQ(co_await io::write_fixed(f, {b.first.data(), 1}, io::current_position, 0), 1);
    };
    coil::run(main(fd));
    std::string text(100, '\0');
    text.resize(static_cast<std::size_t>(::pread(fd, text.data(), text.size(), 0)));
    EXPECT_EQ(text, (std::string("0123406789") + std::string(10, '\0') + "34"));
}

TEST_F(RegisteredBuffer, PipesWaitAndChainsEndAtAShortTransfer) {
    const auto fd = file("abc");
    const pipe_pair p;
    auto main = [](int f, const pipe_pair& pipe) -> task<> {
        two_buffers b;
        co_await use_buffers(b.all);
        EXPECT_EQ(co_await (io::read_fixed(f, {b.first.data(), 3}, 0, 0) &&
                            io::write_fixed(pipe.out, {b.first.data(), 3}, -1, 0) &&
                            io::read_fixed(pipe.in, b.second, -1, 1)),
                  3);
        EXPECT_EQ(std::string(b.second.data(), 4), "abcs");
        EXPECT_EQ(co_await (io::read_fixed(f, {b.first.data(), 4}, 0, 0) && io::nop()), -ECANCELED);
        EXPECT_EQ(
            co_await timeout(io::read_fixed(pipe.in, b.first, -1, 0), std::chrono::milliseconds(1)),
            -ETIMEDOUT);
    };
    coil::run(main(fd, p));
}

TEST_F(RegisteredBuffer, FailuresOfTheDescriptorAreThoseOfReadAndWrite) {
    const pipe_pair p;
    auto main = [](int in, int out) -> task<> {
        two_buffers b;
        co_await use_buffers(b.all);
        EXPECT_EQ(co_await io::read_fixed(-1, b.first, 0, 0), -EBADF);
        EXPECT_EQ(co_await io::read_fixed(out, b.first, -1, 0), co_await io::read(out, b.first));
        EXPECT_EQ(co_await io::write_fixed(in, b.first, -1, 0), co_await io::write(in, b.first));
    };
    coil::run(main(p.in, p.out));
}

TEST_F(RegisteredBuffer, MemoryThatIsNotRegisteredGivesEFAULT) {
    const auto fd = file("0123456789");
    auto main = [](int f) -> task<> {
        std::vector<char> memory(4096 + 8);
        two_buffers b;
        b.all[0] = {memory.data(), 4096}; // the last 8 bytes are not registered
        // No buffer is registered yet.
        EXPECT_EQ(co_await io::read_fixed(f, {memory.data(), 8}, 0, 0), -EFAULT);
        co_await use_buffers(b.all);
        char elsewhere[8] = {};
        EXPECT_EQ(co_await io::read_fixed(f, elsewhere, 0, 0), -EFAULT);
        EXPECT_EQ(co_await io::write_fixed(f, elsewhere, 0, 1), -EFAULT);
        EXPECT_EQ(co_await io::read_fixed(f, {memory.data() + 4095, 2}, 0, 0), -EFAULT);
        for (const unsigned number : {2U, 16384U, 65535U, 65536U, ~0U}) {
            EXPECT_EQ(co_await io::read_fixed(f, {memory.data(), 8}, 0, number), -EFAULT) << number;
            EXPECT_EQ(co_await io::write_fixed(f, {memory.data(), 8}, 0, number), -EFAULT)
                << number;
        }
    };
    coil::run(main(fd));
}

} // namespace
