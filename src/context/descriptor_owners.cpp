// The table of descriptors that objects own.

#include <coil/base/assert.hpp>
#include <coil/context/detail/descriptor_owners.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <sys/stat.h>

namespace coil::detail {

namespace {

constexpr std::size_t most_descriptors = 65536; // larger numbers are not checked

/// The kind of the owner of each descriptor, indexed by its number; null: no owner.
[[maybe_unused]] constinit std::array<std::atomic<const char*>, most_descriptors> owners{};

[[maybe_unused]] std::atomic<const char*>* entry_of(int fd) noexcept {
#if COIL_ASSERTIONS
    return fd >= 0 && static_cast<std::size_t>(fd) < most_descriptors
               ? &owners[static_cast<std::size_t>(fd)]
               : nullptr;
#else
    static_cast<void>(fd);
    return nullptr;
#endif
}

// The number that the kernel gives each socket, and other values.
constexpr std::uint64_t unknown_file = 0;
constexpr std::uint64_t not_a_socket = 1;

/// The socket that each owned descriptor referred to when its owner took it.
[[maybe_unused]] constinit std::array<std::atomic<std::uint64_t>, most_descriptors> sockets{};

std::uint64_t socket_at(int fd) noexcept {
    struct ::stat file{};
    if (::fstat(fd, &file) != 0) {
        return unknown_file;
    }
    return S_ISSOCK(file.st_mode) ? file.st_ino : not_a_socket;
}

} // namespace

void note_descriptor_owned(int fd, const char* owner) noexcept {
    if (auto* const entry = entry_of(fd)) {
        if (const char* const other = entry->exchange(owner, std::memory_order_relaxed)) {
            std::fprintf(stderr,
                         "coil: descriptor %d has two owners: %s takes it while %s owns it. Each "
                         "will close it. Call release() of the first owner. If the descriptor of "
                         "the first was closed by its number, this is another file with that "
                         "number.\n",
                         fd, owner, other);
        }
        sockets[static_cast<std::size_t>(fd)].store(socket_at(fd), std::memory_order_relaxed);
    }
}

void check_owned_descriptor(int fd, const char* owner) noexcept {
    if (entry_of(fd) == nullptr) {
        return;
    }
    const std::uint64_t taken =
        sockets[static_cast<std::size_t>(fd)].load(std::memory_order_relaxed);
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
        entry->store(nullptr, std::memory_order_relaxed);
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
        if (const char* const owner = entry->load(std::memory_order_relaxed)) {
            std::fprintf(stderr,
                         "coil: io::close(%d) closes a descriptor of %s, whose destructor will "
                         "close its number again. Call close() of the owner, or release() first.\n",
                         fd, owner);
        }
    }
}

} // namespace coil::detail
