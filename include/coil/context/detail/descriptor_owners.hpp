#pragma once

#include <coil/base/assert.hpp>

namespace coil::detail {

// A table of the descriptors that objects own. It detects a descriptor with two owners. Without
// assertions there is no table, and these functions do nothing.

/// Records that an object takes ownership. Reports an existing owner on stderr.
void note_descriptor_owned(int fd, const char* owner) noexcept;
/// Called before the owner's destructor closes the descriptor: reports a socket that was replaced
/// by another file.
void check_owned_descriptor(int fd, const char* owner) noexcept;
/// Records that the owner releases the descriptor, or is about to close it.
void note_descriptor_given_up(int fd) noexcept;
/// Records the result of the owner's close(). Reports -EBADF: the descriptor was closed before.
void note_descriptor_closed(int fd, int result, const char* owner) noexcept;
/// Records a close() by number, not by an owner. Reports a descriptor that has an owner.
void note_closed_by_number(int fd) noexcept;

/// The first two functions for inline code. Without assertions they compile to nothing.
inline int owned_by(int fd, [[maybe_unused]] const char* owner) noexcept {
#if COIL_ASSERTIONS
    note_descriptor_owned(fd, owner);
#endif
    return fd;
}
inline int given_up(int fd) noexcept {
#if COIL_ASSERTIONS
    note_descriptor_given_up(fd);
#endif
    return fd;
}

} // namespace coil::detail
