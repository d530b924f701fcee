#include "files.hpp"
#include "support/descriptors.hpp"
#include "trees.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h> // renameat2
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Another user with write permission to a tree exchanges links, directories, files and FIFOs in it
// while the functions of coil::fs work on it. Whatever they return, nothing outside is read,
// written or removed, and they terminate. COIL_SWAP_SECONDS: the duration of each test.

namespace {

using namespace coil;
using namespace fs_test;
using namespace std::chrono_literals;
using coil_test::content_of;
using coil_test::descriptor;
using coil_test::scratch;
using clock_type = std::chrono::steady_clock;

constexpr const char* secret = "what only the owner may read";

std::chrono::milliseconds duration() {
    const char* const said = std::getenv("COIL_SWAP_SECONDS");
    return said == nullptr ? 1500ms : std::chrono::seconds(std::atoi(said));
}

/// The functions work on `tree`, whose entries are exchanged with those of `aside`; `outside` must
/// not be touched.
class arena {
public:
    arena() {
        stdfs::create_directories(dir_ / "outside" / "in");
        for (const char* const name : {"file", "in/file", "x", "in/x", "only", "in/only"}) {
            put_secret(dir_ / "outside" / name);
        }
        stdfs::create_directories(dir_ / "aside");
        create_entries();
    }

    stdfs::path operator/(std::string_view name) const { return dir_ / name; }

    /// Creates the entries of the tree and their replacements, including those removed since.
    void create_entries() const {
        std::error_code ec;
        stdfs::create_directories(dir_ / "tree" / "x" / "in", ec);
        for (const char* const name : {"file", "x/file", "x/in/file", "x/in/x"}) {
            make_new(dir_ / "tree" / name, "harmless", 0644);
        }
        for (const char* const kind : {"link", "directory", "regular", "fifo", "link_to_file"}) {
            make_aside(dir_ / "aside" / kind, kind);
        }
    }

    void expect_outside_untouched() const {
        std::set<std::string> names;
        for (const auto& entry : stdfs::recursive_directory_iterator(dir_ / "outside")) {
            names.insert(entry.path().lexically_relative(dir_ / "outside"));
        }
        ASSERT_EQ(names,
                  (std::set<std::string>{"file", "in", "in/file", "in/only", "in/x", "only", "x"}));
        for (const char* const name : {"file", "in/file", "x", "in/x", "only", "in/only"}) {
            ASSERT_EQ(content_of(dir_ / "outside" / name), secret) << name;
            struct ::stat status{};
            ASSERT_EQ(::stat((dir_ / "outside" / name).c_str(), &status), 0);
            ASSERT_EQ(status.st_mode & 07777U, 0600U) << name;
        }
    }

    /// The copy has no content from outside, and no file that others may read although they may not
    /// read the original.
    static void expect_no_secret_in(const stdfs::path& copy) {
        std::error_code ec;
        for (stdfs::recursive_directory_iterator i(copy, ec), end; i != end; i.increment(ec)) {
            if (i->symlink_status().type() == stdfs::file_type::regular) {
                expect_no_secret(i->path());
            }
        }
    }
    static void expect_no_secret(const stdfs::path& file) {
        const std::string content = content_of(file);
        ASSERT_NE(content, secret) << file;
        struct ::stat status{};
        if (content == "private" && ::lstat(file.c_str(), &status) == 0) {
            ASSERT_EQ(status.st_mode & 0077U, 0U) << file;
        }
    }

private:
    static void put_secret(const stdfs::path& p) {
        coil_test::put(p, secret);
        ::chmod(p.c_str(), 0600);
    }
    /// Only at unused names: existing names may lead outside for a moment.
    static void make_new(const stdfs::path& p, std::string_view content, ::mode_t mode) {
        const int fd = ::open(p.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0) {
            EXPECT_EQ(::write(fd, content.data(), content.size()),
                      static_cast<::ssize_t>(content.size()));
            ::fchmod(fd, mode);
            ::close(fd);
        }
    }
    void make_aside(const stdfs::path& p, std::string_view kind) const {
        std::error_code ec;
        if (stdfs::exists(stdfs::symlink_status(p, ec))) {
            return;
        }
        if (kind == "link") {
            stdfs::create_directory_symlink(dir_ / "outside", p, ec);
        } else if (kind == "link_to_file") {
            stdfs::create_symlink(dir_ / "outside" / "file", p, ec);
        } else if (kind == "directory") {
            stdfs::create_directories(p / "in", ec);
            make_new(p / "file", "harmless", 0644);
        } else if (kind == "regular") {
            make_new(p, "private", 0600);
        } else {
            ::mkfifo(p.c_str(), 0600);
        }
    }

    scratch dir_;
};

/// A thread that exchanges random pairs of names below `top`. It follows no link itself.
class swapper {
public:
    swapper(const stdfs::path& top, std::vector<std::string> here, std::vector<std::string> aside)
        : top_(::open(top.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), here_(std::move(here)),
          aside_(std::move(aside)), thread_([this] { run(); }) {
        while (exchanges_.load() == 0) { // the thread may start late
            std::this_thread::yield();
        }
    }
    swapper(const swapper&) = delete;
    swapper& operator=(const swapper&) = delete;
    ~swapper() {
        over_.store(true);
        thread_.join();
    }

    [[nodiscard]] std::uint64_t exchanges() const { return exchanges_.load(); }

private:
    void run() {
        std::minstd_rand random(1);
        while (!over_.load(std::memory_order_relaxed)) {
            const stdfs::path one = here_[random() / 7 % here_.size()];
            const stdfs::path other = aside_[random() / 7 % aside_.size()];
            for (int times = 0; times < 2; ++times) {
                exchange(one, other);
                for (auto wait = random() / 7 % 2000; wait > 0; --wait) {
                    std::atomic_signal_fence(std::memory_order_seq_cst);
                }
            }
        }
    }

    /// Opened and closed by syscall(2) only: ThreadSanitizer intercepts libc's functions but not
    /// the ring, and would report a race for a number that the ring has closed and this thread has
    /// reused.
    class unseen_descriptor {
    public:
        explicit unseen_descriptor(int fd) : fd_(fd) {}
        unseen_descriptor(const unseen_descriptor&) = delete;
        unseen_descriptor& operator=(const unseen_descriptor&) = delete;
        ~unseen_descriptor() {
            if (fd_ >= 0) {
                ::syscall(SYS_close, fd_);
            }
        }
        operator int() const { return fd_; } // NOLINT(*-explicit-*)

    private:
        const int fd_;
    };

    [[nodiscard]] unseen_descriptor directory_of(const stdfs::path& p) const {
        struct ::open_how how{};
        how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
        how.resolve = RESOLVE_NO_SYMLINKS;
        return unseen_descriptor(static_cast<int>(
            ::syscall(SYS_openat2, int(top_), p.parent_path().c_str(), &how, sizeof how)));
    }
    void exchange(const stdfs::path& one, const stdfs::path& other) {
        const unseen_descriptor here = directory_of(one);
        const unseen_descriptor there = directory_of(other);
        if (here >= 0 && there >= 0 &&
            ::renameat2(here, one.filename().c_str(), there, other.filename().c_str(),
                        RENAME_EXCHANGE) == 0) {
            exchanges_.fetch_add(1);
        }
    }

    const descriptor top_;
    const std::vector<std::string> here_;
    const std::vector<std::string> aside_;
    std::atomic<bool> over_{false};
    std::atomic<std::uint64_t> exchanges_{0};
    std::thread thread_;
};

std::vector<std::string> of_aside() {
    std::vector<std::string> all;
    for (const char* const kind : {"link", "directory", "regular", "fifo", "link_to_file"}) {
        all.push_back("aside/" + std::string(kind));
    }
    return all;
}

/// Repeats the function while names in the tree are exchanged.
void while_swapped(arena& a, const std::vector<std::string>& names,
                   const std::function<void(io_context&)>& once,
                   const std::vector<std::string>& among = {}) {
    std::vector<std::string> here;
    for (const std::string& name : names) {
        here.push_back("tree/" + name);
    }
    const swapper attacker(a / ".", here, among.empty() ? of_aside() : here);
    const clock_type::time_point end = clock_type::now() + duration();
    io_context context;
    while (clock_type::now() < end && !::testing::Test::HasFatalFailure()) {
        once(context);
        a.expect_outside_untouched();
    }
    EXPECT_GE(attacker.exchanges(), 1U);
}

const std::vector<std::string> all_names{"x", "x/in", "x/file", "file", "x/in/x"};

task<> walk_whole(fs::path p, std::set<std::string>& seen, std::error_code& ec) {
    auto tree = fs::walk(std::move(p), ec);
    while (auto entry = co_await tree.next()) {
        seen.insert(entry->path().lexically_normal());
    }
}

TEST(FsSwapper, CopyTree) {
    arena a;
    while_swapped(a, all_names, [&](io_context& context) {
        std::error_code ec;
        coil_test::run_on(context, fs::copy_tree(a / "tree", a / "copy", ec));
        arena::expect_no_secret_in(a / "copy");
        stdfs::remove_all(a / "copy");
    });
}

TEST(FsSwapper, Copy) {
    arena a;
    while_swapped(a, all_names, [&](io_context& context) {
        std::error_code ec;
        coil_test::run_on(
            context, fs::copy(a / "tree", a / "copy",
                              fs::copy_options::recursive | fs::copy_options::copy_symlinks, ec));
        arena::expect_no_secret_in(a / "copy");
        stdfs::remove_all(a / "copy");
    });
}

/// Links, directories, files readable by all and files readable only by the owner, side by side;
/// any two of them are exchanged.
void copy_many_names(const std::function<task<>(fs::path, fs::path, std::error_code&)>& copy) {
    arena a;
    std::vector<std::string> names;
    for (int i = 0; i < 40; ++i) {
        const std::string number = std::to_string(i);
        names.push_back("x/" + number);
        const stdfs::path p = a / ("tree/x/" + number);
        switch (i % 4) {
        case 0:
            stdfs::create_directory_symlink(a / "outside", p);
            break;
        case 1:
            stdfs::create_directory(p);
            coil_test::put(p / "file", "harmless");
            break;
        default:
            coil_test::put(p, i % 4 == 2 ? "harmless" : "private");
            ::chmod(p.c_str(), i % 4 == 2 ? 0644 : 0600);
        }
    }
    while_swapped(
        a, names,
        [&](io_context& context) {
            std::error_code ec;
            coil_test::run_on(context, copy(a / "tree/x", a / "copy", ec));
            arena::expect_no_secret_in(a / "copy");
            stdfs::remove_all(a / "copy");
        },
        names);
}

TEST(FsSwapper, CopyTreeOfManyNames) {
    copy_many_names([](fs::path from, fs::path to, std::error_code& ec) -> task<> {
        co_await fs::copy_tree(from, to, ec);
    });
}

TEST(FsSwapper, CopyOfManyNames) {
    copy_many_names([](fs::path from, fs::path to, std::error_code& ec) -> task<> {
        co_await fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks,
                          ec);
    });
}

/// The opposite case: the target tree belongs to another user.
TEST(FsSwapper, CopyTreeIntoATree) {
    arena a;
    stdfs::create_directories(a / "from/x/in");
    for (const char* const name : {"from/file", "from/x/file", "from/x/in/file", "from/x/in/x"}) {
        coil_test::put(a / name, "new");
    }
    fs::copy_tree_options options;
    options.options |= fs::copy_options::overwrite_existing;
    while_swapped(a, all_names, [&](io_context& context) {
        a.create_entries();
        std::error_code ec;
        coil_test::run_on(context, fs::copy_tree(a / "from", a / "tree", options, ec));
    });
}

TEST(FsSwapper, RemoveAll) {
    arena a;
    while_swapped(a, all_names, [&](io_context& context) {
        std::error_code ec;
        a.create_entries();
        coil_test::run_on(context, fs::remove_all(a / "tree", ec));
    });
}

TEST(FsSwapper, Walk) {
    arena a;
    while_swapped(a, all_names, [&](io_context& context) {
        std::error_code ec;
        std::set<std::string> seen;
        coil_test::run_on(context, walk_whole(a / "tree", seen, ec));
        for (const std::string& name : seen) { // "only" exists only outside
            ASSERT_FALSE(name.ends_with("/only")) << name;
        }
    });
}

/// copy_file() follows links that exist when it checks the name. Therefore its target is exchanged
/// only with files, directories and FIFOs, and its source may be outside.
TEST(FsSwapper, CopyFile) {
    arena a;
    coil_test::put(a / "source", "new");
    stdfs::remove(a / "aside/link");
    stdfs::remove(a / "aside/link_to_file");
    while_swapped(a, {"file"}, [&](io_context& context) {
        std::error_code ec;

        coil_test::run_on(context, fs::copy_file(a / "source", a / "tree/file",
                                                 fs::copy_options::overwrite_existing, ec));
        coil_test::run_on(context, fs::copy_file(a / "tree/file", a / "copy",
                                                 fs::copy_options::overwrite_existing, ec));
        if (stdfs::exists(a / "copy")) {
            arena::expect_no_secret(a / "copy");
        }
    });
}

/// If the target does not exist, a link created meanwhile is not followed.
TEST(FsSwapper, CopyFileToANewName) {
    arena a;
    coil_test::put(a / "source", "new");
    std::atomic<bool> over{false};
    std::thread attacker([&] {
        while (!over.load()) {
            ::symlink((a / "outside/file").c_str(), (a / "new").c_str());
            ::unlink((a / "new").c_str());
        }
    });
    const clock_type::time_point end = clock_type::now() + duration();
    io_context context;
    while (clock_type::now() < end && !::testing::Test::HasFatalFailure()) {
        std::error_code ec;
        coil_test::run_on(context, fs::copy_file(a / "source", a / "new", ec));
        a.expect_outside_untouched();
        ::unlink((a / "new").c_str());
    }
    over = true;
    attacker.join();
}

/// Both functions follow links by design, so the attacker exchanges no links.
TEST(FsSwapper, WriteFileAndAtomicReplace) {
    arena a;
    stdfs::remove(a / "aside/link");
    stdfs::remove(a / "aside/link_to_file");
    stdfs::remove(a / "aside/fifo"); // open(2) would wait for it
    while_swapped(a, {"file"}, [&](io_context& context) {
        std::error_code ec;
        coil_test::run_on(context, fs::write_file(a / "tree/file", "in place", ec));
        coil_test::run_on(context, fs::write_file(a / "tree/file", "new", fs::atomic_replace, ec));
    });
}

TEST(FsSwapper, AtomicReplaceBesideFifosAndLinksInTheTree) {
    arena a;
    stdfs::remove(a / "aside/link");
    stdfs::remove(a / "aside/link_to_file");
    stdfs::create_symlink("x/file", a / "aside/link");
    while_swapped(a, {"file"}, [&](io_context& context) {
        std::error_code ec;
        coil_test::run_on(context, fs::write_file(a / "tree/file", "new", fs::atomic_replace, ec));
    });
    for (const auto& entry : stdfs::recursive_directory_iterator(a / "tree")) {
        EXPECT_FALSE(entry.path().filename().string().starts_with(".coil-")) << entry.path();
    }
}

} // namespace
