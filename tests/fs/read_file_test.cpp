#include "files.hpp"
#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"

#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace coil;
using coil_test::pattern;
using coil_test::scratch;

constexpr std::size_t read_sizes[] = {
    0,      1,      100,     4095,    4096,     32'767,         32'768,
    32'769, 65'536, 100'000, 999'999, 1U << 20, (1U << 20) + 1, 3'333'333};

task<> each_size(const scratch& dir) {
    for (const std::size_t size : read_sizes) {
        const std::string text = pattern(size);
        coil_test::put(dir / "f", text);
        const std::string got = co_await fs::read_file(dir / "f");
        EXPECT_EQ(got == text, true) << size;
        EXPECT_LE(got.capacity(), 2 * size + 64) << size;
    }
}

TEST(FsReadFile, ReturnsAllOfFilesOfAnySize) {
    const scratch dir;
    coil::run(each_size(dir));
}

TEST(FsReadFile, ReturnsAllOfFilesOfAnySizeInMemory) {
    if (!std::filesystem::exists("/dev/shm")) {
        GTEST_SKIP() << "there is no /dev/shm";
    }
    const scratch dir("/dev/shm/coil-read-file-" + std::to_string(::getpid()));
    coil::run(each_size(dir));
}

TEST(FsReadFile, ReadsWhatIsNotInThePageCache) {
    const scratch dir;
    for (const std::size_t size : {5'000U, 50'000U, 2'000'000U}) {
        const std::string text = pattern(size);
        coil_test::put(dir / "f", text);
        {
            const coil_test::descriptor fd(::open((dir / "f").c_str(), O_RDONLY | O_CLOEXEC));
            ASSERT_EQ(::fdatasync(fd), 0);
            ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        }
        EXPECT_EQ(coil::run(fs::read_file(dir / "f")) == text, true) << size;
    }
}

task<> one_of_many(fs::path p, std::size_t size, int& good) {
    const std::string got = co_await fs::read_file(std::move(p));
    good += got == pattern(size, static_cast<unsigned>(size)) ? 1 : 0;
}

TEST(FsReadFile, ManyAtOnce) {
    const scratch dir;
    int good = 0;
    io_context context;
    for (unsigned i = 0; i < 100; ++i) {
        const std::size_t size = 1 + 977UL * i * (i % 10 == 0 ? 10 : 1);
        coil_test::put(dir / std::to_string(i), pattern(size, static_cast<unsigned>(size)));
        context.co_spawn(one_of_many(dir / std::to_string(i), size, good));
    }
    context.run();
    EXPECT_EQ(good, 100);
}

TEST(FsReadFile, ReadsFilesOfProc) {
    EXPECT_EQ(coil::run(fs::read_file("/proc/self/comm")),
              coil_test::content_of("/proc/self/comm"));
    const std::string maps = coil::run(fs::read_file("/proc/self/maps"));
    EXPECT_NE(maps.find("[stack]"), std::string::npos);
    // Megabytes, although the reported size is 0.
    EXPECT_EQ(coil::run(fs::read_file("/proc/kallsyms")).size(),
              coil_test::content_of("/proc/kallsyms").size());
    EXPECT_EQ(coil::run(fs::read_file("/dev/null")), "");
}

task<> writes_late(fs::path p) {
    co_await sleep_for(std::chrono::milliseconds(10));
    fs::file f = co_await fs::file::open(p, O_WRONLY);
    for (int i = 0; i < 3; ++i) {
        const int n = co_await f.write_all(pattern(100'000));
        EXPECT_EQ(n, 100'000);
        co_await sleep_for(std::chrono::milliseconds(2));
    }
}

task<> reads_before_it_is_written(fs::path p) {
    join_handle<void> writer = spawn(writes_late(p));
    const std::string got = co_await fs::read_file(p);
    EXPECT_EQ(got == pattern(100'000) + pattern(100'000) + pattern(100'000), true) << got.size();
    co_await writer;
}

TEST(FsReadFile, AFifoIsReadUntilItsLastWriterCloses) {
    const scratch dir;
    ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
    coil::run(reads_before_it_is_written(dir / "fifo"));
    struct ::stat cached{};
    ASSERT_EQ(::stat((dir / "fifo").c_str(), &cached), 0);
    coil::run(reads_before_it_is_written(dir / "fifo"));
}

task<> read_errors(const scratch& dir) {
    std::error_code ec;
    std::string got = co_await fs::read_file(dir / "none", ec);
    EXPECT_EQ(ec, std::errc::no_such_file_or_directory);
    EXPECT_EQ(ec.category(), std::generic_category());
    got = co_await fs::read_file(dir.path(), ec);
    EXPECT_EQ(ec, std::errc::is_a_directory);
    got = co_await fs::read_file(dir / std::string(300, 'n'), ec);
    EXPECT_EQ(ec, std::errc::filename_too_long);
    got = co_await fs::read_file("", ec);
    EXPECT_EQ(ec, std::errc::no_such_file_or_directory);
    coil_test::put(dir / "a", "a");
    got = co_await fs::read_file(dir / "a" / "b", ec);
    EXPECT_EQ(ec, std::errc::not_a_directory);
    std::filesystem::create_symlink("loop", dir / "loop");
    got = co_await fs::read_file(dir / "loop", ec);
    EXPECT_EQ(ec, std::errc::too_many_symbolic_link_levels);
    got = co_await fs::read_file(dir / "a", ec);
    EXPECT_FALSE(ec);
    EXPECT_EQ(got, "a");
    try {
        got = co_await fs::read_file(dir.path());
        ADD_FAILURE() << "a directory was read";
    } catch (const fs::filesystem_error& e) {
        EXPECT_EQ(e.code(), std::errc::is_a_directory);
        EXPECT_EQ(e.path1(), dir.path());
    }
}

TEST(FsReadFile, ErrorsAreExact) {
    const scratch dir;
    coil::run(read_errors(dir));
}

TEST(FsReadFile, AFileThatCannotFitIsAnError) {
    const scratch dir;
    coil_test::put(dir / "huge", "");
    std::error_code ec;
    std::filesystem::resize_file(dir / "huge", 1ULL << 43U, ec);
    if (ec) {
        GTEST_SKIP() << "the file system does not support a file of 8 TiB: " << ec.message();
    }
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitizer has mapped more than the limit";
    }
    EXPECT_EQ(coil_test::in_child([&]() -> std::string {
                  const struct ::rlimit limit{1ULL << 40U, 1ULL << 40U};
                  ::setrlimit(RLIMIT_AS, &limit);
                  try {
                      coil::run(fs::read_file(dir / "huge"));
                      return "it was read";
                  } catch (const std::bad_alloc&) {
                      return {};
                  }
              }),
              "");
}

task<> read_into(fs::path p, std::error_code& ec) {
    const std::string got = co_await fs::read_file(std::move(p), ec);
}

TEST(FsReadFile, G3_IsCancelledWhileItWaits) {
    // On tmpfs, where regular files are read inline.
    const scratch dir("/dev/shm/coil-read-file-" + std::to_string(::getpid()));
    ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
    const coil_test::descriptor writer(::open((dir / "fifo").c_str(), O_RDWR | O_CLOEXEC));
    io_context context;
    std::error_code ec;
    inplace_stop_source stop;
    context.co_spawn(read_into(dir / "fifo", ec), stop.get_token());
    context.co_spawn([](inplace_stop_source& s) -> task<> {
        co_await sleep_for(std::chrono::milliseconds(5));
        s.request_stop();
    }(stop));
    context.run();
    EXPECT_EQ(ec, std::errc::operation_canceled);
}

TEST(FsReadFile, G5_IsDestroyedWhileItWaits) {
    const scratch dir;
    ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
    const coil_test::descriptor writer(::open((dir / "fifo").c_str(), O_RDWR | O_CLOEXEC));
    std::error_code ec;
    io_context context;
    context.co_spawn(read_into(dir / "fifo", ec));
    context.co_spawn([](io_context& c) -> task<> {
        co_await sleep_for(std::chrono::milliseconds(5));
        c.stop();
    }(context));
    context.run();
}

} // namespace
