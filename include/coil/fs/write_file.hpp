#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <concepts>
#include <ranges>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil::fs {

/// What write_file makes of a file that is there already.
enum class write_mode : unsigned char {
    truncate,   ///< its content is replaced in place (O_TRUNC)
    append,     ///< the data comes behind its content (O_APPEND)
    create_new, ///< std::errc::file_exists (O_EXCL)
    replace,    ///< a new file takes its place in one step: see atomic_replace
};

struct write_options {
    write_mode mode = write_mode::truncate;
    /// Whether the data, and the name of a file that is new, are on the device when the await
    /// returns. `replace` does so in any case.
    bool durable = false;
    /// Of a file that is made, less the process's umask.
    perms permissions = static_cast<perms>(0666);
};

/// For write_file: whoever opens the file, now or after a crash of the program or the system, finds
/// the old content or the new one, all of it, and never none.
///
///     co_await fs::write_file("settings.json", text, fs::atomic_replace);
///
/// The data is written to a new file in the same directory and synchronized, which is then renamed
/// (rename(2)) to the name, and the directory synchronized. The new file has the mode of the old
/// one and, where that is permitted, its owner and group (where not, neither set-user-ID nor
/// set-group-ID bit); access control lists and other extended attributes are not copied, and other
/// hard links keep the old content. A symbolic link is followed, as other modes do: what it refers
/// to is replaced. The kernel follows it, so fs.protected_symlinks and fs.protected_regular protect
/// from what others have put into a directory like /tmp (proc_sys_fs(5)): EACCES. EAGAIN: others
/// exchange the name all the time. What may not be written to is not replaced either (EACCES), nor
/// what is not a regular file (EINVAL). A directory that may be written but not read is not
/// synchronized.
///
/// The new file has no name before it is complete (O_TMPFILE), so nothing is left of one that is
/// not. A crash between its two names leaves `.coil-<16 hexadecimal digits>.tmp` in the directory;
/// so does one at any time on a file system without O_TMPFILE, or where /proc is not mounted. These
/// may be removed.
inline constexpr write_options atomic_replace{.mode = write_mode::replace, .durable = true};

/// Writes a file: makes it where it is not there, and else does what `options` say.
///
///     co_await fs::write_file("notes", "buy milk\n");
///     co_await fs::write_file("log", line, fs::write_mode::append);
///
/// `data` is anything that makes a const_buffer, and must then outlive the await (`co_await
/// fs::write_file(p, text)` is fine, and spawn(fs::write_file(p, text)) needs a `text` that lives
/// on); a std::string, std::vector or other container that is given as an rvalue is kept by the
/// task. Throws filesystem_error with the errno of open(2), write(2), fsync(2), rename(2) or
/// close(2).
///
/// Threading: on a context. Cancellation: std::errc::operation_canceled; `replace` has then done
/// nothing (once the rename has begun it is not cancelled any more), every other mode may have
/// written a part. The same holds for a coroutine that is destroyed meanwhile.
task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND, write_options options = {});
/// The same; `ec` tells of failure, and must outlive the await.
task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND, write_options options,
                  std::error_code& ec);
inline task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND, std::error_code& ec) {
    return write_file(std::move(p), data, write_options(), ec);
}
/// The same with a mode alone.
inline task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND, write_mode mode) {
    return write_file(std::move(p), data, write_options{.mode = mode});
}
inline task<> write_file(path p, const_buffer data COIL_LIFETIMEBOUND, write_mode mode,
                         std::error_code& ec) {
    return write_file(std::move(p), data, write_options{.mode = mode}, ec);
}

namespace detail {

/// A container that dies with the expression it is made in, and its elements with it.
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

/// As above; the task keeps `data`.
template <detail::dying_bytes R>
task<> write_file(path p, R&& data, write_options options = {}) {
    return detail::write_kept<R>(std::move(p), std::move(data), options);
}
template <detail::dying_bytes R>
task<> write_file(path p, R&& data, write_options options, std::error_code& ec) {
    return detail::write_kept<R>(std::move(p), std::move(data), options, ec);
}
template <detail::dying_bytes R>
task<> write_file(path p, R&& data, std::error_code& ec) {
    return detail::write_kept<R>(std::move(p), std::move(data), write_options(), ec);
}

template <detail::dying_bytes R>
task<> write_file(path p, R&& data, write_mode mode) {
    return detail::write_kept<R>(std::move(p), std::move(data), write_options{.mode = mode});
}
template <detail::dying_bytes R>
task<> write_file(path p, R&& data, write_mode mode, std::error_code& ec) {
    return detail::write_kept<R>(std::move(p), std::move(data), write_options{.mode = mode}, ec);
}

} // namespace coil::fs
