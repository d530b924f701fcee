#include "opening.hpp"
#include "stat.hpp"
#include "tree_copy.hpp"

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

// Copying one entry of a tree. Its status, as found by name, decides what to do. Another user may
// replace it in between: therefore everything is opened with O_NOFOLLOW, except links that the
// options say to follow, and data, type, mode and owner are those of the opened file.

namespace coil::fs::detail {

namespace {

constexpr int max_tries = 8;

bool is_other(const struct ::stat& s) noexcept {
    return !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode) && !S_ISLNK(s.st_mode);
}

/// Whether the directory `at`, or an ancestor of it, is `top`. False if an ancestor may not be
/// searched.
bool is_at_or_below(owned_descriptor at, const struct ::stat& top) {
    struct ::stat status{};
    bool moved = sys::fstat(at, &status) == 0;
    while (moved) {
        if (is_same(status, top)) {
            return true;
        }
        owned_descriptor above(sys::open_parent(at, O_PATH));
        const struct ::stat before = status;
        moved = above >= 0 && sys::fstat(above, &status) == 0 && !is_same(status, before);
        at = std::move(above);
    }
    return false;
}

/// Whether the link, open with O_PATH, has this content.
bool has_text(int link, const std::string& text) {
    std::string found(text.size() + 1, '\0');
    const int n = sys::readlinkat(link, "", found.data(), found.size());
    return n >= 0 && std::string_view(found).substr(0, static_cast<std::size_t>(n)) == text;
}

} // namespace

/// Like std::filesystem::copy for one file or directory; the entries of a directory follow later.
int tree_copy::copy_one(const place& p, const slice& time, directories& more) {
    if (p.in != nullptr && p.in->is_new && p.type == DT_REG && !looks_at_links() &&
        !has(copy_options::directories_only) && !has(copy_options::create_hard_links)) {
        const int result = copy_new(p, time); // no existing file can conflict
        if (result != -EEXIST && result != -ELOOP) {
            return result;
        }
    }
    const int flags = takes_links_as_such() ? AT_SYMLINK_NOFOLLOW : 0;
    int result = -EAGAIN;
    for (int tries = 0; result == -EAGAIN && tries < max_tries; ++tries) {
        struct ::stat from{};
        result = sys::fstatat(p.from_at, p.from, &from, flags);
        result = result < 0 ? result : copy_known(p, from, time, more);
    }
    return result == -EAGAIN ? -EEXIST : result;
}

/// The standard's function follows existing links; copy_tree() does not, below the top. Neither
/// follows a link created by this copy: if names of the original are exchanged while it is read, a
/// name may occur twice, as a link and as a file.
bool tree_copy::follows_in_target(const place& p) const {
    return p.in == nullptr || (as_the_standard_ && !p.in->links.contains(p.to));
}

int tree_copy::find_target(const place& p, bool follows, found_target& to) const {
    int result = sys::fstatat(p.to_at, p.to, &to.status, AT_SYMLINK_NOFOLLOW);
    to.by_link = result == 0 && std::string_view(p.to).ends_with('/'); // even if it is a directory
    if (result == 0 && S_ISLNK(to.status.st_mode) && follows) {
        to.by_link = true;
        result = looks_at_links() ? 0 : sys::fstatat(p.to_at, p.to, &to.status, 0);
    }
    to.is_there = result == 0;
    to.is_kept = follows || as_the_standard_;
    return result == -ENOENT || result == -ENOTDIR ? 0 : result;
}

int tree_copy::copy_known(const place& p, const struct ::stat& from, const slice& time,
                          directories& more) {
    found_target to;
    if (const int r = find_target(p, follows_in_target(p), to); r < 0) {
        return r;
    }
    if (to.is_there && !is_other(to.status) && !is_other(from) && is_same(from, to.status)) {
        return -EEXIST;
    }
    if (is_other(from) || (to.is_there && is_other(to.status))) {
        return -EINVAL;
    }
    if (S_ISDIR(from.st_mode) && to.is_there && !S_ISDIR(to.status.st_mode)) {
        if (S_ISREG(to.status.st_mode) || !to.by_link) {
            return S_ISREG(to.status.st_mode) ? -EISDIR : -ENOTDIR;
        }
    }
    if (S_ISLNK(from.st_mode)) {
        if (has(copy_options::skip_symlinks)) {
            return 0;
        }
        return !to.is_there && has(copy_options::copy_symlinks) ? copy_link(p, from) : -EINVAL;
    }
    if (S_ISREG(from.st_mode)) {
        return copy_file(p, from, to, time);
    }
    if (has(copy_options::create_symlinks)) {
        return -EISDIR;
    }
    if (has(copy_options::recursive) ||
        (p.in == nullptr && options_.options == copy_options::none)) {
        return copy_directory(p, to, more);
    }
    return 0;
}

int tree_copy::copy_link(const place& p, const struct ::stat& from) {
    std::string text;
    std::size_t size = from.st_size > 0 ? static_cast<std::size_t>(from.st_size) + 1 : 256;
    for (;; size *= 2) {
        text.resize(size);
        const int n = sys::readlinkat(p.from_at, p.from, text.data(), size);
        if (n < 0) {
            return n;
        }
        if (static_cast<std::size_t>(n) < size) {
            text.resize(static_cast<std::size_t>(n));
            break;
        }
    }
    if (const int r = sys::symlinkat(text.c_str(), p.to_at, p.to); r < 0) {
        return r;
    }
    if (p.in != nullptr && as_the_standard_) {
        p.in->links.insert(p.to);
    }
    const int result = options_.owner || options_.times ? copy_link_metadata(p, from, text) : 0;
    if (result == 0) {
        entries_.fetch_add(1, std::memory_order_relaxed);
    } else if (result == -EMFILE || result == -ENFILE) { // may be retried
        sys::unlinkat(p.to_at, p.to, 0);
    }
    return result;
}

/// Sets the owner and the times of a copied link by descriptor, and only if it is still the link
/// that was created: it has the same text and a single name. The owner is set only if it is the one
/// that this process gives to new files. Without these checks, a link of another user that has
/// taken the name would get the owner of the original.
int tree_copy::copy_link_metadata(const place& p, const struct ::stat& from,
                                  const std::string& text) {
    const owned_descriptor made(table_.open_file(p.to_at, p.to, O_PATH | O_NOFOLLOW, 0));
    struct ::stat status{};
    int result = made < 0 ? int(made) : sys::fstat(made, &status);
    if (result == 0 && (!S_ISLNK(status.st_mode) || status.st_nlink > 1 || !has_text(made, text))) {
        result = -EEXIST;
    }
    if (result == 0 && options_.owner && status.st_uid == sys::effective_user()) {
        static_cast<void>(sys::fchownat(made, "", from.st_uid, from.st_gid, AT_EMPTY_PATH) == 0);
    }
    if (result == 0 && options_.times) {
        const ::timespec times[2] = {from.st_atim, from.st_mtim};
        result = sys::utimensat(made, "", times, AT_EMPTY_PATH);
    }
    return result;
}

/// The target is created when the directory is opened.
int tree_copy::copy_directory(const place& p, const found_target& to, directories& more) {
    const bool is_top = p.in == nullptr;
    const bool follows =
        (!takes_links_as_such() && p.type != DT_DIR) || (is_top && top_from_.had_slash);
    owned<copied> directory = own(new copied(p.in, is_top ? from_.native() : p.from, follows));
    directory->has_target = to.is_there;
    directory->target = own(new directory_node(is_top ? nullptr : p.in->target.get(),
                                               is_top ? to_.native() : p.to, to.by_link));
    if (is_top) {
        table_.place_top(*directory, p.from_at, p.from);
        // A new directory is not a link, even if its name has a trailing slash.
        table_.place_top(*directory->target, p.to_at, to.is_there ? p.to : top_to_.leaf);
        if (const int r = begin_top(*directory, to.is_there); r < 0) {
            return r;
        }
    } else {
        p.in->left.fetch_add(1, std::memory_order_relaxed);
    }
    more.push_back(std::move(directory));
    return 0;
}

/// Whether the target is the directory `status`, or is to be created below it.
bool tree_copy::is_into_itself(copied& top, bool to_is_there, const struct ::stat& status) {
    constexpr int flags = O_PATH | O_DIRECTORY;
    if (!to_is_there) {
        return top_to_.directory >= 0 &&
               is_at_or_below(owned_descriptor(sys::open_entry(top_to_.directory, ".", flags)),
                              status);
    }
    const pinned_directory target(table_, *top.target);
    return target.fd() >= 0 &&
           is_at_or_below(owned_descriptor(sys::open_entry(target.fd(), ".", flags)), status);
}

/// Called before anything is created: checks whether the tree would be copied into itself.
int tree_copy::begin_top(copied& top, bool to_is_there) {
    const pinned_directory from(table_, top);
    struct ::stat status{};
    if (const int r = from.fd() < 0 ? from.fd() : sys::fstat(from.fd(), &status); r < 0) {
        return r;
    }
    if (has(copy_options::recursive) && is_into_itself(top, to_is_there, status)) {
        return -EINVAL;
    }
    if (const int r = begin_directory(top, from.fd()); r < 0) {
        return r;
    }
    const pinned_directory target(table_, *top.target);
    const int found = target.fd() < 0 ? target.fd() : sys::fstat(target.fd(), &status);
    if (found == 0) {
        target_ = {status.st_dev, status.st_ino};
        has_target_ = true;
    }
    return found;
}

} // namespace coil::fs::detail
