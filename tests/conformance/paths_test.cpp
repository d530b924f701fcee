// Path resolution on every backend: trailing slashes, links, dots, removed directories.

#include "conformance/support.hpp"

#include <limits>

#include <linux/openat2.h>
#include <sys/stat.h>

namespace conformance {

namespace {

class Paths : public Conformance {};
COIL_ON_ALL_BACKENDS(Paths);

constexpr int read_only = O_RDONLY | O_CLOEXEC;
constexpr int or_make = O_RDWR | O_CREAT | O_CLOEXEC;

/// Opens a file and closes it. Returns 0 or -errno.
task<int> opens(std::string path, int flags) {
    const int fd = co_await io::open(path, flags, 0600);
    if (fd < 0) {
        co_return fd;
    }
    co_return co_await io::close(fd);
}

/// d, d/f, f, to_d -> d, to_f -> f, dangling -> none, loop -> loop
task<> make_small_tree(std::string top) {
    co_await gives(io::mkdir(top + "d", 0700), 0);
    for (const std::string name : {"f", "d/f"}) {
        co_await gives(opens(top + name, or_make | O_EXCL), 0);
    }
    co_await gives(io::symlink("d", top + "to_d"), 0);
    co_await gives(io::symlink("f", top + "to_f"), 0);
    co_await gives(io::symlink("none", top + "dangling"), 0);
    co_await gives(io::symlink("loop", top + "loop"), 0);
}

task<> slashes(std::string top) {
    co_await make_small_tree(top);
    struct ::statx st{};
    co_await gives(opens(top + "f/", read_only), -ENOTDIR);
    co_await gives(opens(top + "none/", read_only), -ENOENT);
    co_await gives(opens(top + "none/", or_make), -EISDIR);
    co_await gives(opens(top + "f/", or_make), -EISDIR, "even where there is a file");
    co_await gives(opens(top + "d/", or_make), -EISDIR);
    co_await gives(opens(top + "d//", read_only), 0);
    co_await gives(io::statx(AT_FDCWD, top + "f/", 0, STATX_TYPE, &st), -ENOTDIR);
    co_await gives(io::statx(AT_FDCWD, top + "to_f/", AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st),
                   -ENOTDIR);
    co_await gives(io::statx(AT_FDCWD, top + "to_d/", AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st), 0);
    EXPECT_TRUE(S_ISDIR(st.stx_mode)); // a trailing slash follows the link
    co_await gives(io::unlink(top + "f/"), -ENOTDIR);
    co_await gives(io::unlink(top + "d/"), -EISDIR);
    co_await gives(io::unlink(top + "to_d/"), -ENOTDIR, "the link itself is not a directory");
    co_await gives(io::unlink(top + "none/"), -ENOENT);
    co_await gives(io::rmdir(top + "to_d/"), -ENOTDIR);
    co_await gives(io::rmdir(top + "f/"), -ENOTDIR);
    co_await gives(io::mkdir(top + "to_d/", 0700), -EEXIST);
    co_await gives(io::mkdir(top + "dangling/", 0700), -EEXIST);
    co_await gives(io::mkdir(top + "new/", 0700), 0);
    co_await gives(io::rmdir(top + "new/"), 0);
    co_await gives(io::symlink("x", top + "new/"), -ENOENT);
    co_await gives(io::symlink("x", top + "f/"), -EEXIST);
    co_await gives(io::link(top + "f", top + "new/"), -ENOENT);
    co_await gives(io::link(top + "f/", top + "new"), -ENOTDIR);
    co_await gives(io::link(top + "to_d/", top + "new"), -EPERM);
    co_await gives(io::rename(top + "f", top + "new/"), -ENOTDIR);
    co_await gives(io::rename(top + "f/", top + "new"), -ENOTDIR);
    co_await gives(io::rename(top + "to_d/", top + "new"), -ENOTDIR);
    co_await gives(io::rename(top + "d/", top + "new/"), 0);
    co_await gives(io::rename(top + "none/", top + "d/"), -ENOENT);
}
TEST_P(Paths, TrailingSlashes) { run(slashes(directory())); }

task<> dots(std::string top) {
    co_await make_small_tree(top);
    co_await gives(io::rmdir(top + "d/."), -EINVAL);
    co_await gives(io::rmdir(top + "d/.."), -ENOTEMPTY);
    co_await gives(io::rmdir("/"), -EBUSY);
    co_await gives(io::rmdir(top + "f/."), -ENOTDIR);
    co_await gives(io::rmdir(top + "none/.."), -ENOENT);
    co_await gives(io::unlink(top + "d/."), -EISDIR);
    co_await gives(io::unlink(top + "d/.."), -EISDIR);
    co_await gives(io::mkdir(top + "d/.", 0700), -EEXIST);
    co_await gives(io::mkdir(top + "d/..", 0700), -EEXIST);
    co_await gives(io::symlink("x", top + "d/."), -EEXIST);
    co_await gives(io::rename(top + "d/.", top + "e"), -EBUSY);
    co_await gives(io::rename(top + "f", top + "d/.."), -EBUSY);
    co_await gives(io::renameat2(AT_FDCWD, top + "f", AT_FDCWD, top + "d/..", RENAME_NOREPLACE),
                   -EEXIST);
    co_await gives(opens(top + "d/.", or_make), -EISDIR);
    co_await gives(opens(top + "d/..", or_make | O_EXCL), -EEXIST);
    co_await gives(opens(top + "d/.", read_only), 0);
}
TEST_P(Paths, Dots) { run(dots(directory())); }

task<> path_openings(std::string top) {
    co_await make_small_tree(top);
    co_await gives(opens(top + "d", or_make | O_DIRECTORY), -EINVAL);
    co_await gives(opens(top + "none", or_make | O_DIRECTORY), -EINVAL);
    co_await gives(opens(top + "d", or_make), -EISDIR);
    co_await gives(opens(top + "d", or_make | O_EXCL), -EEXIST);
    co_await gives(opens(top + "d", read_only | O_TRUNC), -EISDIR);
    co_await gives(opens(top + "dangling", or_make | O_EXCL), -EEXIST, "the link is there");
    co_await gives(opens(top + "dangling/", or_make | O_EXCL), -EISDIR);
    co_await gives(opens(top + "dangling", read_only), -ENOENT);
    co_await gives(opens(top + "loop", or_make), -ELOOP);
    co_await gives(opens(top + "loop/", or_make), -EISDIR, "the slash is checked first");
    co_await gives(opens(top + "d/./", or_make | O_EXCL), -EEXIST);
    co_await gives(opens(top + "loop", or_make | O_EXCL), -EEXIST);
    co_await gives(opens(top + "to_f", read_only | O_NOFOLLOW), -ELOOP);
    co_await gives(opens(top + "to_f", or_make | O_NOFOLLOW), -ELOOP);
    co_await gives(opens(top + "to_d", read_only | O_NOFOLLOW | O_DIRECTORY), -ENOTDIR);
    co_await gives(opens(top + "to_d/", read_only | O_NOFOLLOW | O_DIRECTORY), 0);
    co_await gives(opens(top + "to_d", O_PATH | O_NOFOLLOW | O_CLOEXEC), 0);
    co_await gives(opens(top + "to_d", O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC), -ENOTDIR);
    co_await gives(opens(top + "new", O_PATH | O_CREAT | O_CLOEXEC), -ENOENT,
                   "O_PATH ignores O_CREAT");
    co_await gives(opens(top, O_TMPFILE | O_RDONLY | O_CLOEXEC), -EINVAL);
    co_await gives(opens(top + "f", O_TMPFILE | O_RDWR | O_CLOEXEC), -ENOTDIR);
    co_await gives(opens(top + "dangling", or_make), 0);
    co_await gives(opens(top + "none", read_only), 0, "created at the target of the link");
    co_await gives(opens(top + std::string(256, 'x'), or_make), -ENAMETOOLONG);
    co_await gives(opens("", read_only), -ENOENT);
}
TEST_P(Paths, Openings) { run(path_openings(directory())); }

task<> path_renames(std::string top) {
    co_await make_small_tree(top);
    co_await gives(io::rename(top + "d", top + "d/x"), -EINVAL, "below itself");
    co_await gives(io::rename(top + "d/f", top + "d"), -ENOTEMPTY, "onto its parent");
    co_await gives(io::mkdir(top + "d/sub", 0700), 0);
    co_await gives(io::rename(top + "d/sub", top + "d"), -ENOTEMPTY);
    co_await gives(io::renameat2(AT_FDCWD, top + "d/sub", AT_FDCWD, top + "d", RENAME_EXCHANGE),
                   -EINVAL);
    co_await gives(io::renameat2(AT_FDCWD, top + "d", AT_FDCWD, top + "d/sub", RENAME_EXCHANGE),
                   -EINVAL);
    co_await gives(io::rename(top + "d", top + "d"), 0);
    co_await gives(io::link(top + "f", top + "g"), 0);
    co_await gives(io::rename(top + "f", top + "g"), 0, "both names refer to the same file");
    co_await gives(opens(top + "f", read_only), 0, "both names still exist");
    co_await gives(io::renameat2(AT_FDCWD, top + "f", AT_FDCWD, top + "none", RENAME_EXCHANGE),
                   -ENOENT);
    co_await gives(io::renameat2(AT_FDCWD, top + "f", AT_FDCWD, top + "d/", RENAME_EXCHANGE), 0);
    co_await gives(opens(top + "f/f", read_only), 0);
}
TEST_P(Paths, Renames) { run(path_renames(directory())); }

task<> names_in_a_removed_directory(std::string top) {
    co_await make_small_tree(top);
    co_await gives(io::mkdir(top + "gone", 0700), 0);
    const int gone = co_await io::open(top + "gone", read_only | O_DIRECTORY);
    co_await gives(io::rmdir(top + "gone"), 0);
    co_await gives(io::openat(gone, "f", or_make, 0600), -ENOENT);
    co_await gives(io::openat(gone, "f", or_make | O_EXCL, 0600), -ENOENT);
    co_await gives(io::mkdirat(gone, "d", 0700), -ENOENT);
    co_await gives(io::symlinkat("x", gone, "s"), -ENOENT);
    co_await gives(io::linkat(AT_FDCWD, top + "f", gone, "f", 0), -ENOENT);
    co_await gives(io::renameat(AT_FDCWD, top + "f", gone, "f"), -ENOENT);
    co_await gives(io::unlinkat(gone, "f", 0), -ENOENT);
    struct ::statx st{};
    co_await gives(io::statx(gone, ".", 0, STATX_BASIC_STATS, &st), 0);
    EXPECT_EQ(st.stx_nlink, 0U);
    co_await gives(io::close(gone), 0);
}
TEST_P(Paths, NothingIsCreatedInARemovedDirectory) {
    run(names_in_a_removed_directory(directory()));
}

task<> path_resolution(std::string top) {
    co_await make_small_tree(top);
    co_await gives(io::symlink("../f", top + "d/up"), 0);
    co_await gives(io::symlink("/", top + "d/root"), 0);
    const int d = co_await io::open(top + "d", read_only | O_DIRECTORY);
    const auto resolve = [d](std::string path, std::uint64_t how, long wanted) -> task<> {
        ::open_how asked{};
        asked.flags = read_only;
        asked.resolve = how;
        int fd = co_await io::openat2(d, path, &asked, sizeof asked);
        if (fd >= 0) {
            fd = co_await io::close(fd);
        }
        EXPECT_EQ(fd, wanted) << path << ' ' << how;
    };
    co_await resolve("f", RESOLVE_BENEATH, 0);
    co_await resolve("up", 0, 0);
    co_await resolve("up", RESOLVE_BENEATH, -EXDEV);
    co_await resolve("../d/f", RESOLVE_BENEATH, -EXDEV);
    co_await resolve("./../d/f", RESOLVE_IN_ROOT, -ENOENT);
    co_await resolve("../f", RESOLVE_IN_ROOT, 0);
    co_await resolve("/f", RESOLVE_BENEATH, -EXDEV);
    co_await resolve("/f", RESOLVE_IN_ROOT, 0);
    co_await resolve("root", RESOLVE_BENEATH, -EXDEV);
    co_await resolve("root/f", RESOLVE_IN_ROOT, 0);
    co_await resolve("up", RESOLVE_NO_SYMLINKS, -ELOOP);
    co_await resolve("f", RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV, 0);
    co_await resolve("f", RESOLVE_BENEATH | RESOLVE_IN_ROOT, -EINVAL);
    co_await gives(io::close(d), 0);
}
TEST_P(Paths, Openat2Resolves) { run(path_resolution(directory())); }

task<> largest_offsets(std::string top) {
    const int fd = co_await io::open(top + "f", or_make, 0600);
    constexpr auto last = std::numeric_limits<::off_t>::max();
    char byte = 'x';
    co_await gives(io::write(fd, {&byte, 1}, last), -EINVAL);
    co_await gives(io::read(fd, {&byte, 1}, last), -EINVAL);
    co_await gives(io::write(fd, {&byte, 0}, last), 0);
    co_await gives(io::close(fd), 0);
}
TEST_P(Paths, TheLargestOffsets) { run(largest_offsets(directory())); }

} // namespace

} // namespace conformance
