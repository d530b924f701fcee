#include "call.hpp"
#include "copy_data.hpp"
#include "stat.hpp"

#include <coil/fs/copy_file.hpp>
#include <coil/fs/file.hpp>

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

namespace coil::fs {

namespace {

/// Of one job on the blocking pool: some milliseconds from the page cache, so that what goes to and
/// fro does not count, and whoever destroys the task does not wait long.
constexpr std::uint64_t slice = 16U << 20;

constexpr bool has(copy_options options, copy_options one) noexcept {
    return (options & one) != copy_options::none;
}

/// The two files and how far the copy is. Plain blocking calls, for jobs.
class file_copy {
public:
    static constexpr int not_wanted = 2; // by the options

    /// Opens both: 0, not_wanted, or −errno.
    int begin(const path& from, const path& to, copy_options options) noexcept;
    /// Copies a slice: 1: there may be more; 0: all is done; −errno.
    int go_on(inplace_stop_token stop) noexcept;

    [[nodiscard]] std::uintmax_t done() const noexcept { return data_.done(); }
    [[nodiscard]] std::uintmax_t total() const noexcept { return data_.total(); }

private:
    file from_;
    file to_;
    detail::data_copy data_;
};

/// What the options make of the target that is there: as begin().
int meet_target(const struct ::stat& from, const struct ::stat& to, copy_options options) noexcept {
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

int file_copy::begin(const path& from, const path& to, copy_options options) noexcept {
    struct ::stat from_status{};
    struct ::stat to_status{};
    const int there = detail::sys::fstatat(AT_FDCWD, to.c_str(), &to_status, 0);
    if (there < 0 && there != -ENOENT && there != -ENOTDIR) {
        return there;
    }
    if (const int r = detail::sys::fstatat(AT_FDCWD, from.c_str(), &from_status, 0); r < 0) {
        return r;
    }
    if (!S_ISREG(from_status.st_mode)) {
        return -EINVAL;
    }
    if (there == 0) {
        if (const int r = meet_target(from_status, to_status, options); r != 0) {
            return r;
        }
    }
    const bool may_be_there = has(options, copy_options::overwrite_existing) ||
                              has(options, copy_options::update_existing);
    const int in = detail::sys::openat(AT_FDCWD, from.c_str(), O_RDONLY | O_CLOEXEC);
    if (in < 0) {
        return in;
    }
    from_ = file(in);
    const int out = detail::sys::openat(
        AT_FDCWD, to.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (may_be_there ? O_TRUNC : O_EXCL),
        S_IWUSR);
    if (out < 0) {
        return out == -EEXIST && has(options, copy_options::skip_existing) ? not_wanted : out;
    }
    to_ = file(out);
    // Of the file that was opened, which need not be the one that was looked at.
    if (const int r = detail::sys::fstat(in, &from_status); r < 0) {
        return r;
    }
    if (const int r = detail::sys::fchmod(out, from_status.st_mode & 07777U); r < 0) {
        return r;
    }
    data_ = detail::data_copy(in, out, from_status);
    return 0;
}

int file_copy::go_on(inplace_stop_token stop) noexcept {
    const int r = data_.go_on(slice, stop);
    if (r == 0) {
        from_ = file();
        // The last chance to hear that it was not written (close(2)).
        return detail::sys::close(to_.release());
    }
    return r;
}

/// `r` ≥ 0: whether it was copied.
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
    detail::throw_if(detail::error_of(r), "coil: cannot copy file", from, to);
    co_return r == 1;
}

} // namespace coil::fs
