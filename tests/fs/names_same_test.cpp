// coil::fs has the values, errors and effects of <filesystem>, whether it uses the ring's opcodes
// or system calls.

#include "fs/again.hpp"
#include "fs/names_same.hpp"

using namespace coil;
using namespace names_test;

namespace {

TEST(Names, QueriesMatchTheStandardLibrary) {
    io_context context;
    ask_of_random_trees(context, coil_test::rounds(2, 15), 1);
}

TEST(Names, QueriesMatchTheStandardLibraryWithoutRingOpcodes) {
    const auto context = context_of_an_old_kernel();
    ASSERT_FALSE(context->loop().ring().supports(uring::opcode::statx));
    ask_of_random_trees(*context, coil_test::rounds(2, 15), 2);
}

TEST(Names, ChangesMatchTheStandardLibrary) {
    io_context context;
    change_random_trees(context, coil_test::rounds(4, 20), 3);
}

TEST(Names, ChangesMatchTheStandardLibraryWithoutRingOpcodes) {
    const auto context = context_of_an_old_kernel();
    change_random_trees(*context, coil_test::rounds(4, 20), 4);
}

/// Compares the libraries on trees with missing permissions, which do not apply to root.
void as_another_user(io_context& context, std::uint64_t seed) {
    ask_of_random_trees(context, coil_test::rounds(1, 20), seed);
    change_random_trees(context, coil_test::rounds(2, 20), seed);
    both b(context);
    const temporary_tree tree;
    const inside here(tree.root());
    stdfs::create_directories("shut/in");
    std::ofstream("shut/in/file") << "content";
    stdfs::permissions("shut", stdfs::perms::none);
    ask_everything(b, "shut/in/file", "shut");
    ask_everything(b, "shut", "shut/in/../in/file");
    EXPECT_EQ(
        say_code_in_coil(context, [](auto& ec) { return fs::is_directory("shut/in", ec); }).code,
        std::errc::permission_denied)
        << "this user may read everything";
}

TEST(Names, PermissionsAreRefusedAsByTheStandardLibrary) {
    const fs_test::again child("Names.PermissionsAreRefusedAsByTheStandardLibrary");
    if (!child.is_it() && ::geteuid() == 0) {
        child.run("", [] { return fs_test::become_nobody(); });
        return;
    }
    io_context context;
    as_another_user(context, 5);
    as_another_user(*context_of_an_old_kernel(), 6);
}

/// Failures for lack of space, in a file system with eight inodes.
void fill(io_context& context, const path& theirs, const path& ours) {
    two_trees trees(context, theirs, ours);
    const auto change = [&](auto standard, auto of_coil) {
        trees.change(false, [] {}, standard, []() -> task<> { co_return; }, of_coil);
        trees.compare();
    };
    using code = std::error_code;
    change([](code& ec) { return stdfs::create_directories("a/b/c/d/e/f/g/h/i", ec); },
           [](code& ec) { return fs::create_directories("a/b/c/d/e/f/g/h/i", ec); });
    EXPECT_EQ(trees.errors, 1) << "a free inode was left";
    change([](code& ec) { return stdfs::create_directory("x", ec); },
           [](code& ec) { return fs::create_directory("x", ec); });
    change([](code& ec) { stdfs::create_symlink("to", "x", ec); },
           [](code& ec) { return fs::create_symlink("to", "x", ec); });
    change([](code& ec) { return stdfs::remove("a/b/c/d/e/f/g", ec); },
           [](code& ec) { return fs::remove("a/b/c/d/e/f/g", ec); });
    change([](code& ec) { stdfs::create_symlink("to", "x", ec); },
           [](code& ec) { return fs::create_symlink("to", "x", ec); });
    change([](code& ec) { stdfs::create_hard_link("x", "y", ec); },
           [](code& ec) { return fs::create_hard_link("x", "y", ec); });
    change([](code& ec) { stdfs::copy_symlink("x", "y", ec); },
           [](code& ec) { return fs::copy_symlink("x", "y", ec); });
    change([](code& ec) { stdfs::rename("x", "a/y", ec); },
           [](code& ec) { return fs::rename("x", "a/y", ec); });
    change([](code& ec) { return stdfs::space(".", ec); },
           [](code& ec) { return fs::space(".", ec); });
    EXPECT_EQ(trees.errors, 5);
    EXPECT_EQ(trees.successes, 4);
}

TEST(Names, AFullFileSystemIsReportedAsByTheStandardLibrary) {
    const fs_test::again child("Names.AFullFileSystemIsReportedAsByTheStandardLibrary");
    if (!child.is_it()) {
        const temporary_tree tree(0);
        for (const char* const name : {"1", "2", "3", "4"}) {
            stdfs::create_directory(tree.root() / name);
        }
        child.run(tree.root(), [&tree] {
            return fs_test::mount_small(tree.root(), {"1", "2", "3", "4"},
                                        "size=64k,nr_inodes=8,mode=1777");
        });
        return;
    }
    const path root = child.argument();
    io_context context;
    fill(context, root / "1", root / "2");
    fill(*context_of_an_old_kernel(), root / "3", root / "4");
}

} // namespace
