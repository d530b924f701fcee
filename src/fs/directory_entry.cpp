#include "entry_batch.hpp"
#include "file_time.hpp"
#include "ring_or_pool.hpp"
#include "stat.hpp"

#include <coil/fs/directory_entry.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <dirent.h>
#include <fcntl.h>

namespace coil::fs {

namespace detail {

void share(entry_batch& batch) noexcept { batch.share(); }
void release(entry_batch* batch) noexcept { batch->release(); }

entry_batch::entry_batch(std::shared_ptr<walk_base> base, directory_node& directory,
                         const std::byte* records, std::size_t size)
    : base_(std::move(base)), directory_(directory_table::share(directory)),
      records_(std::make_unique_for_overwrite<std::byte[]>(size)), bytes_(size) {
    std::memcpy(records_.get(), records, size);
    for (raw_entries all = this->records(); !all.empty(); all.pop()) {
        ++count_;
    }
}

int entry_batch::ask() {
    const std::scoped_lock one(asking_);
    if (asked_.load(std::memory_order_relaxed)) {
        return 0;
    }
    const pinned_directory pinned(base_->table, directory_);
    if (pinned.fd() < 0) {
        return pinned.fd();
    }
    auto of_all = std::make_unique_for_overwrite<metadata[]>(count_);
    metadata* next = of_all.get();
    for (raw_entries all = records(); !all.empty(); all.pop(), ++next) {
        next->error =
            sys::fstatat(pinned.fd(), all.front().name(), &next->status, AT_SYMLINK_NOFOLLOW);
    }
    metadata_ = std::move(of_all);
    asked_.store(true, std::memory_order_release);
    return 0;
}

int entry_batch::follow(std::uint32_t offset, struct ::stat& status) {
    const pinned_directory pinned(base_->table, directory_);
    return pinned.fd() < 0 ? pinned.fd()
                           : sys::fstatat(pinned.fd(), record(offset).name(), &status, 0);
}

namespace {

file_type type_of_record(unsigned char type) noexcept {
    return type == DT_UNKNOWN ? file_type::unknown : type_of_mode(DTTOIF(type));
}

/// Awaits the entry's metadata, converted by `read`.
template <class T>
task<T> ask_entry(directory_entry entry, bool follow, T (*read)(const struct ::stat&, int& error),
                  T otherwise, const char* what, std::error_code* ec) {
    entry_batch& batch = entry_access::batch(entry);
    int error = 0;
    T result = otherwise;
    const entry_batch::metadata* known = batch.known(entry_access::number(entry));
    if (known == nullptr) {
        batch.want_metadata();
        error = co_await on_thread([&batch] { return batch.ask(); });
        known = batch.known(entry_access::number(entry));
    }
    if (error >= 0 && known != nullptr) {
        error = known->error;
        if (error == 0 && follow && S_ISLNK(known->status.st_mode)) {
            struct ::stat status{};
            const std::uint32_t offset = entry_access::offset(entry);
            error = co_await on_thread([&] { return batch.follow(offset, status); });
            if (error == 0) {
                result = read(status, error);
            }
        } else if (error == 0) {
            result = read(known->status, error);
        }
    }
    if (ec != nullptr) {
        *ec = error_of(error);
    } else if (error < 0) [[unlikely]] {
        throw_if(error_of(error), what, entry.path());
    }
    co_return result;
}

struct ::stat as_it_is(const struct ::stat& status, int&) { return status; }

file_status status_of(const struct ::stat& status, int&) {
    return file_status(type_of_mode(status.st_mode), static_cast<perms>(status.st_mode & 07777));
}

std::uintmax_t size_of(const struct ::stat& status, int& error) {
    if (S_ISREG(status.st_mode)) {
        return static_cast<std::uintmax_t>(status.st_size);
    }
    error = S_ISDIR(status.st_mode) ? -EISDIR : -ENOTSUP;
    return static_cast<std::uintmax_t>(-1);
}

std::uintmax_t links_of(const struct ::stat& status, int&) { return status.st_nlink; }

file_time_type written_at(const struct ::stat& status, int& error) {
    file_time_type time = file_time_type::min();
    if (!to_file_time(status.st_mtim.tv_sec, static_cast<std::uint32_t>(status.st_mtim.tv_nsec),
                      time)) {
        error = -EOVERFLOW;
    }
    return time;
}

/// A missing file is a status (not_found), not an error to throw; `ec` holds the reason.
task<file_status> status_or_nothing(directory_entry entry, bool follow, std::error_code* ec) {
    std::error_code error;
    file_status status =
        co_await ask_entry<file_status>(entry, follow, &status_of, file_status(), "", &error);
    const bool missing =
        error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
    if (missing) {
        status = file_status(file_type::not_found);
    }
    if (ec != nullptr) {
        *ec = error;
    } else if (error && !missing) {
        throw_if(error,
                 follow ? "coil::fs::directory_entry::status"
                        : "coil::fs::directory_entry::symlink_status",
                 entry.path());
    }
    co_return status;
}

constexpr auto no_number = static_cast<std::uintmax_t>(-1);

} // namespace

} // namespace detail

path directory_entry::path() const {
    return batch_->directory().path_of(batch_->record(offset_).name());
}
std::string_view directory_entry::name() const noexcept { return batch_->record(offset_).name(); }
int directory_entry::depth() const noexcept { return batch_->directory().depth(); }
::ino_t directory_entry::inode() const noexcept { return batch_->record(offset_).inode(); }

file_type directory_entry::type() const noexcept {
    const file_type said = detail::type_of_record(batch_->record(offset_).type());
    if (said != file_type::unknown) {
        return said;
    }
    // If the directory does not provide types, the walk queries the metadata as it reads.
    const auto* const known = batch_->known(number_);
    return known == nullptr || known->error != 0 ? file_type::unknown
                                                 : detail::type_of_mode(known->status.st_mode);
}

task<struct ::stat> directory_entry::lstat() const {
    return detail::ask_entry<struct ::stat>(*this, false, &detail::as_it_is, {},
                                            "coil::fs::directory_entry::lstat", nullptr);
}
task<struct ::stat> directory_entry::lstat(std::error_code& ec) const {
    return detail::ask_entry<struct ::stat>(*this, false, &detail::as_it_is, {}, "", &ec);
}
task<struct ::stat> directory_entry::stat() const {
    return detail::ask_entry<struct ::stat>(*this, true, &detail::as_it_is, {},
                                            "coil::fs::directory_entry::stat", nullptr);
}
task<struct ::stat> directory_entry::stat(std::error_code& ec) const {
    return detail::ask_entry<struct ::stat>(*this, true, &detail::as_it_is, {}, "", &ec);
}
task<file_status> directory_entry::status() const {
    return detail::status_or_nothing(*this, true, nullptr);
}
task<file_status> directory_entry::status(std::error_code& ec) const {
    return detail::status_or_nothing(*this, true, &ec);
}
task<file_status> directory_entry::symlink_status() const {
    return detail::status_or_nothing(*this, false, nullptr);
}
task<file_status> directory_entry::symlink_status(std::error_code& ec) const {
    return detail::status_or_nothing(*this, false, &ec);
}
task<std::uintmax_t> directory_entry::file_size() const {
    return detail::ask_entry(*this, true, &detail::size_of, detail::no_number,
                             "coil::fs::directory_entry::file_size", nullptr);
}
task<std::uintmax_t> directory_entry::file_size(std::error_code& ec) const {
    return detail::ask_entry(*this, true, &detail::size_of, detail::no_number, "", &ec);
}
task<std::uintmax_t> directory_entry::hard_link_count() const {
    return detail::ask_entry(*this, true, &detail::links_of, detail::no_number,
                             "coil::fs::directory_entry::hard_link_count", nullptr);
}
task<std::uintmax_t> directory_entry::hard_link_count(std::error_code& ec) const {
    return detail::ask_entry(*this, true, &detail::links_of, detail::no_number, "", &ec);
}
task<file_time_type> directory_entry::last_write_time() const {
    return detail::ask_entry(*this, true, &detail::written_at, file_time_type::min(),
                             "coil::fs::directory_entry::last_write_time", nullptr);
}
task<file_time_type> directory_entry::last_write_time(std::error_code& ec) const {
    return detail::ask_entry(*this, true, &detail::written_at, file_time_type::min(), "", &ec);
}

} // namespace coil::fs
