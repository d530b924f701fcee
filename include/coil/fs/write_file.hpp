#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <concepts>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil::fs {

/// How write_file treats an existing file.
enum class write_mode : unsigned char {
    truncate,   ///< its content is replaced in place (O_TRUNC)
    append,     ///< the data is appended (O_APPEND)
    create_new, ///< fails with std::errc::file_exists (O_EXCL)
    replace,    ///< a new file replaces it atomically: see atomic_replace
};

/// Options of write_file().
struct write_options {
    write_mode mode = write_mode::truncate;
    /// Whether the data, and the name of a new file, are on the device when the await returns.
    /// Always true for `replace`.
    bool durable = false;
    /// The mode of a new file, subject to the umask.
    perms permissions = static_cast<perms>(0666);
};

/// Writes a file: creates it if it does not exist, otherwise does what `options` say.
///
///     co_await fs::write_file("notes", "buy milk\n");
///     co_await fs::write_file("log", line, fs::write_mode::append);
///
/// `data` is anything that converts to a const_buffer; the memory must outlive the await (`co_await
/// fs::write_file(p, text)` is fine; spawn(fs::write_file(p, text)) needs a `text` that outlives
/// the task). The task takes ownership of a std::string, std::vector or other container passed as
/// an rvalue. Throws filesystem_error with the errno of open(2), write(2), fsync(2), rename(2) or
/// close(2).
///
/// Threading: on a context. Cancellation: std::errc::operation_canceled; `replace` has then had no
/// effect (it can no longer be cancelled once the rename has begun), every other mode may have
/// written a part. The same holds if the coroutine is destroyed meanwhile.
task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND, write_options options = {});
/// The same; on failure sets `ec`, which must outlive the await.
task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND, write_options options,
                  std::error_code& ec);
COIL_CORO_WRAPPER inline task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND,
                                           std::error_code& ec) {
    return write_file(std::move(p), data, write_options(), ec);
}
/// The same with only a mode.
COIL_CORO_WRAPPER inline task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND,
                                           write_mode mode) {
    return write_file(std::move(p), data, write_options{.mode = mode});
}
COIL_CORO_WRAPPER inline task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND,
                                           write_mode mode, std::error_code& ec) {
    return write_file(std::move(p), data, write_options{.mode = mode}, ec);
}

/// For write_file: replaces the file atomically. A process that opens the file, now or after a
/// crash of the program or the system, finds either the old content or the complete new content.
///
///     co_await fs::write_file("settings.json", text, fs::atomic_replace);
///
/// The data is written to a new file in the same directory and synchronized; then the file is
/// renamed (rename(2)) to the given name, and the directory is synchronized (unless it is writable
/// but not readable).
///
/// Attributes: the new file has the mode, the owner, the group and the access control list (acl(5))
/// of the old one. If the owner may not be set, it has no set-user-ID bit; if the group may not be
/// set, it has no set-group-ID bit, and its group gets only the permissions of others. In both
/// cases the list is not copied: group and others get only the permissions that all of its entries
/// grant (none if the list cannot be read; if a seccomp filter forbids reading it, the group gets
/// no more than others). A list inherited from the directory is removed. Other extended attributes
/// are not copied; other hard links keep the old content.
///
/// As in other modes a symbolic link is followed: its target is replaced. The kernel follows it, so
/// fs.protected_symlinks and fs.protected_regular apply in directories such as /tmp
/// (proc_sys_fs(5)): EACCES. Where the kernel makes no such check (a link to a file that does not
/// exist, the replaced file), this function does; if it cannot read the settings, they count as
/// enabled.
///
/// Errors, besides those of the calls: EACCES for a file that is not writable, EISDIR for a
/// directory, EINVAL for another file that is not regular, EPERM for a file in an append-only
/// directory (chattr(1)), EAGAIN if other processes keep replacing the file.
///
/// The new file has no name until it is complete (O_TMPFILE), so that a crash before then leaves
/// nothing behind. If there is no file to replace, it then gets its name (linkat(2)). Otherwise it
/// gets a temporary name and is renamed (rename(2)); a crash between the two leaves
/// `.coil-<16 hexadecimal digits>.tmp` in the directory. So does a crash at any time on a file
/// system without O_TMPFILE, or if /proc is not mounted. Such files may be removed.
inline constexpr write_options atomic_replace{.mode = write_mode::replace, .durable = true};

namespace detail {

/// A container that owns its elements, passed as an rvalue.
template <class R>
concept dying_bytes = !std::is_reference_v<R> && coil::detail::byte_like_range<R&> &&
                      !std::ranges::borrowed_range<R> && std::move_constructible<R>;

template <class R>
task<> write_kept(path p, R data, write_options options) {
    co_await write_file(std::move(p), const_buffer(data), options);
}
template <class R>
task<> write_kept(path p, R data, write_options options, std::error_code& ec) {
    co_await write_file(std::move(p), const_buffer(data), options, ec);
}

} // namespace detail

/// The same; the task takes ownership of `data`.
template <detail::dying_bytes R>
COIL_CORO_COPIES task<> write_file(path p, R&& data, write_options options = {}) {
    return detail::write_kept<R>(std::move(p), std::move(data), options);
}
template <detail::dying_bytes R>
COIL_CORO_COPIES task<> write_file(path p, R&& data, write_options options, std::error_code& ec) {
    return detail::write_kept<R>(std::move(p), std::move(data), options, ec);
}
template <detail::dying_bytes R>
COIL_CORO_COPIES task<> write_file(path p, R&& data, std::error_code& ec) {
    return detail::write_kept<R>(std::move(p), std::move(data), write_options(), ec);
}

template <detail::dying_bytes R>
COIL_CORO_COPIES task<> write_file(path p, R&& data, write_mode mode) {
    return detail::write_kept<R>(std::move(p), std::move(data), write_options{.mode = mode});
}
template <detail::dying_bytes R>
COIL_CORO_COPIES task<> write_file(path p, R&& data, write_mode mode, std::error_code& ec) {
    return detail::write_kept<R>(std::move(p), std::move(data), write_options{.mode = mode}, ec);
}

/// Produces a readable compiler error.
task<> write_file(...)
    COIL_DELETE("write_file takes a path, the data, and perhaps options: write_file(path, data, "
                "{.mode = ...})");

} // namespace coil::fs
