#include "files.hpp"
#include "libc_calls.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// The definitions for libc_calls.hpp. They have names of their own, because those of <fcntl.h> may
// be macros or inline functions.

extern "C" {

int fs_test_openat(int directory, const char* name, int flags, ...) __asm__("openat");
int fs_test_mkdirat(int directory, const char* name, ::mode_t mode) __asm__("mkdirat");
int fs_test_fchmodat(int directory, const char* name, ::mode_t mode, int flags) __asm__("fchmodat");

int fs_test_openat(int directory, const char* name, int flags, ...) {
    std::va_list arguments;
    va_start(arguments, flags);
    const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    const ::mode_t mode = creates ? va_arg(arguments, ::mode_t) : 0;
    va_end(arguments);
    if (auto* const before = fs_test::before_open_path.load();
        before != nullptr && (flags & O_PATH) != 0) {
        before(name);
    }
    const bool concerns = (flags & (O_NOFOLLOW | O_EXCL)) != 0;
    if (!concerns || !fs_test::follows_links.load(std::memory_order_relaxed)) {
        return static_cast<int>(::syscall(SYS_openat, directory, name, flags, mode));
    }
    auto* const around = fs_test::around_openat.load();
    if (around != nullptr) {
        around(name);
    }
    const auto fd = static_cast<int>(
        ::syscall(SYS_openat, directory, name, flags & ~(O_NOFOLLOW | O_EXCL), mode));
    const int error = errno;
    if (around != nullptr) {
        around(name);
    }
    errno = error;
    return fd;
}

int fs_test_mkdirat(int directory, const char* name, ::mode_t mode) {
    if (auto* const before = fs_test::before_mkdirat.load()) {
        before(directory, name);
    }
    return static_cast<int>(::syscall(SYS_mkdirat, directory, name, mode));
}

int fs_test_fchmodat(int directory, const char* name, ::mode_t mode, int flags) {
    if (auto* const before = fs_test::before_fchmodat.exchange(nullptr)) {
        before();
    }
    // Linux has no fchmodat with flags before 6.6, so the C library's function emulates them.
    static const auto next =
        reinterpret_cast<decltype(&fs_test_fchmodat)>(::dlsym(RTLD_NEXT, "fchmodat"));
    return next(directory, name, mode, flags);
}

} // extern "C"

namespace {

TEST(FsLibcCalls, AreThoseOfThisProgram) {
    const coil_test::scratch dir;
    std::filesystem::create_symlink(".", dir / "link");
    const std::string link = dir / "link";
    EXPECT_EQ(::openat(AT_FDCWD, link.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC), -1);
    EXPECT_EQ(errno, ELOOP);
    fs_test::follows_links = true;
    const int fd = ::openat(AT_FDCWD, link.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    fs_test::follows_links = false;
    EXPECT_GE(fd, 0);
    ::close(fd);
}

} // namespace
