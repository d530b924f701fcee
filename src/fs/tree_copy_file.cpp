#include "open_regular.hpp"
#include "replacement.hpp"
#include "stat.hpp"
#include "tree_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <unistd.h>

// Copying a regular file of a tree: see tree_copy_entry.cpp.

namespace coil::fs::detail {

namespace {

constexpr std::uint64_t piece = 1U << 20; // takes a few hundred microseconds

} // namespace

owned_descriptor tree_copy::open(int at, const char* name, int flags, bool is_own,
                                 struct ::stat& status) {
    const auto by_table = [this](int below, const char* called, int how) {
        return table_.open_file(below, called, how, S_IWUSR);
    };
    return open_regular(by_table, at, name, flags, is_own && (flags & O_NOFOLLOW) != 0, status);
}

int tree_copy::copy_file(const place& p, const struct ::stat& from, const found_target& to,
                         const slice& time) {
    if (has(copy_options::directories_only)) {
        return 0;
    }
    if (has(copy_options::create_symlinks)) {
        entries_.fetch_add(1, std::memory_order_relaxed);
        const std::string text = p.in != nullptr ? p.in->path_of(p.from) : from_.native();
        return sys::symlinkat(text.c_str(), p.to_at, p.to);
    }
    if (has(copy_options::create_hard_links)) {
        entries_.fetch_add(1, std::memory_order_relaxed);
        return sys::linkat(p.from_at, p.from, p.to_at, p.to, 0);
    }
    return to.is_there && S_ISDIR(to.status.st_mode) ? copy_into(p, from, to, time)
                                                     : copy_regular(p, from, to, time);
}

/// Copies a file into a directory under its own name, or to the path of the whole copy.
int tree_copy::copy_into(const place& p, const struct ::stat& from, const found_target& to,
                         const slice& time) {
    const int flags = O_PATH | O_DIRECTORY | (to.by_link ? 0 : O_NOFOLLOW);
    const owned_descriptor directory(table_.open_file(p.to_at, p.to, flags, 0));
    if (directory < 0) {
        return directory;
    }
    const std::string name = p.in != nullptr ? p.from : from_.filename().native();
    place inside = p;
    inside.to_at = directory;
    inside.to = name.c_str();
    inside.to_is_private = false;
    found_target there;
    const int result = find_target(inside, as_the_standard_ && follows_in_target(inside), there);
    return result < 0 ? result : copy_regular(inside, from, there, time);
}

/// Applies the options to an existing file. 0: replace it; skipped (1): keep it; -errno.
int tree_copy::meets(const struct ::stat& from, const struct ::stat& to) const noexcept {
    constexpr int skipped = 1;
    if (!S_ISREG(to.st_mode)) {
        return -EINVAL;
    }
    if (is_same(from, to)) {
        return -EEXIST;
    }
    if (has(copy_options::skip_existing)) {
        return skipped;
    }
    if (has(copy_options::update_existing)) {
        return is_newer(from.st_mtim, to.st_mtim) ? 0 : skipped;
    }
    return has(copy_options::overwrite_existing) ? 0 : -EEXIST;
}

/// Like fs::copy_file().
int tree_copy::copy_regular(const place& p, const struct ::stat& from, const found_target& to,
                            const slice& time) {
    if (to.is_there) {
        if (const int r = meets(from, to.status); r != 0) {
            return r < 0 ? r : 0;
        }
    }
    struct ::stat opened{};
    owned_descriptor in =
        open(p.from_at, p.from, O_RDONLY | (takes_links_as_such() ? O_NOFOLLOW : 0),
             p.from_is_private, opened);
    if (in < 0) {
        return in;
    }
    int result = 0;
    owned_descriptor out = open_target(p, opened, to, result);
    return result != 0 ? (result < 0 ? result : 0)
                       : begin_file(p, std::move(in), std::move(out), opened, time);
}

/// Opens the target for writing, and empties it. If `result` is not 0, the target must not be
/// written; `result` is then that of meets(), an error, or -EAGAIN if the existing file has
/// changed.
owned_descriptor tree_copy::open_target(const place& p, const struct ::stat& from,
                                        const found_target& to, int& result) {
    const bool replaces =
        has(copy_options::overwrite_existing) || has(copy_options::update_existing);
    struct ::stat found{};
    if (!to.is_there && (!to.by_link || !replaces)) {
        owned_descriptor made = create(p);
        const bool came = made == -EEXIST && !to.by_link;
        result = came && has(copy_options::skip_existing) ? 1
                 : came && replaces                       ? -EAGAIN
                                                          : std::min(int(made), 0);
        return made;
    }
    const int flags = O_WRONLY | (to.by_link ? 0 : O_NOFOLLOW) | (to.is_there ? 0 : O_CREAT);
    owned_descriptor there = open(p.to_at, p.to, flags, p.to_is_private, found);
    if (there < 0) { // EEXIST: it has been created where the link points
        result = there == -EEXIST && !to.is_there ? -EAGAIN : int(there);
        return there;
    }
    result = is_same(from, found) ? -EEXIST : 0;
    if (result == 0 && (to.is_there ? !is_same(found, to.status) : found.st_size > 0)) {
        result = meets(from, found);
    }
    if (result == 0 && found.st_nlink > 1 && !to.is_kept) {
        // The file has other names, perhaps outside of the tree, and may belong to another user.
        there = replace(p);
        result = there == -EEXIST || there == -ENOENT ? -EAGAIN : std::min(int(there), 0);
    } else if (result == 0 && found.st_size > 0) {
        result = sys::ftruncate(there, 0);
    }
    return there;
}

/// Creates the file; EEXIST if the name is in use.
owned_descriptor tree_copy::create(const place& p) {
    return owned_descriptor(table_.open_file(p.to_at, p.to, O_WRONLY | O_CREAT | O_EXCL, S_IWUSR));
}

/// Creates a new file in place of an existing one, which stays if that fails.
owned_descriptor tree_copy::replace(const place& p) {
    for (int tries = 0; tries < max_temporary_names; ++tries) {
        const std::string called = temporary_name(tries);
        place temporary = p;
        temporary.to = called.c_str();
        owned_descriptor made = create(temporary);
        if (made >= 0) {
            const int result = sys::renameat(p.to_at, temporary.to, p.to_at, p.to);
            if (result < 0) {
                sys::unlinkat(p.to_at, temporary.to, 0);
                return owned_descriptor(result);
            }
        }
        if (made != -EEXIST) {
            return made;
        }
    }
    return owned_descriptor(-EEXIST);
}

/// Copies a regular file into a directory that contains only copies, without a check. EEXIST,
/// ELOOP: the assumption is wrong.
int tree_copy::copy_new(const place& p, const slice& time) {
    struct ::stat from{};
    owned_descriptor in = open(p.from_at, p.from, O_RDONLY | O_NOFOLLOW, p.from_is_private, from);
    if (in < 0) {
        return in == -EINVAL ? -ELOOP : int(in);
    }
    owned_descriptor out = create(p);
    if (out < 0) {
        return out;
    }
    return begin_file(p, std::move(in), std::move(out), from, time);
}

/// Sets the mode before the data, so that the copy is never readable by users who cannot read the
/// original; bits that require the right owner are set after the data.
int tree_copy::begin_file(const place& p, owned_descriptor in, owned_descriptor out,
                          const struct ::stat& from, const slice& time) {
    entries_.fetch_add(1, std::memory_order_relaxed);
    attributes original(in, from);
    const ::mode_t mode = original.mode() & (options_.owner ? 0700U : 07777U);
    if (const int r = sys::fchmod(out, mode); r < 0) {
        return r;
    }
    const data_copy data(in, out, from);
    open_file file{std::move(in), std::move(out),       std::move(original),
                   data,          own<copied>(nullptr), {}};
    const int copied_so_far = go_on(file, time);
    if (copied_so_far != more_to_come) {
        return copied_so_far;
    }
    if (p.in != nullptr) {
        directory_table::share(*p.in);
        file.directory = own(p.in);
        p.in->left.fetch_add(1, std::memory_order_relaxed);
        file.name = p.from;
    }
    files_.put(std::make_unique<open_file>(std::move(file)));
    return 0;
}

/// 0: complete; more_to_come: the slice is over; -errno.
int tree_copy::go_on(open_file& file, const slice& time) {
    int result = more_to_come;
    do {
        const std::uint64_t before = file.data.done();
        result = file.data.go_on(piece);
        bytes_.fetch_add(file.data.done() - before, std::memory_order_relaxed);
    } while (result == more_to_come && !time.is_over());
    if (result != 0) {
        return result;
    }
    if (options_.owner) {
        result = file.original.give_all(file.out);
    }
    if (result == 0 && (options_.owner || as_the_standard_)) {
        result = file.original.give_id_bits_of_data(file.out, file.in);
    }
    if (result == 0 && options_.times) {
        const ::timespec times[2] = {file.original.status().st_atim,
                                     file.original.status().st_mtim};
        result = sys::futimens(file.out, times);
    }
    const int closed = file.out.close();
    return result < 0 ? result : closed;
}

} // namespace coil::fs::detail
