#pragma once

#include <coil/core/task.hpp>
#include <coil/fs/types.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>

namespace coil::fs {

namespace detail {

class entry_batch;
struct entry_access;
void share(entry_batch& batch) noexcept;
void release(entry_batch* batch) noexcept;

} // namespace detail

/// What read_directory() and walk() give: a name in a directory, what kind of thing it is, and, for
/// an await, the rest.
///
/// Entries come in batches of some hundreds, read by jobs of the blocking pool. The first await of
/// what the directory does not say (a size, a time) has a job ask for all entries of the batch at
/// once, and lets the walk's further jobs do so as they read: from then on such awaits go on
/// without suspending. What they give is therefore as old as the batch, as that of
/// std::filesystem's directory_entry may be.
///
/// It is a reference to its batch: cheap to copy, and valid when the walk has gone. Asking for what
/// is not there yet opens its directory again if need be. Threading: any one; awaits as those of
/// blocking(). All but the awaits are noexcept unless memory is short.
///
/// std::filesystem::directory_entry, [fs.class.directory.entry], with the differences that an await
/// makes
class directory_entry {
public:
    directory_entry(const directory_entry& other) noexcept
        : batch_(other.batch_), offset_(other.offset_), number_(other.number_) {
        if (batch_ != nullptr) {
            detail::share(*batch_);
        }
    }
    directory_entry(directory_entry&& other) noexcept
        : batch_(std::exchange(other.batch_, nullptr)), offset_(other.offset_),
          number_(other.number_) {}
    directory_entry& operator=(directory_entry other) noexcept {
        std::swap(batch_, other.batch_);
        offset_ = other.offset_;
        number_ = other.number_;
        return *this;
    }
    ~directory_entry() {
        if (batch_ != nullptr) {
            detail::release(batch_);
        }
    }

    /// The path that the directory was read by, and the name. Made when asked for.
    [[nodiscard]] fs::path path() const;
    /// As the directory has it; valid as long as this entry or a copy of it.
    [[nodiscard]] std::string_view name() const noexcept;
    /// 0 for what is in the directory that was given.
    [[nodiscard]] int depth() const noexcept;
    [[nodiscard]] ::ino_t inode() const noexcept;

    /// Of the entry itself, without a system call: a symbolic link is one, whatever it leads to.
    /// (The standard's is_directory() follows it; here that is co_await status().)
    [[nodiscard]] file_type type() const noexcept;
    [[nodiscard]] bool is_directory() const noexcept { return type() == file_type::directory; }
    [[nodiscard]] bool is_regular_file() const noexcept { return type() == file_type::regular; }
    [[nodiscard]] bool is_symlink() const noexcept { return type() == file_type::symlink; }
    /// None of those three.
    [[nodiscard]] bool is_other() const noexcept {
        return !is_directory() && !is_regular_file() && !is_symlink();
    }

    /// What lstat(2) says. Errors: ENOENT, when it has vanished; std::errc::operation_canceled.
    [[nodiscard("did you forget to co_await?")]] task<struct ::stat> lstat() const;
    [[nodiscard("did you forget to co_await?")]] task<struct ::stat>
    lstat(std::error_code& ec) const;
    /// What stat(2) says: of what it leads to, where it is a link, which takes a job of its own.
    [[nodiscard("did you forget to co_await?")]] task<struct ::stat> stat() const;
    [[nodiscard("did you forget to co_await?")]] task<struct ::stat>
    stat(std::error_code& ec) const;

    // As the members of std::filesystem::directory_entry; all but symlink_status() follow links.

    /// file_type::not_found when it has vanished or leads to nothing.
    [[nodiscard("did you forget to co_await?")]] task<file_status> status() const;
    [[nodiscard("did you forget to co_await?")]] task<file_status>
    status(std::error_code& ec) const;
    [[nodiscard("did you forget to co_await?")]] task<file_status> symlink_status() const;
    [[nodiscard("did you forget to co_await?")]] task<file_status>
    symlink_status(std::error_code& ec) const;
    /// In bytes. EISDIR for directories, ENOTSUP for what is no regular file.
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
