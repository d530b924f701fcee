#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include <sys/stat.h>

namespace coil::fs {

namespace detail {

class entry_batch;
struct entry_access;
void share(entry_batch& batch) noexcept;
void release(entry_batch* batch) noexcept;

} // namespace detail

/// An entry of read_directory() and walk(): its name, its type and, when awaited, its metadata.
///
///     auto entries = fs::read_directory(".");
///     while (auto entry = co_await entries.next())
///         if (entry->is_regular_file()) sum += co_await entry->file_size();
///
/// Entries are read in batches of a few hundred by jobs of the blocking pool. The first await of
/// metadata that the directory does not contain (a size, a time) starts a job that queries all
/// entries of the batch. From then on the walk's jobs query metadata as they read, so that later
/// awaits complete without suspending. The metadata may thus be as old as the batch.
/// (std::filesystem's directory_entry may cache it, too.)
///
/// An entry is a reference to its batch: cheap to copy, and valid after the walk has ended.
/// Querying metadata that is not cached may open the directory again; if its path leads to another
/// directory by then, the error is ENOENT. Threading: any thread; the awaits resume as those of
/// blocking() do. Everything except the awaits throws only std::bad_alloc.
///
/// std::filesystem::directory_entry, [fs.class.directory.entry], with awaits where it may block
class directory_entry {
public:
    directory_entry(const directory_entry& other) noexcept
        : batch_(other.batch_), offset_(other.offset_), number_(other.number_) {
        if (batch_ != nullptr) {
            detail::share(*batch_);
        }
    }
    directory_entry(directory_entry&& other) noexcept
        : batch_(coil::detail::exchange(other.batch_, nullptr)), offset_(other.offset_),
          number_(other.number_) {}
    directory_entry& operator=(directory_entry other) noexcept {
        coil::detail::swap_values(batch_, other.batch_);
        offset_ = other.offset_;
        number_ = other.number_;
        return *this;
    }
    ~directory_entry() {
        if (batch_ != nullptr) {
            detail::release(batch_);
        }
    }

    /// The path given to walk() or read_directory(), followed by the path of the entry below it.
    /// Constructed on each call.
    [[nodiscard]] fs::path path() const;
    /// As stored in the directory; valid while this entry or a copy of it exists.
    [[nodiscard]] std::string_view name() const noexcept;
    /// 0 for entries of the directory at which the walk started.
    [[nodiscard]] int depth() const noexcept;
    [[nodiscard]] ::ino_t inode() const noexcept;

    /// The type of the entry itself, without a system call: of a symbolic link, not of its target.
    /// (The standard's is_directory() follows links; the equivalent here is co_await status().)
    [[nodiscard]] file_type type() const noexcept;
    [[nodiscard]] bool is_directory() const noexcept { return type() == file_type::directory; }
    [[nodiscard]] bool is_regular_file() const noexcept { return type() == file_type::regular; }
    [[nodiscard]] bool is_symlink() const noexcept { return type() == file_type::symlink; }
    /// Neither a regular file, a directory nor a symbolic link.
    [[nodiscard]] bool is_other() const noexcept {
        return !is_directory() && !is_regular_file() && !is_symlink();
    }

    /// lstat(2). Errors: ENOENT if it has been removed; std::errc::operation_canceled.
    [[nodiscard("did you forget to co_await?")]] task<struct ::stat> lstat() const;
    [[nodiscard("did you forget to co_await?")]] task<struct ::stat>
    lstat(std::error_code& ec) const;
    /// stat(2). For a symbolic link, a separate job of the pool queries the target.
    [[nodiscard("did you forget to co_await?")]] task<struct ::stat> stat() const;
    [[nodiscard("did you forget to co_await?")]] task<struct ::stat>
    stat(std::error_code& ec) const;

    // Like the members of std::filesystem::directory_entry; all but symlink_status() follow links.

    /// file_type::not_found if it has been removed or is a dangling link.
    [[nodiscard("did you forget to co_await?")]] task<file_status> status() const;
    [[nodiscard("did you forget to co_await?")]] task<file_status>
    status(std::error_code& ec) const;
    [[nodiscard("did you forget to co_await?")]] task<file_status> symlink_status() const;
    [[nodiscard("did you forget to co_await?")]] task<file_status>
    symlink_status(std::error_code& ec) const;
    /// In bytes. EISDIR for directories, ENOTSUP for other files that are not regular.
    [[nodiscard("did you forget to co_await?")]] task<std::uintmax_t> file_size() const;
    [[nodiscard("did you forget to co_await?")]] task<std::uintmax_t>
    file_size(std::error_code& ec) const;
    [[nodiscard("did you forget to co_await?")]] task<std::uintmax_t> hard_link_count() const;
    [[nodiscard("did you forget to co_await?")]] task<std::uintmax_t>
    hard_link_count(std::error_code& ec) const;
    [[nodiscard("did you forget to co_await?")]] task<file_time_type> last_write_time() const;
    [[nodiscard("did you forget to co_await?")]] task<file_time_type>
    last_write_time(std::error_code& ec) const;

private:
    friend detail::entry_access;
    directory_entry(detail::entry_batch& batch, std::uint32_t offset, std::uint32_t number) noexcept
        : batch_(&batch), offset_(offset), number_(number) {
        detail::share(batch);
    }

    detail::entry_batch* batch_;
    std::uint32_t offset_; // of its record
    std::uint32_t number_; // in its batch
};

} // namespace coil::fs
