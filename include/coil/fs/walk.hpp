#pragma once

#include <coil/core/async_generator.hpp>
#include <coil/fs/directory_entry.hpp>
#include <coil/fs/types.hpp>

#include <functional>
#include <system_error>

namespace coil::fs {

struct walk_options {
    /// skip_permission_denied: directories that may not be read are taken for empty.
    /// follow_directory_symlink: links to directories are descended into, except to one that the
    /// link is in, at whatever depth: the standard's iterators would go round until a path is too
    /// long.
    directory_options directories = directory_options::none;
    /// Whether to go into a directory (or a link to one): in the place of the standard's
    /// disable_recursion_pending(), which would come too late here, as the walk reads ahead. Called
    /// on threads of the pool, by several at a time; must not throw: that ends the
    /// program. Empty: into all.
    std::function<bool(const directory_entry&)> descend;
    /// Ask for everything about entries from the first batch on: saves what waiting for the first
    /// await that asks would cost.
    bool with_metadata = false;
};

/// What is in the directory `p`, as an asynchronous range; "." and ".." are left out, the order is
/// the file system's.
///
///     auto entries = fs::read_directory("/etc");
///     while (auto entry = co_await entries.next())
///         if (entry->is_regular_file()) total += co_await entry->file_size();
///
/// Errors come out of next(), as filesystem_error with `p`; or they are in `ec` when next() gives
/// the end, which must outlive the range. Nothing happens before the first next().
///
/// Threading: on a context. Cancellation: a next() that is cancelled while it waits ends the range
/// with std::errc::operation_canceled. Destroying the range waits for the jobs that have begun,
/// about a millisecond.
///
/// std::filesystem::directory_iterator, [fs.class.directory.iterator]; getdents64(2)
[[nodiscard]] async_generator<directory_entry>
read_directory(path p, directory_options options = directory_options::none);
[[nodiscard]] async_generator<directory_entry> read_directory(path p, std::error_code& ec);
[[nodiscard]] async_generator<directory_entry> read_directory(path p, directory_options options,
                                                              std::error_code& ec);

/// All that is below the directory `p`: read_directory() of it and of each directory in it. A
/// directory comes before what is in it; otherwise the order is unspecified.
///
///     auto tree = fs::walk("src");
///     while (auto entry = co_await tree.next())
///         std::puts(entry->path().c_str());
///
/// A few jobs of default_blocking_pool() read ahead, several directories at a time: not more than
/// some thousand entries, and not more directories open than 64 (fewer where RLIMIT_NOFILE is low).
/// Directories are opened relative to each other and without following links, unless told to. One
/// that vanishes before it is read is taken for empty.
///
/// Errors: the first directory that cannot be read ends it, after what was read before has come.
/// Threading, cancellation: as read_directory().
///
/// std::filesystem::recursive_directory_iterator, [fs.class.rec.dir.itr]
[[nodiscard]] async_generator<directory_entry> walk(path p, walk_options options);
[[nodiscard]] async_generator<directory_entry>
walk(path p, directory_options options = directory_options::none);
[[nodiscard]] async_generator<directory_entry> walk(path p, std::error_code& ec);
[[nodiscard]] async_generator<directory_entry> walk(path p, directory_options options,
                                                    std::error_code& ec);
[[nodiscard]] async_generator<directory_entry> walk(path p, walk_options options,
                                                    std::error_code& ec);

} // namespace coil::fs
