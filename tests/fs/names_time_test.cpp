// File times at the limits of the clocks, and the current and the temporary directory, which are
// properties of the process.

#include "fs/names_support.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>

using namespace coil;
using namespace names_test;

namespace {

TEST(NamesTime, TimesAreThoseOfTheStandardLibraryToTheNanosecond) {
    const temporary_tree tree(0);
    const path p = tree.root() / "file";
    std::ofstream(p) << "content";
    io_context context;
    constexpr std::int64_t last_second = 9'223'372'036; // the last second representable as
                                                        // nanoseconds since 1970
    constexpr std::int64_t year = 31'556'952;
    int kept = 0;
    for (const std::int64_t second :
         {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1}, std::int64_t{6'437'664'000}, -year,
          -69 * year, 200 * year, last_second - 1, last_second, last_second + 1, 400 * year}) {
        for (const long nanosecond : {0L, 1L, 999'999'999L}) {
            const ::timespec times[] = {{0, UTIME_OMIT}, {second, nanosecond}};
            if (::utimensat(AT_FDCWD, p.c_str(), times, 0) != 0) {
                continue; // not supported by this file system
            }
            SCOPED_TRACE(testing::Message() << second << " s, " << nanosecond << " ns");
            ++kept;
            EXPECT_EQ(say([&] { return stdfs::last_write_time(p); }),
                      coil_test::run_on(context, say_in_coil(fs::last_write_time(p))));
            EXPECT_EQ(
                say_code([&](auto& ec) { return stdfs::last_write_time(p, ec); }),
                say_code_in_coil(context, [&](auto& ec) { return fs::last_write_time(p, ec); }));
        }
    }
    EXPECT_GT(kept, 15);
}

TEST(NamesTime, ReturnsTheTimeThatWasSet) {
    const temporary_tree tree(0);
    const path p = tree.root() / "file";
    std::ofstream(p) << "content";
    using clock = stdfs::file_time_type::clock;
    const auto time = clock::from_sys(std::chrono::sys_time<std::chrono::nanoseconds>(
        std::chrono::nanoseconds(1'234'567'890'123'456'789)));
    coil::run([](path file, stdfs::file_time_type t) -> task<> {
        co_await fs::last_write_time(file, t);
        const stdfs::file_time_type now = co_await fs::last_write_time(file);
        EXPECT_EQ(now, t);
    }(p, time));
}

TEST(NamesTime, ATimeBeforeTheRangeOfTheClockIsAnError) {
    // Most file systems do not support such times; tmpfs does.
    const temporary_tree tree(0, "/dev/shm");
    const path p = tree.root() / "file";
    std::ofstream(p) << "content";
    const ::timespec times[] = {{0, UTIME_OMIT}, {-8'000'000'000, 0}};
    struct ::stat st{};
    if (::utimensat(AT_FDCWD, p.c_str(), times, 0) != 0 || ::stat(p.c_str(), &st) != 0 ||
        st.st_mtim.tv_sec != times[1].tv_sec) {
        GTEST_SKIP() << "this file system does not support times of the year 1716";
    }
    io_context context;
    EXPECT_EQ(say_code_in_coil(context, [&](auto& ec) { return fs::last_write_time(p, ec); }).code,
              std::errc::value_too_large);
}

TEST(NamesPlace, TheCurrentDirectoryIsThatOfTheProcess) {
    const temporary_tree tree(0);
    const inside here(tree.root());
    stdfs::create_directory("d");
    std::ofstream("f") << "content";
    io_context context;
    for (const path p : {"f", "gone", "", "d"}) {
        SCOPED_TRACE(p);
        const path before = stdfs::current_path();
        said expected = say_code([&](auto& ec) { stdfs::current_path(p, ec); });
        stdfs::current_path(before);
        EXPECT_EQ(say_code_in_coil(context, [&](auto& ec) { return fs::current_path(p, ec); }),
                  expected);
        const path after = stdfs::current_path();
        stdfs::current_path(before);
        const said thrown = coil_test::run_on(context, say_in_coil(fs::current_path(p)));
        EXPECT_EQ(thrown.code, expected.code);
        EXPECT_EQ(thrown.path1, thrown.code ? p : path());
        EXPECT_EQ(stdfs::current_path(), after);
        EXPECT_EQ(coil_test::run_on(context, say_in_coil(fs::current_path())),
                  say([] { return stdfs::current_path(); }));
    }
    // A current directory that has been removed.
    stdfs::remove(stdfs::current_path());
    EXPECT_EQ(coil_test::run_on(context, say_in_coil(fs::current_path())),
              say([] { return stdfs::current_path(); }));
    EXPECT_EQ(say_code_in_coil(context, [](auto& ec) { return fs::absolute("x", ec); }),
              say_code([](auto& ec) { return stdfs::absolute("x", ec); }));
    EXPECT_EQ(say_code_in_coil(context, [](auto& ec) { return fs::create_directories("x/y", ec); }),
              say_code([](auto& ec) { return stdfs::create_directories("x/y", ec); }));
}

/// Sets an environment variable for a scope.
class environment {
public:
    environment(const char* name, const char* value) : name_(name) {
        if (const char* const before = std::getenv(name)) {
            before_ = before;
            was_set_ = true;
        }
        value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
    }
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    ~environment() { was_set_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }

private:
    const char* name_;
    std::string before_;
    bool was_set_ = false;
};

TEST(NamesPlace, TheTemporaryDirectoryIsTheOneOfTheEnvironment) {
    const temporary_tree tree(0);
    std::ofstream(tree.root() / "file") << "content";
    io_context context;
    const auto ask = [&] {
        const said expected = say_code([](auto& ec) { return stdfs::temp_directory_path(ec); });
        EXPECT_EQ(say_code_in_coil(context, [](auto& ec) { return fs::temp_directory_path(ec); }),
                  expected);
        // The paths of an exception differ between versions of the standard library.
        const said thrown = coil_test::run_on(context, say_in_coil(fs::temp_directory_path()));
        EXPECT_EQ(thrown.code, expected.code);
        EXPECT_EQ(thrown.value, say([] { return stdfs::temp_directory_path(); }).value);
    };
    const std::string file = tree.root() / "file";
    for (const char* const value : {tree.root().c_str(), file.c_str(), "/nonexistent-coil", ""}) {
        SCOPED_TRACE(value);
        const environment set("TMPDIR", value);
        ask();
    }
    const environment unset("TMPDIR", nullptr);
    ask();
    for (const char* const name : {"TEMPDIR", "TEMP", "TMP"}) { // each has precedence over the
                                                                // previous one
        ::setenv(name, tree.root().c_str(), 1);
        ask();
        ::setenv(name, file.c_str(), 1);
        ask();
    }
    for (const char* const name : {"TEMPDIR", "TEMP", "TMP"}) {
        ::unsetenv(name);
    }
}

} // namespace
