#pragma once

#include <coil/core/async_generator.hpp>
#include <coil/fs/directory_entry.hpp>
#include <coil/fs/types.hpp>

#include <functional>
#include <system_error>

namespace coil::fs {

/// Options of walk().
struct walk_options {
    /// skip_permission_denied: directories that may not be read count as empty.
    /// follow_directory_symlink: links to directories are followed, except links to one of their
    /// own ancestors. (The standard's iterators follow these until the path is too long.)
    directory_options directories = directory_options::none;
    /// Whether to descend into a directory (or a link to one). Replaces the standard's
    /// disable_recursion_pending(), which would come too late because the walk reads ahead. Called
    /// on threads of the pool, concurrently. Must not throw: an exception terminates the program.
    /// Empty: descend into all.
    std::function<bool(const directory_entry&)> descend = {};
    /// Query the metadata of all entries as they are read. Saves the latency of the first await
    /// that needs it.
    bool with_metadata = false;
};

/// All entries below the directory `p`, recursively. A directory precedes its content; otherwise
/// the order is unspecified.
///
///     auto tree = fs::walk("src");
///     while (auto entry = co_await tree.next())
///         std::puts(entry->path().c_str());
///
/// A few jobs of default_blocking_pool() read ahead, several directories at a time: at most a few
/// thousand entries and 64 open directories (fewer if RLIMIT_NOFILE is low). Directories are opened
/// relative to each other and without following links, unless requested. A directory that is
/// removed before it is read counts as empty.
///
/// Errors: the first directory that cannot be read ends the range, after all entries read before
/// it. Threading and cancellation: as for read_directory().
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

/// The entries of the directory `p` as an asynchronous range, without "." and "..", in the order of
/// the file system.
///
///     auto entries = fs::read_directory("/etc");
///     while (auto entry = co_await entries.next())
///         if (entry->is_regular_file()) total += co_await entry->file_size();
///
/// Errors: without an error_code, next() throws filesystem_error with `p` and the directory that
/// could not be read. With `ec`, which must outlive the range, next() ends the range and sets `ec`.
/// Reading starts with the first next().
///
/// Threading: on a context. Cancellation: a next() that is cancelled while it waits ends the range
/// with std::errc::operation_canceled. The destructor waits for running jobs, about a millisecond.
///
/// std::filesystem::directory_iterator, [fs.class.directory.iterator]; getdents64(2)
[[nodiscard]] async_generator<directory_entry>
read_directory(path p, directory_options options = directory_options::none);
[[nodiscard]] async_generator<directory_entry> read_directory(path p, std::error_code& ec);
[[nodiscard]] async_generator<directory_entry> read_directory(path p, directory_options options,
                                                              std::error_code& ec);

} // namespace coil::fs
