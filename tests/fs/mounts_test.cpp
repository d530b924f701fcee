#include "files.hpp"
#include "other_users.hpp"
#include "trees.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// File systems that only this process sees: an overlay, a full one; and append-only directories.

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::content_of;
using coil_test::put;
using coil_test::scratch;

/// Runs `f` in a process with a new tmpfs at `at`. Returns the complaint.
std::string with_memory(const stdfs::path& at, const std::string& options,
                        const std::function<std::string()>& f) {
    return coil_test::in_child([&]() -> std::string {
        if (std::string refusal = have_private_mounts(); !refusal.empty()) {
            return refusal;
        }
        stdfs::create_directory(at);
        if (::mount("none", at.c_str(), "tmpfs", 0, options.c_str()) != 0) {
            return std::string("SKIP: cannot mount a tmpfs: ") + std::strerror(errno);
        }
        return f();
    });
}

#define EXPECT_NO_COMPLAINT(expression)                                                            \
    if (const std::string complaint = (expression); complaint.starts_with("SKIP: ")) {             \
        GTEST_SKIP() << complaint.substr(6);                                                       \
    } else /* NOLINT(*-else-after-return) */                                                       \
        EXPECT_EQ(complaint, "")

constexpr int deep = 400; // levels; at most 10 directories are open at a time

void allow_few_descriptors() {
    const ::rlimit few{40, 40};
    ::setrlimit(RLIMIT_NOFILE, &few);
}

/// Likewise with an overlay at `all`, whose lower directory has a directory with a file, and deep
/// trees.
std::string with_overlay(const std::function<std::string(const stdfs::path& all)>& f) {
    const scratch dir;
    const stdfs::path base = dir / "base";
    return with_memory(base, "", [&]() -> std::string {
        for (const char* const name : {"lower", "upper", "work", "all"}) {
            stdfs::create_directory(base / name);
        }
        stdfs::create_directory(base / "lower/d");
        put(base / "lower/d/f", "12345");
        stdfs::path below = "d";
        for (int i = 1; i < deep; ++i) {
            below /= "d";
        }
        stdfs::create_directories(base / "lower/from" / below);
        stdfs::create_directories(base / "lower/to" / below);
        put(base / "lower/from" / below / "f", "new");
        const std::string options = "lowerdir=" + (base / "lower").native() +
                                    ",upperdir=" + (base / "upper").native() +
                                    ",workdir=" + (base / "work").native();
        if (::mount("overlay", (base / "all").c_str(), "overlay", 0, options.c_str()) != 0) {
            return std::string("SKIP: cannot mount an overlay: ") + std::strerror(errno);
        }
        allow_few_descriptors();
        return f(base / "all");
    });
}

task<std::string> size_after_a_change(fs::path all) {
    std::optional<fs::directory_entry> found;
    {
        auto tree = fs::walk(all / "d");
        while (auto entry = co_await tree.next()) {
            found = *entry;
        }
    }
    put(all / "d/new", "copies the directory to the upper layer");
    std::error_code ec;
    const std::uintmax_t size = co_await found->file_size(ec);
    const bool is_new = found->path().filename() == "new";
    co_return ec ? ec.message() : size == 5 && !is_new ? "" : "wrong size";
}

TEST(FsOverlay, AnEntryIsUsableAfterItsDirectoryIsCopiedUp) {
    FS_TEST_NEEDS_FORK();
    EXPECT_NO_COMPLAINT(
        with_overlay([](const stdfs::path& all) { return coil::run(size_after_a_change(all)); }));
}

TEST(FsOverlay, RemoveAllOfADeepImageDirectory) {
    FS_TEST_NEEDS_FORK();
    EXPECT_NO_COMPLAINT(with_overlay([](const stdfs::path& all) {
        std::error_code ec;
        const std::uintmax_t removed = coil::run(fs::remove_all(all / "from", ec));
        return ec                            ? ec.message()
               : removed != deep + 2         ? "removed " + std::to_string(removed)
               : stdfs::exists(all / "from") ? "still there"
                                             : std::string();
    }));
}

TEST(FsOverlay, CopyTreeIntoADeepImageDirectory) {
    FS_TEST_NEEDS_FORK();
    EXPECT_NO_COMPLAINT(with_overlay([](const stdfs::path& all) {
        fs::copy_tree_options options;
        options.times = true;
        std::error_code ec;
        coil::run(fs::copy_tree(all / "from", all / "to", options, ec));
        return ec ? ec.message() : std::string();
    }));
}

TEST(FsFull, AReplacedHardLinkStaysIfItsCopyCannotBeCreated) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    const stdfs::path base = dir / "base";
    EXPECT_NO_COMPLAINT(with_memory(base, "nr_inodes=40", [&]() -> std::string {
        stdfs::create_directory(dir / "from");
        put(dir / "from/f", "new");
        stdfs::create_directory(base / "to");
        put(base / "to/f", "old");
        stdfs::create_hard_link(base / "to/f", base / "other");
        for (int i = 0; i < 100; ++i) {
            put(base / ("filler" + std::to_string(i)), "");
        }
        fs::copy_tree_options options;
        options.options |= fs::copy_options::overwrite_existing;
        std::error_code ec;
        coil::run(fs::copy_tree(dir / "from", base / "to", options, ec));
        std::string wrong = ec == std::errc::no_space_on_device ? "" : "error " + ec.message();
        wrong += content_of(base / "to/f") == "old" ? "" : ", the name is lost";

        stdfs::remove(base / "filler0");
        coil::run(fs::copy_tree(dir / "from", base / "to", options, ec));
        wrong += ec ? ec.message() : "";
        wrong += content_of(base / "to/f") == "new" ? "" : ", not replaced";
        wrong += content_of(base / "other") == "old" ? "" : ", the other name is overwritten";
        wrong += std::distance(stdfs::directory_iterator(base / "to"), {}) == 1 ? "" : ", remains";
        return wrong;
    }));
}

/// Sets or clears the attribute `a` of chattr(1). Returns false if that is not possible.
bool set_append_only(const stdfs::path& p, bool is_set) {
    const int fd = ::open(p.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int flags = 0;
    bool done = ::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0;
    flags = is_set ? flags | FS_APPEND_FL : flags & ~FS_APPEND_FL;
    done = done && ::ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
    ::close(fd);
    return done;
}

TEST(FsAppendOnly, AtomicReplaceCreatesButDoesNotReplace) {
    const scratch dir;
    stdfs::create_directory(dir / "d");
    put(dir / "d/old", "old");
    if (!set_append_only(dir / "d", true)) {
        GTEST_SKIP() << "this user or file system cannot make a directory append-only";
    }
    std::error_code created;
    std::error_code replaced;
    coil::run(fs::write_file(dir / "d/new", "new", fs::atomic_replace, created));
    coil::run(fs::write_file(dir / "d/old", "new", fs::atomic_replace, replaced));
    set_append_only(dir / "d", false);
    EXPECT_EQ(created, std::error_code());
    EXPECT_EQ(replaced, std::errc::operation_not_permitted);
    EXPECT_EQ(content_of(dir / "d/new"), "new");
    EXPECT_EQ(content_of(dir / "d/old"), "old");
    EXPECT_EQ(std::distance(stdfs::directory_iterator(dir / "d"), {}), 2);
}

} // namespace
