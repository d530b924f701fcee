#pragma once

#include "support/descriptors.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace coil_test {

/// Sets fs.protected_symlinks, protected_hardlinks, protected_regular and protected_fifos
/// (proc_sys_fs(5)) to a value, and restores them when it is destroyed. The settings are those of
/// the whole machine, so only one such object exists at a time, in any process. Only root can
/// change them; refusal() says why they have another value.
class file_protections {
public:
    explicit file_protections(char value) : lock_(::open(paths[0], O_RDONLY | O_CLOEXEC)) {
        if (lock_ < 0) {
            refuse(paths[0]);
            return;
        }
        while (::flock(lock_, LOCK_EX) != 0 && errno == EINTR) {
        }
        for (std::size_t i = 0; i < paths.size(); ++i) {
            before_[i] = content(paths[i]);
            // The first two are switches: they have no value 2.
            const char wanted = value == '2' && i < 2 ? '1' : value;
            if (before_[i] != wanted && !put(paths[i], wanted)) {
                refuse(paths[i]);
            }
        }
    }
    file_protections(const file_protections&) = delete;
    file_protections& operator=(const file_protections&) = delete;
    ~file_protections() {
        for (std::size_t i = 0; i < paths.size(); ++i) {
            if (before_[i] != '\0' && content(paths[i]) != before_[i]) {
                put(paths[i], before_[i]);
            }
        }
    }

    /// Empty if the settings have the value.
    [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }

private:
    static constexpr std::array paths{
        "/proc/sys/fs/protected_symlinks", "/proc/sys/fs/protected_hardlinks",
        "/proc/sys/fs/protected_regular", "/proc/sys/fs/protected_fifos"};

    static char content(const char* path) {
        char value = '\0';
        const descriptor fd(::open(path, O_RDONLY | O_CLOEXEC));
        return ::read(fd, &value, 1) == 1 ? value : '\0';
    }
    static bool put(const char* path, char value) {
        const descriptor fd(::open(path, O_WRONLY | O_CLOEXEC));
        return ::write(fd, &value, 1) == 1;
    }
    void refuse(const char* path) {
        refusal_ = std::string("cannot set ") + path + ": " + std::strerror(errno);
    }

    const descriptor lock_; // of a file that every machine has; closing it unlocks
    std::array<char, paths.size()> before_{};
    std::string refusal_;
};

} // namespace coil_test
