#include "support.hpp"

#include <coil/uring/registered_buffers.hpp>

#include <array>
#include <limits>
#include <string_view>
#include <thread>
#include <type_traits>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace uring_test {
namespace {

static_assert(std::is_nothrow_move_constructible_v<registered_buffers>);
static_assert(!std::is_copy_constructible_v<registered_buffers>);

constexpr std::size_t page = 4096;

class UringRegisteredBuffers : public with_io_uring {
protected:
    ring r{16};
    alignas(page) std::array<char, 4 * page> memory{};

    void SetUp() override {
        with_io_uring::SetUp();
        if (IsSkipped()) {
            return;
        }
        registered_buffers trial;
        if (trial.setup(r, 1) == -EINVAL) {
            GTEST_SKIP() << "this kernel has no registered buffer tables (Linux 5.13)";
        }
    }

    char* at(std::size_t offset) { return memory.data() + offset; }
    ::iovec part(std::size_t offset, std::size_t size) { return {at(offset), size}; }
    std::string_view text(std::size_t offset, std::size_t size) const {
        return {memory.data() + offset, size};
    }
    static int put(registered_buffers& table, unsigned slot, ::iovec buffer) {
        return table.update(slot, {&buffer, 1});
    }

    temporary_directory dir;
    descriptor file{::open((dir / "file").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};

    void write_file(std::string_view content) {
        ASSERT_EQ(::pwrite(file, content.data(), content.size(), 0),
                  static_cast<ssize_t>(content.size()));
    }
    std::string read_file(std::size_t size, off_t offset = 0) {
        std::string content(size, '\0');
        EXPECT_EQ(::pread(file, content.data(), size, offset), static_cast<ssize_t>(size));
        return content;
    }
};

TEST_F(UringRegisteredBuffers, ReadsAndWritesNameASlot) {
    registered_buffers table{r, 8};
    EXPECT_TRUE(table);
    EXPECT_EQ(table.size(), 8U);
    const std::array<::iovec, 2> two{part(0, page), part(2 * page, page)};
    ASSERT_EQ(table.update(3, two), 2);
    write_file("0123456789");
    EXPECT_EQ(run(r, prep::read_fixed(file, at(100), 10, 0, 3)), 10);
    EXPECT_EQ(text(100, 10), "0123456789");
    EXPECT_EQ(run(r, prep::read_fixed(file, at(3 * page - 4), 4, 6, 4)), 4); // at its very end
    EXPECT_EQ(text(3 * page - 4, 4), "6789");
    EXPECT_EQ(run(r, prep::write_fixed(file, at(102), 3, 100, 3)), 3);
    EXPECT_EQ(read_file(3, 100), "234");

    COIL_NEEDS(r, readv_fixed);
    const std::array<::iovec, 2> parts{part(200, 3), part(300, 4)};
    EXPECT_EQ(run(r, prep::readv_fixed(file, parts.data(), 2, 1, 3)), 7);
    EXPECT_EQ(text(200, 3), "123");
    EXPECT_EQ(text(300, 4), "4567");
    EXPECT_EQ(run(r, prep::writev_fixed(file, parts.data(), 2, 200, 3)), 7);
    EXPECT_EQ(read_file(7, 200), "1234567");
}

TEST_F(UringRegisteredBuffers, AZeroCopySendNamesASlot) {
    COIL_NEEDS(r, send_zc);
    registered_buffers table{r, 2};
    ASSERT_EQ(put(table, 1, part(0, page)), 1);
    const descriptor out{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const descriptor in{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    ::sockaddr_storage address{};
    ::socklen_t size = sizeof address;
    address.ss_family = AF_INET; // any address, any port
    ASSERT_EQ(::bind(in, reinterpret_cast<::sockaddr*>(&address), 16), 0);
    ASSERT_EQ(::getsockname(in, reinterpret_cast<::sockaddr*>(&address), &size), 0);
    ASSERT_EQ(::connect(out, reinterpret_cast<::sockaddr*>(&address), size), 0);

    std::memcpy(at(50), "zero", 4);
    const cqe sent = complete(r, prep::send_zc_fixed(out, at(50), 4, 0, 1));
    EXPECT_EQ(sent.res, 4);
    ASSERT_TRUE(has_more(sent));
    EXPECT_TRUE(next(r).flags & cqe_flag::notif);
    std::array<char, 8> got{};
    EXPECT_EQ(::recv(in, got.data(), got.size(), 0), 4);
    EXPECT_STREQ(got.data(), "zero");

    for (const unsigned slot : {0U, 2U}) { // empty; beyond the table
        const cqe refused = complete(r, prep::send_zc_fixed(out, at(50), 4, 0, slot));
        EXPECT_EQ(refused.res, -EFAULT);
        if (has_more(refused)) { // a failure may also post a notification
            EXPECT_TRUE(next(r).flags & cqe_flag::notif);
        }
    }
}

TEST_F(UringRegisteredBuffers, MemoryOutsideASlotIsEfault) {
    registered_buffers table{r, 4};
    write_file("0123456789");
    EXPECT_EQ(run(r, prep::read_fixed(file, at(0), 4, 0, 1)), -EFAULT); // empty
    EXPECT_EQ(run(r, prep::write_fixed(file, at(0), 4, 0, 1)), -EFAULT);
    ASSERT_EQ(put(table, 1, part(page, page)), 1);
    EXPECT_EQ(run(r, prep::read_fixed(file, at(page), 4, 0, 1)), 4);
    EXPECT_EQ(run(r, prep::read_fixed(file, at(page), 4, 0, 4)), -EFAULT); // beyond the table
    EXPECT_EQ(run(r, prep::read_fixed(file, at(page), 4, 0, 0xffff)), -EFAULT);
    EXPECT_EQ(run(r, prep::read_fixed(file, at(page - 1), 4, 0, 1)), -EFAULT); // outside
    EXPECT_EQ(run(r, prep::read_fixed(file, at(2 * page - 3), 4, 0, 1)), -EFAULT);
    EXPECT_EQ(run(r, prep::read_fixed(file, at(2 * page - 4), 4, 0, 1)), 4);
}

TEST_F(UringRegisteredBuffers, SlotsCanBeReplacedAndCleared) {
    registered_buffers table{r, 100};
    write_file("0123456789");
    const auto reads = [&](std::size_t offset, unsigned slot) {
        return run(r, prep::read_fixed(file, at(offset), 4, 0, slot));
    };
    ASSERT_EQ(put(table, 99, part(0, page)), 1);
    EXPECT_EQ(reads(0, 99), 4);
    ASSERT_EQ(put(table, 99, part(page, page)), 1);
    EXPECT_EQ(reads(0, 99), -EFAULT);
    EXPECT_EQ(reads(page, 99), 4);
    EXPECT_EQ(table.clear(99), 0);
    EXPECT_EQ(reads(page, 99), -EFAULT);
    EXPECT_EQ(table.clear(99), 0); // already empty

    std::array<::iovec, 100> all{};
    all.fill(part(0, page));
    EXPECT_EQ(table.update(0, all), 100);
    EXPECT_EQ(reads(0, 0), 4);
    EXPECT_EQ(table.clear(1, 98), 0);
    EXPECT_EQ(reads(0, 0), 4);
    EXPECT_EQ(reads(0, 1), -EFAULT);
    EXPECT_EQ(reads(0, 98), -EFAULT);
    EXPECT_EQ(reads(0, 99), 4);
    EXPECT_EQ(table.clear(0, 100), 0);
    EXPECT_EQ(reads(0, 99), -EFAULT);
    EXPECT_EQ(put(table, 0, {nullptr, 0}), 1);
}

TEST_F(UringRegisteredBuffers, AnOperationKeepsTheBufferItWasSubmittedWith) {
    registered_buffers table{r, 1};
    ASSERT_EQ(put(table, 0, part(0, page)), 1);
    const pipe_pair p;
    queue(r, prep::read_fixed(p.in, at(0), 8, prep::current_position, 0), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(table.clear(0), 0);
    ASSERT_EQ(put(table, 0, part(page, page)), 1);
    EXPECT_FALSE(r.has_completions());
    ASSERT_EQ(::write(p.out, "content", 7), 7);
    const cqe c = next(r);
    EXPECT_EQ(c.res, 7);
    EXPECT_EQ(text(0, 7), "content");
}

TEST_F(UringRegisteredBuffers, AFailedUpdateChangesNoLaterSlot) {
    registered_buffers table{r, 4};
    ASSERT_EQ(put(table, 0, part(0, page)), 1);
    EXPECT_EQ(table.update(0, {}), 0);
    EXPECT_EQ(put(table, 4, part(0, page)), -EINVAL);
    EXPECT_EQ(put(table, ~0U, part(0, page)), -EINVAL);
    const std::array<::iovec, 2> two{part(0, page), part(0, page)};
    EXPECT_EQ(table.update(3, two), -EINVAL);
    EXPECT_EQ(table.clear(3, 2), -EINVAL);
    EXPECT_EQ(table.clear(5, 0), -EINVAL);

    EXPECT_EQ(put(table, 0, {nullptr, 1}), -EFAULT);
    EXPECT_EQ(put(table, 0, {at(0), 0}), -EFAULT);
    EXPECT_EQ(put(table, 0, {at(0), (std::size_t{1} << 30) + 1}), -EFAULT);
    EXPECT_EQ(put(table, 0, {at(0), std::numeric_limits<std::size_t>::max()}), -EINVAL);
    void* none = ::mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(none, MAP_FAILED);
    EXPECT_EQ(put(table, 0, {none, page}), -EFAULT); // not writable
    ASSERT_EQ(::munmap(none, page), 0);
    EXPECT_EQ(put(table, 0, {none, page}), -EFAULT); // not mapped
    EXPECT_EQ(run(r, prep::write_fixed(file, at(0), 4, 0, 0)), 4);

    // The buffers before the first refused one are registered.
    const std::array<::iovec, 3> some{part(page, page), ::iovec{nullptr, 1}, part(page, page)};
    EXPECT_EQ(table.update(1, some), 1);
    EXPECT_EQ(run(r, prep::write_fixed(file, at(page), 4, 0, 1)), 4);
    EXPECT_EQ(run(r, prep::write_fixed(file, at(page), 4, 0, 3)), -EFAULT);
}

TEST_F(UringRegisteredBuffers, TheTableCanBeClosedAndMadeAgain) {
    registered_buffers table;
    EXPECT_FALSE(table);
    EXPECT_EQ(table.size(), 0U);
    table.close();
    EXPECT_EQ(put(table, 0, part(0, page)), -EBADF);
    EXPECT_EQ(table.clear(0), -EBADF);
    for (const unsigned slots : {1U, 3U, registered_buffers::max_slots, 2U}) {
        ASSERT_EQ(table.setup(r, slots), 0) << slots;
        EXPECT_EQ(table.size(), slots);
        EXPECT_EQ(put(table, slots - 1, part(0, page)), 1);
        EXPECT_EQ(run(r, prep::write_fixed(file, at(0), 4, 0, slots - 1)), 4);
        table.close();
        EXPECT_FALSE(table);
        EXPECT_EQ(run(r, prep::write_fixed(file, at(0), 4, 0, slots - 1)), -EFAULT);
    }
}

TEST_F(UringRegisteredBuffers, ItMoves) {
    registered_buffers one{r, 2};
    ASSERT_EQ(put(one, 0, part(0, page)), 1);
    registered_buffers other{std::move(one)};
    EXPECT_FALSE(one); // NOLINT(bugprone-use-after-move): the moved-from state is tested
    EXPECT_EQ(other.size(), 2U);
    EXPECT_EQ(one.setup(r, 2), -EBUSY); // the ring's only table still exists
    one = std::move(other);
    EXPECT_TRUE(one);
    EXPECT_EQ(run(r, prep::write_fixed(file, at(0), 4, 0, 0)), 4);
    one = registered_buffers{};
    EXPECT_FALSE(one);
    EXPECT_EQ(run(r, prep::write_fixed(file, at(0), 4, 0, 0)), -EFAULT);
}

TEST_F(UringRegisteredBuffers, SetupReturnsErrnosAndTheConstructorThrowsMessages) {
    registered_buffers table;
    EXPECT_EQ(table.setup(r, 0), -EINVAL);
    EXPECT_EQ(table.setup(r, registered_buffers::max_slots + 1), -EINVAL);
    ASSERT_EQ(table.setup(r, 1), 0);
    EXPECT_EQ(table.setup(r, 1), -EBUSY);
    const auto refusal = [&](unsigned slots) -> std::string {
        try {
            const registered_buffers second{r, slots};
            return "it was not refused";
        } catch (const std::system_error& e) {
            return e.what();
        }
    };
    EXPECT_NE(refusal(1).find("only one such table"), std::string::npos);
    EXPECT_NE(refusal(0).find("1 to 16384"), std::string::npos);
    EXPECT_NE(refusal(20000).find("1 to 16384"), std::string::npos);
    if ((r.setup_flags() & setup::single_issuer) != 0) {
        std::thread stranger{[&] {
            registered_buffers mine;
            EXPECT_EQ(mine.setup(r, 1), -EEXIST);
        }};
        stranger.join();
    }
}

TEST_F(UringRegisteredBuffers, OlderBackendsGetAnExplicitArrayOfEmptySlots) {
    auto filter = std::make_unique<filter_backend>();
    filter_backend& seam = *filter;
    ring old{ring_options{}, std::move(filter)};
    int asked = 0;
    seam.refuse_control = [&](register_op op) { // rsrc_flag::sparse is tried first
        return op == register_op::buffers2 && ++asked == 1 ? -EINVAL : 0;
    };
    {
        registered_buffers table{old, 3};
        EXPECT_EQ(asked, 2);
        EXPECT_EQ(run(old, prep::write_fixed(file, at(0), 4, 0, 2)), -EFAULT);
        ASSERT_EQ(put(table, 2, part(0, page)), 1);
        EXPECT_EQ(run(old, prep::write_fixed(file, at(0), 4, 0, 2)), 4);
    }
    seam.refuse_control = [](register_op op) { return op == register_op::buffers2 ? -EINVAL : 0; };
    try {
        const registered_buffers table{old, 3};
        FAIL() << "it was not refused";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::invalid_argument);
        EXPECT_NE(std::string_view{e.what()}.find("Linux 5.13"), std::string_view::npos);
    }
}

TEST_F(UringRegisteredBuffers, G6_LockedMemoryIsLimited) {
    COIL_SKIP_ON_EPOLL("it locks no memory");
    EXPECT_EQ(in_child([&]() -> std::string {
                  // CAP_IPC_LOCK would lift the limit.
                  if (::geteuid() == 0 && ::setuid(65534) != 0) {
                      return "setuid failed";
                  }
                  ::rlimit limit{};
                  ::getrlimit(RLIMIT_MEMLOCK, &limit);
                  limit.rlim_cur = 1 << 20;
                  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < limit.rlim_cur) {
                      limit.rlim_cur = limit.rlim_max;
                  }
                  if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
                      return "setrlimit failed";
                  }
                  ring mine{8};
                  registered_buffers table{mine, 1};
                  std::vector<char> large(limit.rlim_cur + page);
                  if (const int n = put(table, 0, {large.data(), large.size()}); n != -ENOMEM) {
                      return "the large buffer gave " + std::to_string(n);
                  }
                  if (const int n = put(table, 0, {large.data(), page}); n != 1) {
                      return "the small buffer gave " + std::to_string(n);
                  }
                  return {};
              }),
              "");
}

} // namespace
} // namespace uring_test
