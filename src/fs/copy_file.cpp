#include "copy_data.hpp"
#include "open_regular.hpp"
#include "ring_or_pool.hpp"
#include "stat.hpp"

#include <coil/fs/copy_file.hpp>
#include <coil/fs/file.hpp>

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

namespace coil::fs {

namespace {

/// Bytes per job on the blocking pool. Copying them from the page cache takes some milliseconds:
/// the cost of switching threads is negligible, and destroying the task does not wait long.
constexpr std::uint64_t slice = 16U << 20;

constexpr bool has(copy_options options, copy_options one) noexcept {
    return (options & one) != copy_options::none;
}

/// The two files and the progress of the copy. Blocking calls, for jobs.
class file_copy {
public:
    // Results of begin() other than 0 and -errno.
    static constexpr int not_wanted = 2; // the options exclude the copy
    static constexpr int exchanged = 3;  // the name was replaced since the check

    /// Opens both files: 0, not_wanted, or -errno.
    int begin(const path& from, const path& to, copy_options options);
    /// Copies a slice. Returns 1 if there may be more, 0 if the copy is complete, or -errno.
    int go_on(inplace_stop_token stop) noexcept;

    [[nodiscard]] std::uintmax_t done() const noexcept { return data_.done(); }
    [[nodiscard]] std::uintmax_t total() const noexcept { return data_.total(); }

private:
    /// The file with the target's name, as found by begin().
    struct found_target {
        struct ::stat status{};
        bool is_there = false;
        bool by_link = false;
    };

    int check(const path& from, const path& to, copy_options options);
    int find_target(const path& to);
    int open_target(const path& to, copy_options options);
    int finish() noexcept;

    file from_;
    file to_;
    struct ::stat status_{}; // of the source, as opened
    found_target target_;
    detail::data_copy data_;
};

constexpr int max_checks = 8;
constexpr ::mode_t set_id_bits = S_ISUID | S_ISGID;

/// Applies the options to an existing target; returns as begin().
int check_existing_target(const struct ::stat& from, const struct ::stat& to,
                          copy_options options) noexcept {
    if (!S_ISREG(to.st_mode)) {
        return -EINVAL;
    }
    if (from.st_dev == to.st_dev && from.st_ino == to.st_ino) {
        return -EEXIST;
    }
    if (has(options, copy_options::skip_existing)) {
        return file_copy::not_wanted;
    }
    if (has(options, copy_options::update_existing)) {
        return detail::is_newer(from.st_mtim, to.st_mtim) ? 0 : file_copy::not_wanted;
    }
    return has(options, copy_options::overwrite_existing) ? 0 : -EEXIST;
}

detail::owned_descriptor open(const path& p, int flags, struct ::stat& status) {
    const auto by_name = [](int at, const char* name, int how) {
        return detail::sys::openat(at, name, how | O_CLOEXEC, S_IWUSR);
    };
    return detail::open_regular(by_name, AT_FDCWD, p.c_str(), flags, status);
}

int file_copy::begin(const path& from, const path& to, copy_options options) {
    int r = exchanged;
    for (int checks = 0; r == exchanged && checks < max_checks; ++checks) {
        r = check(from, to, options);
    }
    if (r != 0) {
        return r == exchanged ? -EEXIST : r;
    }
    // Before the data, so that the copy is never readable by users who cannot read the original.
    const ::mode_t mode = status_.st_mode & 07777U & ~set_id_bits;
    if (const int changed = detail::sys::fchmod(to_.native_handle(), mode); changed < 0) {
        return changed;
    }
    data_ = detail::data_copy(from_.native_handle(), to_.native_handle(), status_);
    return 0;
}

/// A file may be replaced before it is opened, so the status of the opened file decides.
int file_copy::check(const path& from, const path& to, copy_options options) {
    if (const int r = find_target(to); r < 0) {
        return r;
    }
    // Opening a special file (a device) may have side effects.
    if (const int r = detail::sys::fstatat(AT_FDCWD, from.c_str(), &status_, 0); r < 0) {
        return r;
    }
    if (!S_ISREG(status_.st_mode)) {
        return -EINVAL;
    }
    if (target_.is_there) {
        if (const int r = check_existing_target(status_, target_.status, options); r != 0) {
            return r;
        }
    }
    detail::owned_descriptor in = open(from, O_RDONLY, status_);
    if (in < 0) {
        return in;
    }
    from_ = file(in.release());
    return open_target(to, options);
}

int file_copy::find_target(const path& to) {
    target_ = {};
    int r = detail::sys::fstatat(AT_FDCWD, to.c_str(), &target_.status, AT_SYMLINK_NOFOLLOW);
    if (r == 0 && S_ISLNK(target_.status.st_mode)) {
        target_.by_link = true;
        r = detail::sys::fstatat(AT_FDCWD, to.c_str(), &target_.status, 0);
    }
    target_.is_there = r == 0;
    return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

/// Follows only a link that existed at the check. The opened file is checked again before it is
/// truncated.
int file_copy::open_target(const path& to, copy_options options) {
    const bool replaces = has(options, copy_options::overwrite_existing) ||
                          has(options, copy_options::update_existing);
    if (!target_.is_there && (!target_.by_link || !replaces)) {
        const int made = detail::sys::openat(AT_FDCWD, to.c_str(),
                                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IWUSR);
        if (made == -EEXIST && has(options, copy_options::skip_existing)) {
            return not_wanted;
        }
        to_ = file(made);
        return made == -EEXIST && replaces ? exchanged : std::min(made, 0);
    }
    const int flags =
        O_WRONLY | (target_.by_link ? 0 : O_NOFOLLOW) | (target_.is_there ? 0 : O_CREAT);
    struct ::stat found{};
    detail::owned_descriptor out = open(to, flags, found);
    if (out < 0) {
        return out == -ELOOP && !target_.by_link ? exchanged : int(out);
    }
    to_ = file(out.release());
    const bool is_itself = found.st_dev == status_.st_dev && found.st_ino == status_.st_ino;
    if (target_.is_there || is_itself || found.st_size > 0) { // not just created
        if (const int r = check_existing_target(status_, found, options); r != 0) {
            return r;
        }
    }
    return found.st_size > 0 ? detail::sys::ftruncate(to_.native_handle(), 0) : 0;
}

int file_copy::go_on(inplace_stop_token stop) noexcept {
    int r = data_.go_on(slice, stop);
    if (r == 0 && (status_.st_mode & set_id_bits) != 0) {
        r = finish();
    }
    if (r == 0) {
        from_ = file();
        // close(2) is the last chance to report a failed write.
        return detail::sys::close(to_.release());
    }
    return r;
}

/// Keeps the set-user-ID and set-group-ID bits if the copy has the same user and group.
int file_copy::finish() noexcept {
    struct ::stat made{};
    if (const int r = detail::sys::fstat(to_.native_handle(), &made); r < 0) {
        return r;
    }
    const ::mode_t kept = (made.st_uid == status_.st_uid ? S_ISUID : 0U) |
                          (made.st_gid == status_.st_gid ? S_ISGID : 0U);
    const ::mode_t mode = status_.st_mode & (07777U & ~(set_id_bits & ~kept));
    return detail::sys::fchmod(to_.native_handle(), mode);
}

/// 1: copied; 0: the options exclude it; -errno.
task<io_result> copy_whole(const path& from, const path& to, copy_options options,
                           const copy_file_progress& progress) {
    const inplace_stop_token stop = co_await this_task::stop_token();
    file_copy work;
    int r = co_await detail::on_thread([&] {
        const int begun = work.begin(from, to, options);
        return begun == 0 ? work.go_on(stop) : begun;
    });
    while (r == 1) {
        if (progress) {
            progress(work.done(), work.total());
        }
        r = co_await detail::on_thread([&] { return work.go_on(stop); });
    }
    if (r == 0 && progress) {
        progress(work.done(), work.total());
    }
    co_return r == file_copy::not_wanted ? 0 : r < 0 ? r : 1;
}

} // namespace

task<bool> copy_file(path from, path to, copy_options options, copy_file_progress progress,
                     std::error_code& ec) {
    const int r = co_await copy_whole(from, to, options, progress);
    ec = detail::error_of(r);
    co_return r == 1;
}

task<bool> copy_file(path from, path to, copy_options options, copy_file_progress progress) {
    const int r = co_await copy_whole(from, to, options, progress);
    detail::throw_if(detail::error_of(r), "coil::fs::copy_file", from, to);
    co_return r == 1;
}

} // namespace coil::fs
