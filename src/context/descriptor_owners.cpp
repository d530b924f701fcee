// The table of descriptors that objects own.

#include <coil/base/assert.hpp>
#include <coil/context/detail/descriptor_owners.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

constexpr std::size_t most_descriptors = 65536; // larger numbers are not checked

struct owned_descriptor_entry {
    std::atomic<const char*> owner{nullptr}; // its kind; null: no owner
    // the number that the kernel gave the socket when the owner took it, or one of those below
    std::atomic<std::uint64_t> socket{0};
};
constexpr std::uint64_t unknown_file = 0;
constexpr std::uint64_t not_a_socket = 1;

/// Indexed by the number of the descriptor.
[[maybe_unused]] constinit std::array<owned_descriptor_entry, most_descriptors>
    descriptor_entries{};

[[maybe_unused]] owned_descriptor_entry* entry_of(int fd) noexcept {
#if COIL_ASSERTIONS
    return fd >= 0 && static_cast<std::size_t>(fd) < most_descriptors
               ? &descriptor_entries[static_cast<std::size_t>(fd)]
               : nullptr;
#else
    static_cast<void>(fd);
    return nullptr;
#endif
}

/// By a bare system call. ThreadSanitizer takes fstat() for an access to the descriptor. It would
/// report a race with a close() of that number, because it does not see what io_uring has closed
/// and opened in between.
std::uint64_t socket_at(int fd) noexcept {
    struct ::statx file{};
    if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO, &file) != 0) {
        return unknown_file;
    }
    return S_ISSOCK(file.stx_mode) ? file.stx_ino : not_a_socket;
}

} // namespace

void note_descriptor_owned(int fd, const char* owner) noexcept {
    if (auto* const entry = entry_of(fd)) {
        if (const char* const other = entry->owner.exchange(owner, std::memory_order_relaxed)) {
            std::fprintf(stderr,
                         "coil: descriptor %d has two owners: %s takes it while %s owns it. Each "
                         "will close it. Call release() of the first owner. If the descriptor of "
                         "the first was closed by its number, this is another file with that "
                         "number.\n",
                         fd, owner, other);
        }
        entry->socket.store(socket_at(fd), std::memory_order_relaxed);
    }
}

void check_owned_descriptor(int fd, const char* owner) noexcept {
    const auto* const entry = entry_of(fd);
    if (entry == nullptr) {
        return;
    }
    const std::uint64_t taken = entry->socket.load(std::memory_order_relaxed);
    if (taken == unknown_file || taken == not_a_socket) {
        return; // other files may be replaced on purpose, such as a log by dup2()
    }
    const std::uint64_t now = socket_at(fd);
    if (now != unknown_file && now != taken) {
        std::fprintf(stderr,
                     "coil: the destructor of %s closes descriptor %d, which is another file than "
                     "the one it took: that was closed by its number, or dup2() has replaced it. "
                     "Call close() of its owner, or release() first.\n",
                     owner, fd);
    }
}

void note_descriptor_given_up(int fd) noexcept {
    if (auto* const entry = entry_of(fd)) {
        entry->owner.store(nullptr, std::memory_order_relaxed);
    }
}

void note_descriptor_closed(int fd, int result, const char* owner) noexcept {
    if (entry_of(fd) != nullptr && result == -EBADF) {
        std::fprintf(stderr,
                     "coil: the destructor of %s closes descriptor %d, which was closed before by "
                     "its number. Call close() of its owner, or release() first.\n",
                     owner, fd);
    }
}

void note_closed_by_number(int fd) noexcept {
    if (auto* const entry = entry_of(fd)) {
        if (const char* const owner = entry->owner.load(std::memory_order_relaxed)) {
            std::fprintf(stderr,
                         "coil: io::close(%d) closes a descriptor of %s, whose destructor will "
                         "close its number again. Call close() of the owner, or release() first.\n",
                         fd, owner);
        }
    }
}

} // namespace coil::detail
