#include "attributes.hpp"
#include "copy_data.hpp"
#include "lease_wait.hpp"
#include "open_regular.hpp"
#include "opening.hpp"
#include "ring_or_pool.hpp"
#include "stat.hpp"
#include "top_place.hpp"

#include <coil/fs/copy_file.hpp>
#include <coil/fs/file.hpp>

#include <algorithm>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

namespace coil::fs {

namespace {

using detail::owned_descriptor;
using detail::top_place;

/// Bytes per job on the blocking pool. Copying them from the page cache takes a few milliseconds:
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

    /// Opens both files. Returns 0, not_wanted, -errno, or detail::leased: call it again.
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

    int open_places(const path& from, const path& to);
    int check(copy_options options);
    int find_target();
    int open_target(copy_options options);

    top_place from_place_;
    top_place to_place_;
    std::string from_name_;
    std::string to_name_;
    file from_;
    file to_;
    struct ::stat status_{};        // that of the source, as opened
    detail::attributes attributes_; // those of the source, with this status
    found_target target_;
    detail::data_copy data_;
};

constexpr int max_checks = 8;

/// Applies the options to an existing target; returns values like begin().
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

owned_descriptor open(const top_place& place, const std::string& name, int flags,
                      struct ::stat& status) {
    const auto by_name = [](int at, const char* called, int how) {
        return detail::sys::open_entry(at, called, how, S_IWUSR);
    };
    return detail::open_regular(by_name, place.at(), name.c_str(), flags, false, status);
}

/// Opens the parents of both paths. If the target's parent does not exist, neither does the target.
int file_copy::open_places(const path& from, const path& to) {
    if (const int r = to_place_.open(to.native()); r < 0 && !detail::is_not_found(r)) {
        return r;
    }
    int r = from_place_.open(from.native());
    from_name_ = from_place_.name();
    to_name_ = to_place_.name();
    if (r == 0 && to_place_.error < 0) { // an error of the source has precedence
        r = detail::sys::fstatat(from_place_.at(), from_name_.c_str(), &status_, 0);
    }
    if (r < 0) { // an error of an existing target has precedence
        const int found = find_target();
        return found < 0 ? found : r;
    }
    return 0;
}

int file_copy::begin(const path& from, const path& to, copy_options options) {
    if (from_place_.directory < 0) {
        if (const int r = open_places(from, to); r < 0) {
            return r;
        }
    }
    int r = exchanged;
    for (int checks = 0; r == exchanged && checks < max_checks; ++checks) {
        r = to_place_.error_of(check(options));
    }
    if (r == detail::leased) {
        return r;
    }
    from_place_.directory = owned_descriptor();
    to_place_.directory = owned_descriptor();
    if (r != 0) {
        return r == exchanged ? -EEXIST : r;
    }
    // Before the data, so that the copy is never readable by users who cannot read the original.
    attributes_ = detail::attributes(from_.native_handle(), status_);
    if (const int changed = detail::sys::fchmod(to_.native_handle(), attributes_.mode());
        changed < 0) {
        return changed;
    }
    data_ = detail::data_copy(from_.native_handle(), to_.native_handle(), status_);
    return 0;
}

/// A file may be replaced before it is opened, so the status of the opened file decides.
int file_copy::check(copy_options options) {
    if (const int r = find_target(); r < 0) {
        return r;
    }
    // Opening a special file (a device) may have side effects.
    if (const int r = detail::sys::fstatat(from_place_.at(), from_name_.c_str(), &status_, 0);
        r < 0) {
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
    owned_descriptor in = open(from_place_, from_name_, O_RDONLY, status_);
    if (in < 0) {
        return in;
    }
    from_ = file(in.release());
    return open_target(options);
}

int file_copy::find_target() {
    target_ = {};
    const int at = to_place_.at();
    const char* const name = to_name_.c_str();
    int r = detail::sys::fstatat(at, name, &target_.status, AT_SYMLINK_NOFOLLOW);
    if (r == 0 && S_ISLNK(target_.status.st_mode)) {
        target_.by_link = true;
        r = detail::sys::fstatat(at, name, &target_.status, 0);
    }
    target_.is_there = r == 0;
    return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

/// Follows only a link that existed at the check. The opened file is checked again before it is
/// truncated.
int file_copy::open_target(copy_options options) {
    const bool replaces = has(options, copy_options::overwrite_existing) ||
                          has(options, copy_options::update_existing);
    if (!target_.is_there && (!target_.by_link || !replaces)) {
        const int made = detail::sys::open_entry(to_place_.at(), to_name_.c_str(),
                                                 O_WRONLY | O_CREAT | O_EXCL, S_IWUSR);
        if (made == -EEXIST && has(options, copy_options::skip_existing)) {
            return not_wanted;
        }
        to_ = file(made);
        return made == -EEXIST && replaces ? exchanged : std::min(made, 0);
    }
    const int flags =
        O_WRONLY | (target_.by_link ? 0 : O_NOFOLLOW) | (target_.is_there ? 0 : O_CREAT);
    struct ::stat found{};
    owned_descriptor out = open(to_place_, to_name_, flags, found);
    if (out < 0) {
        const bool has_appeared = out == -EEXIST && !target_.is_there;
        return has_appeared || (out == -ELOOP && !target_.by_link) ? exchanged : int(out);
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
    if (r == 0) {
        r = attributes_.give_id_bits_of_data(to_.native_handle(), from_.native_handle());
    }
    if (r == 0) {
        from_ = file();
        // close(2) is the last chance to report a failed write.
        return detail::sys::close(to_.release());
    }
    return r;
}

/// 1: copied; 0: the options exclude it; -errno.
task<io_result> copy_whole(const path& from, const path& to, copy_options options,
                           const copy_file_progress& progress) {
    const inplace_stop_token stop = co_await this_task::stop_token();
    file_copy work;
    detail::lease_wait leases;
    const auto begin = [&] {
        const int begun = work.begin(from, to, options);
        return begun == 0 ? work.go_on(stop) : begun;
    };
    int r = co_await detail::on_thread(begin);
    while (r == detail::leased) {
        const int paused = leases.is_over() ? -EAGAIN : co_await leases.pause();
        r = paused < 0 ? paused : co_await detail::on_thread(begin);
    }
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
