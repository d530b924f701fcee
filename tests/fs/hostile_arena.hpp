#pragma once

#include "files.hpp"
#include "needs_fork.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"
#include "support/seccomp.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <new>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h> // renameat2
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

// A tree that another process changes continuously, for swapper_test.cpp.

namespace fs_test {

namespace stdfs = std::filesystem;

/// A variant of the attack: what the attacker may use, and what the functions have to do without.
struct attack {
    const char* name;
    bool by_stranger = false;     ///< root works on the files of another user
    bool in_sticky = false;       ///< the tree is a sticky directory like /tmp
    bool lacks_openat2 = false;   ///< as on Linux 5.5, or in a container with an old filter
    bool few_descriptors = false; ///< directories are closed and reopened
};
inline std::ostream& operator<<(std::ostream& out, const attack& a) { return out << a.name; }

inline constexpr attack attacks[] = {
    {.name = "ByTheSameUser"},
    {.name = "ByAnotherUser", .by_stranger = true},
    {.name = "ByAnotherUserInAStickyDirectory", .by_stranger = true, .in_sticky = true},
    {.name = "WithoutOpenat2", .lacks_openat2 = true},
    {.name = "WithFewDescriptors", .few_descriptors = true},
};

inline constexpr const char* secret = "what only the owner may read";
inline constexpr ::uid_t nobody = 65534;

/// The functions work on `tree`, whose entries the attacker exchanges with those of `aside`;
/// `outside` must not be touched.
class arena {
public:
    explicit arena(const attack& a, std::vector<std::string> kinds = all_kinds())
        : attack_(a), kinds_(std::move(kinds)) {
        ::chmod(dir_.path().c_str(), 0711);
        stdfs::create_directories(dir_ / "outside/in");
        for (const char* const name : secrets) {
            coil_test::put(dir_ / "outside" / name, secret);
            ::chmod((dir_ / "outside" / name).c_str(), 0600);
        }
        make(dir_ / "linked", "private", 0600);
        stdfs::create_directory(dir_ / "aside");
        give(dir_ / "aside");
        create_entries();
    }

    stdfs::path operator/(std::string_view name) const { return dir_ / name; }
    [[nodiscard]] const attack& kind() const { return attack_; }

    static std::vector<std::string> all_kinds() {
        std::vector<std::string> all = kinds_of_targets();
        all.insert(all.end(), {"hard_link", "set_uid"});
        return all;
    }
    /// The kinds without hard links: a copy into the tree would overwrite the linked file.
    static std::vector<std::string> kinds_of_targets() {
        std::vector<std::string> all = {"link", "directory",    "regular", "recreated",
                                        "fifo", "link_to_file", "socket"};
        if (::geteuid() == 0) {
            all.emplace_back("device");
        }
        return all;
    }
    /// The names in the tree that are exchanged.
    static std::vector<std::string> names() {
        return {"x",      "x/in",     "x/file",         "file",
                "x/in/x", "x/in/d/d", "x/in/d/d/d/d/d", "x/in/d/d/f"};
    }
    [[nodiscard]] std::vector<std::string> names_aside() const {
        std::vector<std::string> all;
        for (const std::string& kind : kinds_) {
            all.push_back("aside/" + kind);
        }
        return all;
    }

    /// Creates the missing entries of the tree and their missing replacements. They are made where
    /// the attacker cannot reach them, and then moved.
    void create_entries() const {
        const stdfs::path staged = dir_ / "staged";
        make_tree(staged / "tree");
        stdfs::create_directory(staged / "aside");
        for (const std::string& kind : kinds_) {
            make_aside(staged / "aside" / kind, kind);
        }
        for (const auto& entry : stdfs::recursive_directory_iterator(staged)) {
            if (entry.path().filename() != "hard_link") {
                give(entry.path());
            }
        }
        if (attack_.by_stranger) { // after chown(2), which clears the bit
            ::chmod((staged / "aside/set_uid").c_str(), 04755);
        }
        if (stdfs::create_directory(dir_ / "tree")) {
            attack_.in_sticky ? void(::chmod((dir_ / "tree").c_str(), 01777)) : give(dir_ / "tree");
        }
        for (const char* const into : {"tree", "aside"}) {
            for (const auto& entry : stdfs::directory_iterator(staged / into)) {
                const stdfs::path to = dir_ / into / entry.path().filename();
                ::renameat2(AT_FDCWD, entry.path().c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
            }
        }
        stdfs::remove_all(staged);
    }

    /// Expects that neither the content nor the attributes have changed.
    void expect_outside_untouched() const {
        std::set<std::string> names;
        for (const auto& entry : stdfs::recursive_directory_iterator(dir_ / "outside")) {
            names.insert(entry.path().lexically_relative(dir_ / "outside"));
            struct ::stat status{};
            ASSERT_EQ(::lstat(entry.path().c_str(), &status), 0);
            ASSERT_EQ(status.st_uid, ::geteuid()) << entry.path();
            if (S_ISREG(status.st_mode)) {
                ASSERT_EQ(coil_test::content_of(entry.path()), secret) << entry.path();
                ASSERT_EQ(status.st_mode & 07777U, 0600U) << entry.path();
            }
        }
        std::set<std::string> wanted(std::begin(secrets), std::end(secrets));
        wanted.insert("in");
        ASSERT_EQ(names, wanted);
        struct ::stat linked{};
        ASSERT_EQ(::lstat((dir_ / "linked").c_str(), &linked), 0);
        ASSERT_EQ(linked.st_mode & 07777U, 0600U);
        ASSERT_EQ(coil_test::content_of(dir_ / "linked"), "private");
    }

    /// Expects no content from outside in the copy, and no file that others may read although they
    /// may not read the original. Only the attacker's files carry the attacker's set-user-ID bit.
    static void expect_no_secret_in(const stdfs::path& copy) {
        std::error_code ec;
        for (stdfs::recursive_directory_iterator i(copy, ec), end; i != end; i.increment(ec)) {
            if (i->symlink_status().type() == stdfs::file_type::regular) {
                expect_no_secret(i->path());
            }
        }
    }
    static void expect_no_secret(const stdfs::path& file) {
        const std::string content = coil_test::content_of(file);
        ASSERT_NE(content, secret) << file;
        struct ::stat status{};
        if (::lstat(file.c_str(), &status) != 0) {
            return;
        }
        if (content == "private") {
            ASSERT_EQ(status.st_mode & 0077U, 0U) << file;
        }
        if (content == "of the attacker" && status.st_uid != nobody) {
            ASSERT_EQ(status.st_mode & S_ISUID, 0U) << file;
        }
    }

    /// Gives a file to the attacker.
    void give(const stdfs::path& p) const {
        if (attack_.by_stranger) {
            ASSERT_EQ(::lchown(p.c_str(), nobody, nobody), 0) << p;
        }
    }

private:
    static constexpr const char* secrets[] = {"file", "in/file", "x", "in/x", "only", "in/only"};

    static void make(const stdfs::path& p, std::string_view content, ::mode_t mode) {
        coil_test::put(p, content);
        ::chmod(p.c_str(), mode);
    }
    /// The tree has more levels than the number of directories that are open at a time when
    /// descriptors are few.
    static void make_tree(const stdfs::path& top) {
        stdfs::create_directories(top / "x/in");
        for (const char* const name : {"file", "x/file", "x/in/file", "x/in/x"}) {
            make(top / name, "harmless", 0644);
        }
        stdfs::path deep = top / "x/in";
        for (int i = 0; i < 20; ++i) {
            deep /= "d";
            stdfs::create_directory(deep);
            make(deep / "f", "harmless", 0644);
        }
    }
    void make_aside(const stdfs::path& p, std::string_view kind) const {
        if (kind == "link") {
            stdfs::create_directory_symlink(dir_ / "outside", p);
        } else if (kind == "link_to_file") {
            stdfs::create_symlink(dir_ / "outside/file", p);
        } else if (kind == "link_inside") {
            stdfs::create_symlink("x/file", p);
        } else if (kind == "link_to_here") {
            stdfs::create_symlink(".", p);
        } else if (kind == "directory") {
            stdfs::create_directories(p / "in");
            make(p / "file", "harmless", 0644);
        } else if (kind == "regular") {
            make(p, "private", 0600);
        } else if (kind == "recreated") {
            stdfs::create_directory(p);
        } else if (kind == "hard_link") {
            stdfs::create_hard_link(dir_ / "linked", p);
        } else if (kind == "set_uid") {
            make(p, "of the attacker", 0755);
        } else if (kind == "socket") {
            ::mknod(p.c_str(), S_IFSOCK | 0600, 0);
        } else if (kind == "device") {
            ::mknod(p.c_str(), S_IFCHR | 0600, ::makedev(60, 0)); // reserved, has no driver
        } else {
            ::mkfifo(p.c_str(), 0600);
        }
    }

    const coil_test::scratch dir_;
    const attack attack_;
    const std::vector<std::string> kinds_;
};

/// A process of the attacker that exchanges random pairs of names below the arena. It follows no
/// link itself.
class swapper {
public:
    swapper(const arena& a, const std::vector<std::string>& here,
            const std::vector<std::string>& aside)
        : top_(::open((a / ".").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
          shared_(::mmap(nullptr, sizeof(count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0)),
          exchanges_(*new(shared_) count(0)), here_(split(here)), aside_(split(aside)),
          user_(a.kind().by_stranger ? nobody : ::geteuid()), parent_(::getpid()),
          process_(::fork()) {
        if (process_ == 0) {
            run(); // only system calls: a thread may have held malloc's lock at fork()
        }
        for (int waited = 0; exchanges_.load() == 0 && waited < 10'000; ++waited) {
            ::usleep(1000);
        }
        EXPECT_GT(exchanges_.load(), 0U) << "the attacker cannot exchange anything";
    }
    swapper(const swapper&) = delete;
    swapper& operator=(const swapper&) = delete;
    ~swapper() {
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
        ::munmap(shared_, sizeof(count));
    }

    [[nodiscard]] std::uint64_t exchanges() const { return exchanges_.load(); }

private:
    using count = std::atomic<std::uint64_t>;
    static_assert(count::is_always_lock_free);
    struct name {
        std::string directory;
        std::string leaf;
    };

    static std::vector<name> split(const std::vector<std::string>& paths) {
        std::vector<name> all;
        for (const stdfs::path p : paths) {
            all.push_back({p.parent_path(), p.filename()});
        }
        return all;
    }

    [[noreturn]] void run() const noexcept {
        const bool is_other = user_ != ::geteuid();
        if (is_other && (::syscall(SYS_setgroups, 0, nullptr) != 0 ||
                         ::syscall(SYS_setresgid, user_, user_, user_) != 0 ||
                         ::syscall(SYS_setresuid, user_, user_, user_) != 0)) {
            ::_exit(1);
        }
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::uint64_t state = 1;
        const auto random = [&state] {
            state = state * 6364136223846793005U + 1442695040888963407U;
            return static_cast<std::size_t>(state >> 33U);
        };
        while (::getppid() == parent_) {
            const name& one = here_[random() % here_.size()];
            const name& other = aside_[random() % aside_.size()];
            for (int times = 0; times < 2; ++times) {
                exchange(one, other);
                recreate(other);
                for (auto wait = random() % 2000; wait > 0; --wait) {
                    std::atomic_signal_fence(std::memory_order_seq_cst);
                }
            }
        }
        ::_exit(0);
    }

    [[nodiscard]] int directory_of(const name& n) const noexcept {
        struct ::open_how how{};
        how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
        how.resolve = RESOLVE_NO_SYMLINKS;
        return static_cast<int>(
            ::syscall(SYS_openat2, int(top_), n.directory.c_str(), &how, sizeof how));
    }
    /// Replaces an emptied directory with a new one, which may get its inode number.
    void recreate(const name& n) const noexcept {
        const int at = n.leaf == "recreated" ? directory_of(n) : -1;
        if (at >= 0) {
            if (::syscall(SYS_unlinkat, at, n.leaf.c_str(), AT_REMOVEDIR) == 0) {
                ::syscall(SYS_mkdirat, at, n.leaf.c_str(), 0777);
            }
            ::syscall(SYS_close, at);
        }
    }
    void exchange(const name& one, const name& other) const noexcept {
        const int here = directory_of(one);
        const int there = directory_of(other);
        if (here >= 0 && there >= 0 &&
            ::syscall(SYS_renameat2, here, one.leaf.c_str(), there, other.leaf.c_str(),
                      RENAME_EXCHANGE) == 0) {
            exchanges_.fetch_add(1);
        }
        for (const int fd : {here, there}) {
            if (fd >= 0) {
                ::syscall(SYS_close, fd);
            }
        }
    }

    const coil_test::descriptor top_;
    void* const shared_;
    count& exchanges_;
    const std::vector<name> here_;
    const std::vector<name> aside_;
    const ::uid_t user_;
    const ::pid_t parent_;
    const ::pid_t process_;
};

/// Leaves this process so few descriptors that a function on a tree, with several jobs, keeps about
/// sixteen directories open.
inline void limit_descriptors() {
    const std::set<int> open = coil_test::open_descriptors();
    const auto few = static_cast<::rlim_t>(*open.rbegin() + 56);
    const ::rlimit limit{few, few};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

} // namespace fs_test
