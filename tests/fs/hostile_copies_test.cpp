#include "access_list.hpp"
#include "files.hpp"
#include "other_users.hpp"
#include "support/seccomp.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Other users gain no access by what they prepare before a copy or do during it.

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::content_of;
using coil_test::put;
using coil_test::scratch;
namespace stdfs = std::filesystem;

/// A function that copies the data of a file, here to the path `to`.
struct way {
    const char* name;
    bool keeps_owner;
    void (*copy)(const fs::path& from, const fs::path& to,
                 const std::function<void()>& between_two_pieces);
};
std::ostream& operator<<(std::ostream& out, const way& w) { return out << w.name; }

fs::copy_tree_options with_owner(bool owner = true) {
    fs::copy_tree_options options;
    options.owner = owner;
    return options;
}

void by_copy_file(const fs::path& from, const fs::path& to, const std::function<void()>& f) {
    coil::run(fs::copy_file(from, to, fs::copy_options::overwrite_existing,
                            [&f](std::uintmax_t, std::uintmax_t) { f(); }));
}
void by_copy(const fs::path& from, const fs::path& to, const std::function<void()>&) {
    coil::run(fs::copy(from, to));
}
template <bool Owner>
void by_copy_tree(const fs::path& from, const fs::path& to, const std::function<void()>& f) {
    fs::copy_tree_options options = with_owner(Owner);
    options.progress = [&f](const fs::copy_progress&) { f(); };
    coil::run(fs::copy_tree(from, to, options));
}

constexpr way ways[] = {
    {"copy_file", false, by_copy_file},
    {"copy", false, by_copy},
    {"copy_tree", false, by_copy_tree<false>},
    {"copy_tree with owner", true, by_copy_tree<true>},
};

class FsHostileCopies : public testing::TestWithParam<way> {
protected:
    static void copy(
        const fs::path& from, const fs::path& to,
        const std::function<void()>& between_two_pieces = [] {}) {
        GetParam().copy(from, to, between_two_pieces);
    }
    const scratch dir_;
};

INSTANTIATE_TEST_SUITE_P(, FsHostileCopies, testing::ValuesIn(ways), [](const auto& of) {
    std::string name = of.param.name;
    for (char& c : name) {
        c = c == ' ' ? '_' : c;
    }
    return name;
});

TEST_P(FsHostileCopies, SetIdBitsOfAMountWithNosuidAreNotCopied) {
    FS_TEST_NEEDS_FORK();
    const std::string complaint = coil_test::in_child([&]() -> std::string {
        stdfs::create_directory(dir_ / "mount");
        if (std::string refusal = have_private_mounts(); !refusal.empty()) {
            return refusal;
        }
        std::string wrong;
        for (const unsigned long flags : {static_cast<unsigned long>(MS_NOSUID), 0UL}) {
            if (::mount("none", (dir_ / "mount").c_str(), "tmpfs", flags, nullptr) != 0) {
                return "SKIP: this process may not mount a tmpfs";
            }
            put(dir_ / "mount/f", "x");
            ::chmod((dir_ / "mount/f").c_str(), 06755);
            copy(dir_ / "mount/f", dir_ / "copy");
            const bool keeps = flags == 0 && std::string_view(GetParam().name) != "copy_tree";
            if (mode_of(dir_ / "copy") != (keeps ? 06755U : 0755U)) {
                wrong += flags == 0 ? "without nosuid; " : "with nosuid; ";
            }
            stdfs::remove(dir_ / "copy");
            ::umount2((dir_ / "mount").c_str(), MNT_DETACH);
        }
        return wrong;
    });
    if (complaint.starts_with("SKIP: ")) {
        GTEST_SKIP() << complaint.substr(6);
    }
    EXPECT_EQ(complaint, "");
}

/// A write by another user clears the bits, even if the mode is the same again at the end.
TEST_P(FsHostileCopies, SetIdBitsOfAFileThatChangesDuringTheCopyAreNotCopied) {
    using change = void (*)(const char*);
    const change changes[] = {
        [](const char* p) { ::chmod(p, 0775); },
        [](const char* p) {
            ::chmod(p, 0775);
            ::chmod(p, 06775);
        },
    };
    for (const change& make_change : changes) {
        put(dir_ / "f", std::string(48U << 20U, 'x'));
        ASSERT_EQ(::chmod((dir_ / "f").c_str(), 06775), 0);
        bool has_changed = false;
        bool is_complete = false;
        copy(dir_ / "f", dir_ / "copy", [&] {
            if (!std::exchange(has_changed, true)) {
                is_complete = mode_of(dir_ / "copy") == 06775U;
                ::usleep(20'000); // timestamps have the resolution of a kernel tick
                make_change((dir_ / "f").c_str());
            }
        });
        if (is_complete) {
            GTEST_SKIP() << "the file was copied in one step";
        }
        if (std::string_view(GetParam().name) != "copy") { // which does not report its progress
            EXPECT_TRUE(has_changed);
            EXPECT_EQ(mode_of(dir_ / "copy"), 0775U);
        }
        stdfs::remove(dir_ / "copy");
    }
}

TEST_P(FsHostileCopies, AnAccessListGivesTheCopiesNoRights) {
    struct kind {
        access_list list;
        ::mode_t shown;
        ::mode_t copied;
    };
    const kind kinds[] = {
        // A user may read and write, the group may not.
        {{{of_owner, 7}, {of_user, 6, stranger}, {of_group, 0}, {of_mask, 6}, {of_others, 0}},
         0760,
         0700},
        // All may read except one user.
        {{{of_owner, 7}, {of_user, 0, stranger}, {of_group, 4}, {of_mask, 4}, {of_others, 4}},
         0744,
         0700},
        {{{of_owner, 7}, {of_user, 7, stranger}, {of_group, 5}, {of_mask, 7}, {of_others, 5}},
         0775,
         0755},
    };
    stdfs::create_directory(dir_ / "from");
    for (const kind& k : kinds) {
        for (const char* const name : {"from", "from/f"}) {
            put(dir_ / "from/f", "secret");
            if (!set_access_list(dir_ / name, k.list)) {
                GTEST_SKIP() << "the file system has no access control lists";
            }
            ASSERT_EQ(mode_of(dir_ / name) & 0777U, k.shown);
        }
        const bool is_file = std::string_view(GetParam().name) == "copy_file";
        copy(dir_ / (is_file ? "from/f" : "from"), dir_ / "to");
        const fs::path copied = dir_ / (is_file ? "to" : "to/f");
        if (GetParam().keeps_owner) {
            for (const fs::path& p : {copied, dir_ / "to"}) {
                EXPECT_EQ(mode_of(p), k.shown) << p;
                EXPECT_EQ(access_list_of(p), access_list_of(dir_ / "from/f")) << p;
            }
        } else {
            EXPECT_EQ(mode_of(copied), k.copied);
            EXPECT_EQ(mode_of(dir_ / "to") & 077U & ~k.copied, 0U);
            EXPECT_EQ(access_list_of(copied), "");
        }
        stdfs::remove_all(dir_ / "to");
    }
}

/// A list that the copy inherits from its directory does not come from the original.
TEST(FsHostileCopiesOfTrees, AnInheritedAccessListIsNotKeptWithTheOwner) {
    const scratch dir;
    stdfs::create_directory(dir / "from");
    put(dir / "from/f", "secret");
    ASSERT_EQ(::chmod((dir / "from/f").c_str(), 0640), 0);
    stdfs::create_directory(dir / "to");
    const access_list list{
        {of_owner, 7}, {of_user, 7, stranger}, {of_group, 5}, {of_mask, 7}, {of_others, 5}};
    if (!set_access_list(dir / "to", list, true)) {
        GTEST_SKIP() << "the file system has no access control lists";
    }
    coil::run(fs::copy_tree(dir / "from", dir / "to", with_owner()));
    put(dir / "to/g", "old");
    remove_access_list(dir / "to/g");
    ASSERT_EQ(::chmod((dir / "to/g").c_str(), 0640), 0);
    coil::run(fs::write_file(dir / "to/g", "secret", fs::atomic_replace));
    for (const char* const name : {"to/f", "to/g"}) {
        EXPECT_EQ(access_list_of(dir / name), "") << name;
        EXPECT_EQ(mode_of(dir / name), 0640U) << name;
    }
}

TEST(FsHostileCopiesOfTrees, AGroupThatCannotBeKeptGetsNoRights) {
    FS_TEST_NEEDS_FORK();
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can give a file to a group without being a member of it";
    }
    const scratch dir;
    stdfs::create_directory(dir / "from");
    put(dir / "from/f", "secret");
    put(dir / "g", "secret");
    for (const auto& [name, mode] : {std::pair("from", 0770U), {"from/f", 0664U}, {"g", 0664U}}) {
        ASSERT_EQ(::chown((dir / name).c_str(), stranger, 3000), 0);
        ASSERT_EQ(::chmod((dir / name).c_str(), mode), 0);
    }
    EXPECT_EQ(as_stranger(dir.path(),
                          [&]() -> std::string {
                              coil::run(fs::copy_tree(dir / "from", dir / "to", with_owner()));
                              coil::run(fs::write_file(dir / "g", "new", fs::atomic_replace));
                              return "";
                          }),
              "");
    EXPECT_EQ(mode_of(dir / "to"), 0700U);
    EXPECT_EQ(mode_of(dir / "to/f"), 0644U);
    EXPECT_EQ(mode_of(dir / "g"), 0644U);
    EXPECT_EQ(content_of(dir / "g"), "new");
}

TEST(FsHostileCopiesOfTrees, ADirectoryIsClosedToOthersUntilItHasItsOwner) {
    const scratch dir;
    stdfs::create_directories(dir / "from/sub");
    for (int i = 0; i < 300; ++i) { // more than are copied in one slice
        put(dir / ("from/sub/f" + std::to_string(i)), "x");
    }
    for (const char* const p : {"from", "from/sub"}) {
        ASSERT_EQ(::chmod((dir / p).c_str(), 0777), 0);
    }
    const ::mode_t before = ::umask(0);
    fs::copy_tree_options options = with_owner();
    int seen = 0;
    options.progress = [&](const fs::copy_progress&) {
        for (const char* const p : {"to", "to/sub"}) {
            const ::mode_t mode = stdfs::exists(dir / p) ? mode_of(dir / p) : 0;
            seen += mode == 0700 ? 1 : 0;
            EXPECT_TRUE(mode == 0 || mode == 0700 || mode == 0777) << mode;
        }
    };
    coil::run(fs::copy_tree(dir / "from", dir / "to", options));
    ::umask(before);
    EXPECT_GT(seen, 0) << "the copy was complete at once";
    EXPECT_EQ(mode_of(dir / "to"), 0777U);
    EXPECT_EQ(mode_of(dir / "to/sub"), 0777U);
}

/// A file system in user space may return anything. This one always reports data at offset 0.
TEST(FsHostileCopiesOfTrees, AFileSystemThatMisreportsItsHolesIsCopied) {
    FS_TEST_NEEDS_FORK();
    const scratch dir;
    const std::string content = coil_test::pattern(100'000);
    put(dir / "f", content);
    ASSERT_EQ(::truncate((dir / "f").c_str(), 4 << 20), 0);
    const std::string complaint = coil_test::in_child([&]() -> std::string {
        ::alarm(60);
        if (!coil_test::answer_with_zero(SYS_lseek, 2, SEEK_DATA)) {
            return "SKIP: this process may not install a filter";
        }
        coil::run(fs::copy_file(dir / "f", dir / "copy"));
        return "";
    });
    if (complaint.starts_with("SKIP: ")) {
        GTEST_SKIP() << complaint.substr(6);
    }
    EXPECT_EQ(complaint, "");
    EXPECT_EQ(content_of(dir / "copy"), content_of(dir / "f"));
}

} // namespace
