// Files, and which parts of them survive a crash.

#include "sim/support.hpp"

#include <fcntl.h>

using namespace sim_test;

namespace {

task<int> put(const char* path, std::string text, bool sync_file, bool sync_directory) {
    const int fd = co_await io::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        co_return fd;
    }
    const int written = co_await io::write(fd, text, 0);
    if (sync_file) {
        co_await io::fsync(fd);
    }
    co_await io::close(fd);
    if (sync_directory) {
        const int directory = co_await io::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        co_await io::fsync(directory);
        co_await io::close(directory);
    }
    co_return written;
}

TEST(SimFile, WrittenDataCanBeRead) {
    sim::world w{1};
    sim::host& h = w.host("h");
    EXPECT_EQ(run_in(w, h, put("/a", "text", false, false)), 4);
    EXPECT_EQ(h.read_file("/a"), "text");
    EXPECT_EQ(h.list("/"), (std::vector<std::string>{"a", "dev", "tmp"}));
}

TEST(SimFile, SynchronizedDataSurvivesEveryCrash) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        sim::world w{seed};
        sim::host& h = w.host("h");
        run_in(w, h, put("/a", std::string(10'000, 'x'), true, true));
        h.crash();
        EXPECT_EQ(h.read_file("/a"), std::string(10'000, 'x')) << "SEED=" << seed;
    }
}

TEST(SimFile, UnsynchronizedDataMayBeLostOrTornOrPresent) {
    unsigned lost = 0;
    unsigned torn = 0;
    unsigned there = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        sim::world w{seed};
        sim::host& h = w.host("h");
        h.write_file("/a", std::string(5'000, 'o'));
        run_in(w, h, put("/a", std::string(5'000, 'n'), false, false));
        h.crash();
        const std::string text = h.read_file("/a").value_or("");
        if (text == std::string(5'000, 'o')) {
            ++lost;
        } else if (text == std::string(5'000, 'n')) {
            ++there;
        } else {
            ++torn;
            for (std::size_t i = 1; i < text.size(); ++i) {
                ASSERT_TRUE(text[i] == text[i - 1] || i % 512 == 0) << "a sector is torn";
            }
        }
    }
    EXPECT_GT(lost, 10U);
    EXPECT_GT(torn, 10U);
    EXPECT_GT(there, 10U);
}

TEST(SimFile, ANameThatWasNotSynchronizedMayBeLost) {
    unsigned lost = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        sim::world w{seed};
        sim::host& h = w.host("h");
        run_in(w, h, put("/a", "text", true, false));
        h.crash();
        lost += h.read_file("/a") ? 0 : 1;
    }
    EXPECT_GT(lost, 10U);
    EXPECT_LT(lost, 90U);
}

task<int> set_attributes(const char* path) {
    const int fd = co_await io::open(path, O_WRONLY | O_CLOEXEC);
    const int set = co_await io::fsetxattr(fd, "user.one", "safe");
    EXPECT_EQ(set, 0);
    const int synced = co_await io::fsync(fd);
    EXPECT_EQ(synced, 0);
    co_await io::fsetxattr(fd, "user.two", "not");
    co_return co_await io::close(fd);
}

task<int> length_of_attribute(const char* path, const char* name) {
    char value[16];
    co_return co_await io::getxattr(path, name, value);
}

TEST(SimFile, AttributesSurviveACrashAsTheFileDoes) {
    unsigned lost = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        sim::world w{seed};
        sim::host& h = w.host("h");
        h.write_file("/a", "text");
        EXPECT_EQ(run_in(w, h, set_attributes("/a")), 0);
        h.crash();
        h.restart();
        ASSERT_EQ(run_in(w, h, length_of_attribute("/a", "user.one")), 4) << "SEED=" << seed;
        const int other = run_in(w, h, length_of_attribute("/a", "user.two"));
        ASSERT_TRUE(other == 3 || other == -ENODATA) << other;
        lost += other < 0 ? 1 : 0;
    }
    EXPECT_GT(lost, 10U);
    EXPECT_LT(lost, 90U);
}

task<> replace(std::string text) {
    co_await put("/new", std::move(text), true, false);
    const int renamed = co_await io::rename("/new", "/a");
    EXPECT_EQ(renamed, 0);
}

TEST(SimFile, ARenameHappensAsAWholeOrNotAtAll) {
    unsigned old = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        sim::world w{seed};
        sim::host& h = w.host("h");
        h.write_file("/a", "old");
        auto done = h.spawn(replace("new"));
        w.run();
        done.get();
        h.crash();
        const auto text = h.read_file("/a");
        ASSERT_TRUE(text == "old" || text == "new") << "SEED=" << seed;
        old += text == "old" ? 1 : 0;
    }
    EXPECT_GT(old, 10U);
    EXPECT_LT(old, 90U);
}

task<int> try_open(const char* path, int flags) {
    const int fd = co_await io::open(path, flags | O_CLOEXEC, 0600);
    if (fd >= 0) {
        co_await io::close(fd);
        co_return 0;
    }
    co_return fd;
}

TEST(SimFile, ErrorsAreThoseOfLinux) {
    sim::world w{1};
    sim::host& h = w.host("h");
    h.write_file("/a", "text");
    EXPECT_EQ(run_in(w, h, try_open("/b", O_RDONLY)), -ENOENT);
    EXPECT_EQ(run_in(w, h, try_open("/a/b", O_RDONLY)), -ENOTDIR);
    EXPECT_EQ(run_in(w, h, try_open("/a", O_WRONLY | O_CREAT | O_EXCL)), -EEXIST);
    EXPECT_EQ(run_in(w, h, try_open("/tmp", O_WRONLY)), -EISDIR);
    EXPECT_EQ(run_in(w, h, try_open("/a", O_RDONLY | O_DIRECTORY)), -ENOTDIR);
    EXPECT_EQ(run_in(w, h, try_open("/dev/null", O_RDWR)), 0);
}

task<int> fill_disk() {
    const int fd = co_await io::open("/a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::string piece(100'000, 'x');
    int result = 0;
    for (::off_t at = 0; result >= 0; at += result) {
        result = co_await io::write(fd, piece, at);
    }
    co_await io::close(fd);
    co_return result;
}

TEST(SimFile, ADiskGetsFull) {
    sim::world_options options;
    options.disk.capacity = 1'000'000;
    sim::world w(1, options);
    EXPECT_EQ(run_in(w, w.host("h"), fill_disk()), -ENOSPC);
}

} // namespace
