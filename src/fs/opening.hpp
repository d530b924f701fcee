#pragma once

#include <sys/types.h>

struct open_how; // <linux/openat2.h>

// The open(2) calls of coil::fs; no other file of this directory opens anything. All return a
// descriptor with O_CLOEXEC, or -errno.
//
// A function that works on a tree resolves its path once, by open_path(). From there on it opens
// only entries of directories that it holds open. A user with write permission to the tree may
// rename, remove and create anything in it at any time, but can thereby only decide which of the
// tree's own files is opened.

namespace coil::fs::detail::sys {

/// Opens a path of the caller. The kernel resolves it, links and ".." included, so the users who
/// may write to the directories on it decide what it refers to. O_NOFOLLOW concerns the last
/// component.
int open_path(const char* path, int flags, ::mode_t mode = 0) noexcept;

/// Opens the entry `name` of the open directory `directory`, or "." for the directory itself.
///
/// With O_NOFOLLOW, or O_CREAT and O_EXCL, the file is one that `directory` itself contains: no
/// symbolic link, magic link, ".." or absolute path is followed. An entry that is a link causes
/// ELOOP (ENOTDIR with O_DIRECTORY) or, with O_PATH, opens the link itself; an entry that is moved
/// out of the directory meanwhile causes ENOENT. openat2(2) guarantees this. Where it is missing
/// (Linux before 5.6, a seccomp filter), a single component and O_NOFOLLOW have the same effect,
/// and anything else is refused with ELOOP.
///
/// Without these flags a link is followed: for links that the caller's options name, and for a path
/// that ends in a slash. With AT_FDCWD it is the same as open_path().
int open_entry(int directory, const char* name, int flags, ::mode_t mode = 0) noexcept;

/// Opens the parent of a directory. If others can move the directory, this may be any directory, so
/// compare its device and inode with the expected ones.
int open_parent(int directory, int flags) noexcept;

/// The argument with which openat2(2) opens an entry as open_entry() does with O_NOFOLLOW.
[[nodiscard]] ::open_how how_to_open_entry(int flags, ::mode_t mode = 0) noexcept;

} // namespace coil::fs::detail::sys
