#include "files.hpp"
#include "needs_fork.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"
#include "support/seccomp.hpp"
#include "trees.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// How the functions on trees open files: with openat2(2), or equally well without it.

namespace {

using namespace coil;
using namespace fs_test;
using namespace std::chrono_literals;
using coil_test::content_of;
using coil_test::scratch;

/// The names that std::filesystem finds below `top`.
std::string names_below(const stdfs::path& top) {
    std::set<std::string> names;
    for (const auto& entry : stdfs::recursive_directory_iterator(top)) {
        names.insert(entry.path().lexically_relative(top));
    }
    std::string all;
    for (const std::string& name : names) {
        all += name + '\n';
    }
    return all;
}

/// The names that fs::walk() finds.
task<std::string> walked_below(fs::path top) {
    std::set<std::string> names;
    auto tree = fs::walk(top);
    while (auto entry = co_await tree.next()) {
        names.insert(entry->path().lexically_relative(top));
    }
    std::string all;
    for (const std::string& name : names) {
        all += name + '\n';
    }
    co_return all;
}

/// Calls every function on a tree. `dir` has a tree "from" with these names. Returns the failures.
std::string use_all_functions(const stdfs::path& dir, const std::string& names) {
    std::string wrong;
    const auto expect_tree = [&](const char* name, const char* what) {
        if (coil::run(walked_below(dir / name)) != names) {
            wrong += std::string(what) + "; ";
        }
    };
    expect_tree("from", "walk");
    coil::run(fs::copy_tree(dir / "from", dir / "tree"));
    expect_tree("tree", "copy_tree");
    coil::run(fs::copy(dir / "from", dir / "copy",
                       fs::copy_options::recursive | fs::copy_options::copy_symlinks));
    expect_tree("copy", "copy");
    coil::run(fs::copy_file(dir / "from/one", dir / "file"));
    coil::run(fs::create_directories(dir / "made/by/this/test"));
    coil::run(fs::write_file(dir / "file", "replaced", fs::atomic_replace));
    coil::run(fs::write_file(dir / "new", "created", fs::atomic_replace));
    if (content_of(dir / "file") != "replaced" || content_of(dir / "new") != "created") {
        wrong += "atomic_replace; ";
    }
    for (const char* const name : {"tree", "copy", "made"}) {
        coil::run(fs::remove_all(dir / name));
        if (stdfs::exists(dir / name)) {
            wrong += "remove_all; ";
        }
    }
    std::error_code ec;
    stdfs::create_directory_symlink(dir / "from", dir / "link");
    coil::run(fs::copy_tree(dir / "link/", dir / "tree", ec));
    expect_tree("tree", "copy_tree of a link with a slash");
    stdfs::create_directory(dir / "to");
    stdfs::create_directory_symlink(dir / "to", dir / "link_to");
    coil::run(fs::copy_tree(dir / "from", dir / "link_to/", ec));
    expect_tree("to", "copy_tree to a link with a slash");
    stdfs::create_directory(dir / "to/below");
    coil::run(fs::copy_tree(dir / "from/.", dir / "to/below/..", ec));
    return wrong + (ec == std::errc::file_exists ? "" : "copy_tree with dots: " + ec.message());
}

/// Makes every openat(2) fail that must not leave its directory: with O_NOFOLLOW, or with O_CREAT
/// and O_EXCL.
bool forbid_openat_of_entries() {
    constexpr unsigned flags_at = offsetof(::seccomp_data, args[2]);
    ::sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags_at),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_NOFOLLOW, 2, 0),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_CREAT | O_EXCL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_CREAT | O_EXCL, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EUCLEAN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const ::sock_fprog filter{sizeof program / sizeof *program, program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

class FsOpening : public testing::Test {
protected:
    FsOpening() {
        random_tree(dir_ / "from", 5, 40, 200);
        coil_test::put(dir_ / "from/one", "one");
    }
    const scratch dir_;
};

TEST_F(FsOpening, EntriesOfTreesAreOpenedByOpenat2) {
    FS_TEST_NEEDS_FORK();
    if (::syscall(SYS_openat2, -1, nullptr, nullptr, 0) < 0 &&
        (errno == ENOSYS || errno == EPERM)) {
        GTEST_SKIP() << "the kernel, or a filter, has no openat2(2)";
    }
    const std::string names = names_below(dir_ / "from");
    EXPECT_EQ(coil_test::in_child([&]() -> std::string {
                  if (!forbid_openat_of_entries()) {
                      return "no filter can be installed";
                  }
                  if (::openat(AT_FDCWD, "/", O_RDONLY | O_NOFOLLOW) != -1 || errno != EUCLEAN) {
                      return "the filter has no effect";
                  }
                  return use_all_functions(dir_.path(), names);
              }),
              "");
}

TEST_F(FsOpening, AllFunctionsWorkWithoutOpenat2) {
    FS_TEST_NEEDS_FORK();
    for (const unsigned error : {ENOSYS, EPERM}) {
        const stdfs::path dir = dir_ / std::to_string(error);
        stdfs::create_directory(dir);
        random_tree(dir / "from", 5, 40, 200);
        coil_test::put(dir / "from/one", "one");
        const std::string names = names_below(dir / "from");
        EXPECT_EQ(coil_test::in_child([&]() -> std::string {
                      if (!coil_test::forbid(SYS_openat2, error)) {
                          return "no filter can be installed";
                      }
                      if (::syscall(SYS_openat2, -1, nullptr, nullptr, 0) != -1 ||
                          errno != static_cast<int>(error)) {
                          return "the filter has no effect";
                      }
                      return use_all_functions(dir, names);
                  }),
                  "")
            << std::strerror(static_cast<int>(error));
    }
}

/// A file with a lease that is not released when the kernel asks for it with SIGIO.
class leased {
public:
    explicit leased(const stdfs::path& p) : fd_(::open(p.c_str(), O_RDWR | O_CLOEXEC)) {
        ::signal(SIGIO, SIG_IGN);
        holds_ = ::fcntl(fd_, F_SETLEASE, F_WRLCK) == 0;
    }
    leased(const leased&) = delete;
    leased& operator=(const leased&) = delete;
    ~leased() {
        release();
        ::signal(SIGIO, SIG_DFL);
    }
    [[nodiscard]] bool holds() const { return holds_; }
    void release() const { ::fcntl(fd_, F_SETLEASE, F_UNLCK); }

private:
    const coil_test::descriptor fd_;
    bool holds_ = false;
};

template <class Copy>
void expect_stop_ends(Copy copy) {
    const auto began = std::chrono::steady_clock::now();
    std::error_code ec;
    try {
        coil::run([](Copy f) -> task<> { co_await coil::timeout(f(), 50ms); }(copy));
    } catch (const std::system_error& e) {
        ec = e.code();
    }
    EXPECT_EQ(ec, std::errc::timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 10s); // a lease lasts up to 45 s
}

TEST(FsLeases, AStopRequestEndsACopyThatWaitsForALease) {
    const scratch dir;
    stdfs::create_directory(dir / "from");
    coil_test::put(dir / "from/file", "content");
    const leased lease(dir / "from/file");
    if (!lease.holds()) {
        GTEST_SKIP() << "the file system has no leases";
    }
    expect_stop_ends([&]() -> task<> { co_await fs::copy_file(dir / "from/file", dir / "copy"); });
    expect_stop_ends([&]() -> task<> { co_await fs::copy_tree(dir / "from", dir / "tree"); });
    expect_stop_ends([&]() -> task<> { co_await fs::copy(dir / "from/file", dir / "other"); });
}

task<> release_later(const leased& lease) {
    co_await sleep_for(30ms);
    lease.release();
}

TEST(FsLeases, ACopyWaitsForTheEndOfALease) {
    const scratch dir;
    coil_test::put(dir / "file", "content");
    const leased lease(dir / "file");
    if (!lease.holds()) {
        GTEST_SKIP() << "the file system has no leases";
    }
    coil::run([](const scratch& d, const leased& l) -> task<> {
        co_await when_all(fs::copy_file(d / "file", d / "copy"), release_later(l));
    }(dir, lease));
    EXPECT_EQ(content_of(dir / "copy"), "content");
}

/// A directory with two files that are leased: a copy of it has to wait for both.
class FsLeasedFiles : public testing::Test {
protected:
    FsLeasedFiles() {
        stdfs::create_directory(dir_ / "from");
        for (const char* const name : {"one", "other"}) {
            coil_test::put(dir_ / "from" / name, name);
        }
    }
    const scratch dir_;
};

task<> release_when_threads_are_free(const leased& one, const leased& other, bool& were_free) {
    for (int i = 0; i < 2000 && !were_free; ++i) {
        co_await sleep_for(1ms);
        const blocking_pool_metrics pool = default_blocking_pool().metrics();
        were_free = i > 20 && pool.threads == pool.idle_threads;
    }
    one.release();
    other.release();
}

TEST_F(FsLeasedFiles, HoldNoThreadOfThePool) {
    const leased one(dir_ / "from/one");
    const leased other(dir_ / "from/other");
    if (!one.holds() || !other.holds()) {
        GTEST_SKIP() << "the file system has no leases";
    }
    bool were_free = false;
    coil::run([](const scratch& d, const leased& l, const leased& m, bool& free) -> task<> {
        co_await when_all(
            fs::copy_file(d / "from/one", d / "copy"), fs::copy_tree(d / "from", d / "tree"),
            fs::copy(d / "from/other", d / "other"), release_when_threads_are_free(l, m, free));
    }(dir_, one, other, were_free));
    EXPECT_TRUE(were_free);
    EXPECT_EQ(content_of(dir_ / "copy"), "one");
    EXPECT_EQ(content_of(dir_ / "tree/one"), "one");
    EXPECT_EQ(content_of(dir_ / "tree/other"), "other");
    EXPECT_EQ(content_of(dir_ / "other"), "other");
}

} // namespace
