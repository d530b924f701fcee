#pragma once

#include <coil/uring/prep_core.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

struct open_how;

// Builders for files, directories, extended attributes, pipes, the ring's file table and classic
// provided buffers. See prep_core.hpp for what all builders have in common.

namespace coil::uring::prep {

/// The offset that means the file's current position, which then advances. Reads and writes of
/// pipes and sockets ignore the offset; splice requires this value for a pipe (-ESPIPE otherwise).
inline constexpr std::uint64_t current_position = ~std::uint64_t{0};

// ---- reading and writing. `rw_flags` are preadv2(2)'s RWF_*.

inline sqe read(int fd, void* buf, unsigned len, std::uint64_t offset) noexcept {
    return detail::entry(opcode::read, fd, detail::address(buf), len, offset);
}

/// The buffer must live until completion.
inline sqe write(int fd, const void* buf, unsigned len, std::uint64_t offset) noexcept {
    return detail::entry(opcode::write, fd, detail::address(buf), len, offset);
}

inline sqe readv(int fd, const ::iovec* iov, unsigned count, std::uint64_t offset,
                 int rw_flags = 0) noexcept {
    sqe s = detail::entry(opcode::readv, fd, detail::address(iov), count, offset);
    s.rw_flags = static_cast<std::uint32_t>(rw_flags);
    return s;
}

/// The buffers must live until completion, the iovec array until submission.
inline sqe writev(int fd, const ::iovec* iov, unsigned count, std::uint64_t offset,
                  int rw_flags = 0) noexcept {
    sqe s = detail::entry(opcode::writev, fd, detail::address(iov), count, offset);
    s.rw_flags = static_cast<std::uint32_t>(rw_flags);
    return s;
}

/// Reads into a part of the registered buffer `index`.
inline sqe read_fixed(int fd, void* buf, unsigned len, std::uint64_t offset,
                      unsigned index) noexcept {
    sqe s = detail::entry(opcode::read_fixed, fd, detail::address(buf), len, offset);
    s.buf_index = static_cast<std::uint16_t>(index);
    return s;
}

/// Writes from a part of the registered buffer `index`.
inline sqe write_fixed(int fd, const void* buf, unsigned len, std::uint64_t offset,
                       unsigned index) noexcept {
    sqe s = detail::entry(opcode::write_fixed, fd, detail::address(buf), len, offset);
    s.buf_index = static_cast<std::uint16_t>(index);
    return s;
}

/// Reads into several parts of the registered buffer `index` (Linux 6.15).
inline sqe readv_fixed(int fd, const ::iovec* iov, unsigned count, std::uint64_t offset,
                       unsigned index) noexcept {
    sqe s = detail::entry(opcode::readv_fixed, fd, detail::address(iov), count, offset);
    s.buf_index = static_cast<std::uint16_t>(index);
    return s;
}

/// Writes from several parts of the registered buffer `index` (Linux 6.15).
inline sqe writev_fixed(int fd, const ::iovec* iov, unsigned count, std::uint64_t offset,
                        unsigned index) noexcept {
    sqe s = detail::entry(opcode::writev_fixed, fd, detail::address(iov), count, offset);
    s.buf_index = static_cast<std::uint16_t>(index);
    return s;
}

/// Reads repeatedly into buffers of `group`, up to `len` bytes each (0: the buffer's size), from
/// pollable files (Linux 6.7).
constexpr sqe read_multishot(int fd, unsigned len, std::uint64_t offset, unsigned group) noexcept {
    sqe s = detail::entry(opcode::read_multishot, fd, 0, len, offset);
    s.buf_group = static_cast<std::uint16_t>(group);
    s.flags = sqe_flag::buffer_select;
    return s;
}

// ---- open and close. openat_direct and openat2_direct put the file into slot `index` of the
// ring's file table and complete with 0; with file_index_alloc the kernel chooses a free slot and
// completes with its number. Both refuse O_CLOEXEC with -EINVAL.

inline sqe openat(int dfd, const char* path, int flags, ::mode_t mode = 0) noexcept {
    sqe s = detail::entry(opcode::openat, dfd, detail::address(path), mode);
    s.open_flags = static_cast<std::uint32_t>(flags);
    return s;
}

inline sqe openat_direct(int dfd, const char* path, int flags, ::mode_t mode,
                         std::uint32_t index) noexcept {
    sqe s = prep::openat(dfd, path, flags, mode);
    s.file_index = detail::slot(index);
    return s;
}

/// `size` is the size of `how`: sizeof(open_how) in the caller's header.
inline sqe openat2(int dfd, const char* path, const ::open_how* how, std::size_t size) noexcept {
    return detail::entry(opcode::openat2, dfd, detail::address(path),
                         static_cast<std::uint32_t>(size), detail::address(how));
}

inline sqe openat2_direct(int dfd, const char* path, const ::open_how* how, std::size_t size,
                          std::uint32_t index) noexcept {
    sqe s = prep::openat2(dfd, path, how, size);
    s.file_index = detail::slot(index);
    return s;
}

constexpr sqe close(int fd) noexcept { return detail::entry(opcode::close, fd); }

constexpr sqe close_direct(std::uint32_t index) noexcept {
    sqe s = detail::entry(opcode::close, 0);
    s.file_index = detail::slot(index);
    return s;
}

// ---- metadata, space, durability

inline sqe statx(int dfd, const char* path, int flags, unsigned mask,
                 struct ::statx* buf) noexcept {
    sqe s = detail::entry(opcode::statx, dfd, detail::address(path), mask, detail::address(buf));
    s.statx_flags = static_cast<std::uint32_t>(flags);
    return s;
}

constexpr sqe fsync(int fd, std::uint32_t flags = 0) noexcept {
    sqe s = detail::entry(opcode::fsync, fd);
    s.fsync_flags = flags;
    return s;
}

constexpr sqe fdatasync(int fd) noexcept { return prep::fsync(fd, fsync_flag::datasync); }

constexpr sqe sync_file_range(int fd, std::uint64_t offset, unsigned len, int flags) noexcept {
    sqe s = detail::entry(opcode::sync_file_range, fd, 0, len, offset);
    s.sync_range_flags = static_cast<std::uint32_t>(flags);
    return s;
}

constexpr sqe fallocate(int fd, int mode, std::uint64_t offset, std::uint64_t len) noexcept {
    return detail::entry(opcode::fallocate, fd, len, static_cast<std::uint32_t>(mode), offset);
}

constexpr sqe ftruncate(int fd, std::uint64_t length) noexcept {
    return detail::entry(opcode::ftruncate, fd, 0, 0, length);
}

/// A `len` of 4 GiB or more needs Linux 6.10; older kernels complete with -EINVAL.
constexpr sqe fadvise(int fd, std::uint64_t offset, std::uint64_t len, int advice) noexcept {
    const bool small = len <= 0xffffffffU;
    sqe s = detail::entry(opcode::fadvise, fd, small ? 0 : len,
                          small ? static_cast<std::uint32_t>(len) : 0, offset);
    s.fadvise_advice = static_cast<std::uint32_t>(advice);
    return s;
}

/// A `len` of 4 GiB or more needs Linux 6.10; older kernels complete with -EINVAL.
inline sqe madvise(void* addr, std::uint64_t len, int advice) noexcept {
    const bool small = len <= 0xffffffffU;
    sqe s = detail::entry(opcode::madvise, -1, detail::address(addr),
                          small ? static_cast<std::uint32_t>(len) : 0, small ? 0 : len);
    s.fadvise_advice = static_cast<std::uint32_t>(advice);
    return s;
}

// ---- names

inline sqe unlinkat(int dfd, const char* path, int flags) noexcept {
    sqe s = detail::entry(opcode::unlinkat, dfd, detail::address(path));
    s.unlink_flags = static_cast<std::uint32_t>(flags);
    return s;
}

inline sqe renameat(int old_dfd, const char* old_path, int new_dfd, const char* new_path,
                    unsigned flags = 0) noexcept {
    sqe s = detail::entry(opcode::renameat, old_dfd, detail::address(old_path),
                          static_cast<std::uint32_t>(new_dfd), detail::address(new_path));
    s.rename_flags = flags;
    return s;
}

inline sqe mkdirat(int dfd, const char* path, ::mode_t mode) noexcept {
    return detail::entry(opcode::mkdirat, dfd, detail::address(path), mode);
}

inline sqe symlinkat(const char* target, int new_dfd, const char* link_path) noexcept {
    return detail::entry(opcode::symlinkat, new_dfd, detail::address(target), 0,
                         detail::address(link_path));
}

inline sqe linkat(int old_dfd, const char* old_path, int new_dfd, const char* new_path,
                  int flags) noexcept {
    sqe s = detail::entry(opcode::linkat, old_dfd, detail::address(old_path),
                          static_cast<std::uint32_t>(new_dfd), detail::address(new_path));
    s.hardlink_flags = static_cast<std::uint32_t>(flags);
    return s;
}

// ---- extended attributes; the value must live until completion

inline sqe getxattr(const char* path, const char* name, void* value, std::size_t len) noexcept {
    sqe s = detail::entry(opcode::getxattr, 0, detail::address(name),
                          static_cast<std::uint32_t>(len), detail::address(value));
    s.addr3 = detail::address(path);
    return s;
}

inline sqe setxattr(const char* path, const char* name, const void* value, std::size_t len,
                    int flags) noexcept {
    sqe s = detail::entry(opcode::setxattr, 0, detail::address(name),
                          static_cast<std::uint32_t>(len), detail::address(value));
    s.addr3 = detail::address(path);
    s.xattr_flags = static_cast<std::uint32_t>(flags);
    return s;
}

inline sqe fgetxattr(int fd, const char* name, void* value, std::size_t len) noexcept {
    return detail::entry(opcode::fgetxattr, fd, detail::address(name),
                         static_cast<std::uint32_t>(len), detail::address(value));
}

inline sqe fsetxattr(int fd, const char* name, const void* value, std::size_t len,
                     int flags) noexcept {
    sqe s = detail::entry(opcode::fsetxattr, fd, detail::address(name),
                          static_cast<std::uint32_t>(len), detail::address(value));
    s.xattr_flags = static_cast<std::uint32_t>(flags);
    return s;
}

// ---- pipes

/// splice(2), with offsets by value: current_position stands for the call's null pointer.
constexpr sqe splice(int fd_in, std::uint64_t off_in, int fd_out, std::uint64_t off_out,
                     unsigned len, unsigned flags = 0) noexcept {
    sqe s = detail::entry(opcode::splice, fd_out, off_in, len, off_out);
    s.splice_fd_in = fd_in;
    s.splice_flags = flags;
    return s;
}

constexpr sqe tee(int fd_in, int fd_out, unsigned len, unsigned flags = 0) noexcept {
    sqe s = detail::entry(opcode::tee, fd_out, 0, len);
    s.splice_fd_in = fd_in;
    s.splice_flags = flags;
    return s;
}

/// pipe2(2) (Linux 6.16).
inline sqe pipe(int fds[2], int flags = 0) noexcept {
    sqe s = detail::entry(opcode::pipe, 0, detail::address(fds));
    s.pipe_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// Like pipe, but into two consecutive slots from `index`, or two free ones with file_index_alloc.
inline sqe pipe_direct(int fds[2], int flags, std::uint32_t index) noexcept {
    sqe s = prep::pipe(fds, flags);
    s.file_index = detail::slot(index);
    return s;
}

// ---- the ring's file table, and classic provided buffers (without a buffer ring)

/// Replaces `count` slots from `offset` on; -1 empties a slot. With file_index_alloc as `offset`
/// (Linux 5.19) each descriptor goes to a free slot, whose number replaces it in the array.
/// Completes with the number of slots processed. The array must live until completion.
inline sqe files_update(int* fds, unsigned count, unsigned offset) noexcept {
    return detail::entry(opcode::files_update, -1, detail::address(fds), count, offset);
}

/// Creates an ordinary descriptor for the direct one in `slot` (Linux 6.8); close-on-exec unless
/// fixed_fd_flag::no_cloexec.
constexpr sqe fixed_fd_install(int slot, unsigned flags = 0) noexcept {
    sqe s = detail::entry(opcode::fixed_fd_install, slot);
    s.flags = sqe_flag::fixed_file;
    s.install_fd_flags = flags;
    return s;
}

/// Provides `count` adjacent buffers of `len` bytes, with ids from `bid` on, as `group`.
inline sqe provide_buffers(void* addr, unsigned len, int count, unsigned group,
                           unsigned bid) noexcept {
    sqe s = detail::entry(opcode::provide_buffers, count, detail::address(addr), len, bid);
    s.buf_group = static_cast<std::uint16_t>(group);
    return s;
}

constexpr sqe remove_buffers(int count, unsigned group) noexcept {
    sqe s = detail::entry(opcode::remove_buffers, count);
    s.buf_group = static_cast<std::uint16_t>(group);
    return s;
}

} // namespace coil::uring::prep
