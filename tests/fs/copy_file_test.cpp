#include "files.hpp"
#include "needs_fork.hpp"
#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"
#include "support/seccomp.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace coil;
using coil_test::content_of;
using coil_test::pattern;
using coil_test::scratch;
using options = fs::copy_options;

/// Creates the files that a copy may encounter; deterministic.
void furnish(const std::filesystem::path& dir) {
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir / "dir");
    static const std::string some = pattern(10'000);
    coil_test::put(dir / "a", some);
    coil_test::put(dir / "b", "b");
    coil_test::put(dir / "empty", "");
    coil_test::put(dir / "newest", "n");
    ::chmod((dir / "b").c_str(), 04750);
    const auto time = std::filesystem::last_write_time(dir / "a");
    for (const char* const as_old : {"b", "empty"}) {
        std::filesystem::last_write_time(dir / as_old, time);
    }
    std::filesystem::last_write_time(dir / "newest", time + std::chrono::nanoseconds(1));
    ::mkfifo((dir / "fifo").c_str(), 0600);
    std::filesystem::create_symlink("a", dir / "link");
    std::filesystem::create_symlink("none", dir / "dangling");
    std::filesystem::create_symlink("loop", dir / "loop");
    std::filesystem::create_hard_link(dir / "a", dir / "hard");
}

std::string state_of(const std::filesystem::path& dir) {
    std::ostringstream all;
    std::set<std::filesystem::path> sorted;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
        sorted.insert(entry.path().filename());
    }
    for (const auto& name : sorted) {
        const auto status = std::filesystem::symlink_status(dir / name);
        all << name << ' ' << static_cast<int>(status.type()) << ' '
            << static_cast<unsigned>(status.permissions());
        if (std::filesystem::is_regular_file(status)) {
            all << ' ' << std::hash<std::string>()(content_of(dir / name));
        }
        all << '\n';
    }
    return all.str();
}

struct outcome {
    bool copied = false;
    std::error_code error;
    std::string thrown;
    std::string state;

    bool operator==(const outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const outcome& o) {
    return out << o.copied << ' ' << o.error << ' ' << o.thrown << '\n' << o.state;
}

template <class Plain, class Throwing>
outcome outcome_of(const std::filesystem::path& dir, bool both, Plain plain, Throwing throwing) {
    outcome found;
    furnish(dir);
    found.error = std::make_error_code(std::errc::interrupted); // must be cleared
    found.copied = plain(found.error);
    found.state = state_of(dir);
    if (!both) {
        return found;
    }
    furnish(dir);
    try {
        EXPECT_EQ(throwing(), found.copied);
    } catch (const std::filesystem::filesystem_error& e) {
        found.thrown = e.code().message() + " " + e.path1().string() + " " + e.path2().string();
    }
    EXPECT_EQ(state_of(dir), found.state);
    return found;
}

TEST(FsCopyFile, DoesWhatTheStandardLibraryDoes) {
    const scratch here;
    const fs::path dir = here / "d";
    const std::array names{"a",        "b",    "empty", "newest", "dir", "link",
                           "dangling", "loop", "hard",  "none",   "a/x"};
    const std::array targets{"new",      "a",    "b",    "dir",    "newest", "link",
                             "dangling", "loop", "fifo", "none/x", "a/x"};
    const std::array all_options{options::none, options::skip_existing, options::overwrite_existing,
                                 options::update_existing};
    io_context context;
    unsigned count = 0;
    for (const std::string name : names) {
        for (const std::string target : targets) {
            for (const options how : all_options) {
                const fs::path from = dir / name;
                const fs::path to = dir / target;
                const bool both = coil_test::long_run() || ++count % 5 == 0;
                const outcome standard = outcome_of(
                    dir, both,
                    [&](std::error_code& ec) {
                        return std::filesystem::copy_file(from, to, how, ec);
                    },
                    [&] { return std::filesystem::copy_file(from, to, how); });
                const outcome ours = outcome_of(
                    dir, both,
                    [&](std::error_code& ec) {
                        return coil_test::run_on(context, fs::copy_file(from, to, how, ec));
                    },
                    [&] { return coil_test::run_on(context, fs::copy_file(from, to, how)); });
                EXPECT_EQ(ours, standard)
                    << name << " to " << target << ", " << static_cast<int>(how);
            }
        }
    }
}

TEST(FsCopyFile, SourcesAndTargetsThatMayNotBeOpened) {
    FS_TEST_NEEDS_FORK();
    EXPECT_EQ(coil_test::in_child([]() -> std::string {
                  const scratch dir;
                  coil_test::put(dir / "secret", "s");
                  coil_test::put(dir / "a", "a");
                  coil_test::put(dir / "closed", "c");
                  ::chmod((dir / "secret").c_str(), 0);
                  ::chmod((dir / "closed").c_str(), 0444);
                  if (::geteuid() == 0 && (::chown(dir.path().c_str(), 12345, 12345) != 0 ||
                                           ::setresgid(12345, 12345, 12345) != 0 ||
                                           ::setresuid(12345, 12345, 12345) != 0)) {
                      return "cannot become another user";
                  }
                  std::string wrong;
                  const auto compare = [&](const char* from, const char* to, options how) {
                      std::error_code standard;
                      std::error_code ours;
                      std::filesystem::copy_file(dir / from, dir / to, how, standard);
                      coil::run(fs::copy_file(dir / from, dir / to, how, ours));
                      if (standard != ours || !ours) {
                          wrong += std::string(from) + ": " + ours.message() + " ";
                      }
                  };
                  compare("secret", "new", options::none);
                  compare("a", "closed", options::overwrite_existing);
                  ::chmod(dir.path().c_str(), 0500);
                  compare("a", "new", options::none);
                  ::chmod(dir.path().c_str(), 0600);
                  compare("a", "new", options::none);
                  ::chmod(dir.path().c_str(), 0700);
                  return wrong;
              }),
              "");
}

/// A file with holes.
std::string holey(std::size_t size) {
    std::string made(size, '\0');
    for (const std::size_t at :
         {std::size_t{1} << 20, std::size_t{5} << 20, std::size_t{9} << 20}) {
        if (at + 100'000 < size) {
            const std::string data = pattern(100'000);
            std::copy(data.begin(), data.end(), made.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }
    return made;
}

void put_holey(const fs::path& p, std::size_t size) {
    const std::string all = holey(size);
    const coil_test::descriptor fd(
        ::open(p.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    ASSERT_EQ(::ftruncate(fd, static_cast<::off_t>(size)), 0);
    constexpr std::size_t block = 4096;
    for (std::size_t at = 0; at < size; at += block) {
        const std::string_view part = std::string_view(all).substr(at, block);
        if (part.find_first_not_of('\0') != std::string_view::npos) {
            ASSERT_EQ(::pwrite(fd, part.data(), part.size(), static_cast<::off_t>(at)),
                      static_cast<::ssize_t>(part.size()));
        }
    }
}

void holes_stay(const scratch& from, const scratch& to) {
    for (const std::size_t size :
         {std::size_t{20'000'001}, (std::size_t{9} << 20) + 200'000, std::size_t{500'000}}) {
        put_holey(from / "holes", size);
        EXPECT_TRUE(
            coil::run(fs::copy_file(from / "holes", to / "copy", options::overwrite_existing)));
        EXPECT_EQ(content_of(to / "copy") == holey(size), true) << size;
        struct ::stat a{};
        struct ::stat b{};
        ASSERT_EQ(::stat((from / "holes").c_str(), &a), 0);
        ASSERT_EQ(::stat((to / "copy").c_str(), &b), 0);
        EXPECT_LE(b.st_blocks, a.st_blocks + 64) << size;
    }
}

TEST(FsCopyFile, HolesStayHoles) {
    const scratch dir;
    holes_stay(dir, dir);
}

TEST(FsCopyFile, HolesStayHolesBetweenFileSystems) {
    const scratch dir("coil-copy-" + std::to_string(::getpid()));
    const scratch memory("/dev/shm/coil-copy-" + std::to_string(::getpid()));
    struct ::stat a{};
    struct ::stat b{};
    ASSERT_EQ(::stat(dir.path().c_str(), &a), 0);
    ASSERT_EQ(::stat(memory.path().c_str(), &b), 0);
    if (a.st_dev == b.st_dev) {
        GTEST_SKIP() << "the current directory and /dev/shm are on the same file system";
    }
    holes_stay(dir, memory);
    holes_stay(memory, dir);
    for (const std::size_t size : {0UL, 1UL, 65'535UL, 65'536UL, 65'537UL, 20'000'000UL}) {
        coil_test::put(memory / "f", pattern(size));
        EXPECT_TRUE(coil::run(fs::copy_file(memory / "f", dir / "f", options::overwrite_existing)));
        EXPECT_EQ(content_of(dir / "f") == pattern(size), true) << size;
    }
}

TEST(FsCopyFile, CopiesFilesWithAReportedSizeOfZero) {
    const scratch dir;
    EXPECT_TRUE(coil::run(fs::copy_file("/proc/kallsyms", dir / "k")));
    EXPECT_EQ(content_of(dir / "k") == content_of("/proc/kallsyms"), true);
    if (std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled")) {
        const char* const name = "/sys/kernel/mm/transparent_hugepage/enabled";
        EXPECT_TRUE(coil::run(fs::copy_file(name, dir / "s"))); // the reported size is 4096
        EXPECT_EQ(content_of(dir / "s"), content_of(name));
    }
}

TEST(FsCopyFile, ReportsItsProgressOnTheContext) {
    const scratch dir;
    const std::string large = pattern(50'000'000);
    coil_test::put(dir / "a", large);
    const std::thread::id here = std::this_thread::get_id();
    std::vector<std::uintmax_t> told;
    const auto progress = [&](std::uintmax_t done, std::uintmax_t total) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        EXPECT_EQ(total, large.size());
        told.push_back(done);
    };
    EXPECT_TRUE(coil::run(fs::copy_file(dir / "a", dir / "b", options::none, progress)));
    EXPECT_EQ(content_of(dir / "b") == large, true);
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back(), large.size());
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    // There is only the final report if the file system shares blocks.
    EXPECT_TRUE(told.size() == 1 || told.size() == 3 || told.size() == 4) << told.size();

    told.clear();
    EXPECT_FALSE(coil::run(fs::copy_file(dir / "a", dir / "b", options::skip_existing, progress)));
    EXPECT_TRUE(told.empty());
}

TEST(FsCopyFile, G12_AnExceptionOfProgressIsRethrown) {
    const scratch dir;
    coil_test::put(dir / "a", pattern(50'000'000));
    const auto progress = [](std::uintmax_t, std::uintmax_t) {
        throw std::runtime_error("enough");
    };
    EXPECT_THROW(coil::run(fs::copy_file(dir / "a", dir / "b", options::none, progress)),
                 std::runtime_error);
}

task<> copy_into(fs::path from, fs::path to, fs::copy_file_progress progress, std::error_code& ec) {
    co_await fs::copy_file(std::move(from), std::move(to), options::none, std::move(progress), ec);
}

TEST(FsCopyFile, G3_IsCancelledInTheMiddle) {
    const scratch dir;
    put_holey(dir / "a", 40'000'000);
    coil_test::put(dir / "a", pattern(80'000'000));
    io_context context;
    std::error_code ec;
    inplace_stop_source stop;
    std::uintmax_t reached = 0;
    context.co_spawn(copy_into(
                         dir / "a", dir / "b",
                         [&](std::uintmax_t done, std::uintmax_t) {
                             reached = done;
                             stop.request_stop();
                         },
                         ec),
                     stop.get_token());
    context.run();
    if (reached == 80'000'000) {
        GTEST_SKIP() << "the file was copied in one step";
    }
    EXPECT_EQ(ec, std::errc::operation_canceled);
    EXPECT_EQ(std::filesystem::file_size(dir / "b"), reached); // the part copied so far remains
}

TEST(FsCopyFile, G5_IsDestroyedInTheMiddle) {
    const scratch dir;
    coil_test::put(dir / "a", pattern(80'000'000));
    io_context context;
    std::error_code ec;
    context.co_spawn(copy_into(
        dir / "a", dir / "b", [&](std::uintmax_t, std::uintmax_t) { context.stop(); }, ec));
    context.run(); // must not leak a descriptor
    EXPECT_LE(std::filesystem::file_size(dir / "b"), 80'000'000U);
}

TEST(FsCopyFile, AFullFileSystemIsAnErrorOfEachFunction) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitizer's threads do not survive a fork";
    }
    const scratch dir;
    const std::string complaint = coil_test::in_child([&]() -> std::string {
        if (::unshare(CLONE_NEWNS) != 0 ||
            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=4m") != 0) {
            return std::string("SKIP: cannot mount: ") + std::strerror(errno);
        }
        const scratch outside;
        coil_test::put(outside / "large", pattern(20'000'000));
        put_holey(outside / "holes", 20'000'000);
        std::error_code ec;
        std::string wrong;
        const auto expect_full = [&](const char* what) {
            if (ec != std::errc::no_space_on_device) {
                wrong += std::string(what) + ": " + ec.message() + "; ";
            }
        };
        coil::run(fs::copy_file(outside / "large", dir / "a", ec));
        expect_full("copy_file between file systems");
        std::filesystem::remove(dir / "a");
        coil::run(fs::copy_file(outside / "holes", dir / "a", ec));
        wrong += ec ? "a file that fits was refused: " + ec.message() : "";
        std::filesystem::remove(dir / "a");

        coil::run(fs::write_file(dir / "a", pattern(2'500'000), fs::atomic_replace, ec));
        wrong += ec ? "a file that fits was refused: " + ec.message() : "";
        coil::run(fs::copy_file(dir / "a", dir / "b", ec));
        expect_full("copy_file");
        std::filesystem::remove(dir / "b");
        coil::run(fs::write_file(dir / "a", pattern(3'000'000), fs::atomic_replace, ec));
        expect_full("replace");
        if (content_of(dir / "a") != pattern(2'500'000)) {
            wrong += "the old content is gone; ";
        }
        if (dir.names().size() != 1) {
            wrong += "a temporary file is left; ";
        }
        coil::run(fs::write_file(dir / "b", pattern(3'000'000), ec));
        expect_full("write_file");
        return wrong;
    });
    if (complaint.starts_with("SKIP: ")) {
        GTEST_SKIP() << complaint.substr(6);
    }
    EXPECT_EQ(complaint, "");
}

/// A file system in user space may return EAGAIN from any call; it must not be taken for a target
/// that was replaced.
TEST(FsCopyFile, ReportsEAGAINOfACall) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    coil_test::put(dir / "a", "new");
    coil_test::put(dir / "b", "old");
    const std::string complaint = coil_test::in_child([&]() -> std::string {
        if (!coil_test::forbid(SYS_ftruncate, EAGAIN)) {
            return "SKIP: no filter can be installed";
        }
        std::error_code ec;
        coil::run(fs::copy_file(dir / "a", dir / "b", options::overwrite_existing, ec));
        return ec == std::errc::resource_unavailable_try_again ? "" : ec.message();
    });
    if (complaint.starts_with("SKIP: ")) {
        GTEST_SKIP() << complaint.substr(6);
    }
    EXPECT_EQ(complaint, "");
}

} // namespace
