#pragma once

#include <coil/base/assert.hpp>

namespace coil::detail {

// A table of the descriptors that objects own, to find numbers with two owners. It is kept if the
// library has assertions; otherwise these functions do nothing.

/// An object takes ownership. Reports an existing owner on stderr.
void note_descriptor_owned(int fd, const char* owner) noexcept;
/// The owner gives the descriptor up, or closes it.
void note_descriptor_given_up(int fd) noexcept;
/// The owner was about to close it and got `result`. Reports -EBADF: its number was closed before.
void note_descriptor_closed(int fd, int result, const char* owner) noexcept;
/// It is closed by its number. Reports an owner.
void note_closed_by_number(int fd) noexcept;

/// The same for inline code: they compile to nothing without assertions.
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
