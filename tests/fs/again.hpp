#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs a test again in a new process that belongs to another user or has other mounts. The child
// executes the program anew after fork(2), so that it may create threads even with a sanitizer.

namespace fs_test {

class again {
public:
    explicit again(std::string test) : test_(std::move(test)) {}

    /// Whether this is the new process.
    [[nodiscard]] static bool is_it() { return std::getenv(variable) != nullptr; }
    [[nodiscard]] static std::string argument() { return std::getenv(variable); }

    /// Starts the new process. The test fails or is skipped like that of the child. `prepare` runs
    /// there before exec; a non-empty result is the reason for which the test is skipped.
    void run(const std::string& argument, const std::function<std::string()>& prepare) const {
        const std::string filter = "--gtest_filter=" + test_;
        const std::string set = std::string(variable) + '=' + argument;
        std::vector<char*> environment;
        for (char** e = environ; *e != nullptr; ++e) {
            if (std::strncmp(*e, "GTEST_", 6) != 0) {
                environment.push_back(*e);
            }
        }
        environment.push_back(const_cast<char*>(set.c_str()));
        environment.push_back(nullptr);
        char name[] = "again";
        char* const arguments[] = {name, const_cast<char*>(filter.c_str()), nullptr};
        const int self = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        int output[2];
        ASSERT_TRUE(self >= 0 && ::pipe2(output, O_CLOEXEC) == 0);
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            const std::string refusal = prepare();
            ::dup2(output[1], STDOUT_FILENO);
            ::dup2(output[1], STDERR_FILENO);
            if (refusal.empty()) {
                ::fexecve(self, arguments, environment.data());
            }
            const auto written = ::write(output[1], refusal.data(), refusal.size());
            ::_exit(written == static_cast<ssize_t>(refusal.size()) && !refusal.empty() ? cannot
                                                                                        : 1);
        }
        ::close(self);
        ::close(output[1]);
        std::string said;
        char buf[4096];
        for (ssize_t n; (n = ::read(output[0], buf, sizeof buf)) > 0;) {
            said.append(buf, static_cast<std::size_t>(n));
        }
        ::close(output[0]);
        int status = 0;
        ::waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == cannot) {
            GTEST_SKIP() << said;
        }
        const bool passed = said.find("[  PASSED  ] 1 test.") != std::string::npos;
        EXPECT_TRUE(status == 0 && passed) << said;
    }

private:
    static constexpr const char* variable = "COIL_FS_TEST_AGAIN";
    static constexpr int cannot = 77;

    std::string test_;
};

inline std::string become_nobody() {
    constexpr ::uid_t nobody = 65534;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
        ::setresuid(nobody, nobody, nobody) != 0) {
        return std::string("this process may not change its user: ") + std::strerror(errno);
    }
    return "";
}

/// Mounts a small tmpfs on each of these directories below `below`, visible to this process only.
inline std::string mount_small(const std::filesystem::path& below,
                               const std::vector<const char*>& names, const char* options) {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        return std::string("this process may not have its own mounts: ") + std::strerror(errno);
    }
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return std::string("mounts cannot be made private: ") + std::strerror(errno);
    }
    for (const char* const name : names) {
        if (::mount("coil", (below / name).c_str(), "tmpfs", 0, options) != 0) {
            return std::string("tmpfs cannot be mounted: ") + std::strerror(errno);
        }
    }
    return "";
}

} // namespace fs_test
