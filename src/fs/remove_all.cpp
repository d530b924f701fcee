#include "directory_stream.hpp"
#include "directory_table.hpp"
#include "ring_or_pool.hpp"
#include "top_place.hpp"
#include "tree_work.hpp"
#include "work_list.hpp"

#include <coil/fs/remove_all.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace coil::fs {

namespace {

using detail::directory_node;
using detail::directory_table;
using detail::pinned_directory;
using detail::raw_entries;
using detail::raw_entry;

/// A directory to be removed: it is removed when it has been read to its end and all its
/// subdirectories are gone.
class removal_node final : public directory_node {
public:
    removal_node(removal_node* parent, std::string name)
        : directory_node(parent, std::move(name), false) {}

    [[nodiscard]] removal_node* above() const noexcept {
        return static_cast<removal_node*>(parent());
    }

    std::atomic<unsigned> left{1}; // the number of subdirectories left, plus 1 while it is read
    std::int64_t position = 0;     // the position at which reading continues
    bool has_begun = false;
    unsigned passes = 0;
};

class removal final : public detail::tree_work {
public:
    explicit removal(const path& p) : path_(p.native()) {}

    // Call it after all workers have ended.
    [[nodiscard]] std::uintmax_t count() const noexcept { return count_; }
    [[nodiscard]] const std::string& failed_at() const noexcept { return failed_at_; }
    [[nodiscard]] bool is_done() const noexcept override { return done_; }

private:
    /// A reference to a directory: held while it is read or waits to be read, and by each remaining
    /// subdirectory.
    using owned = detail::owned_node<removal_node>;

    static constexpr std::size_t buffer_size = 16384; // a few hundred entries
    /// A directory that is still not empty is read again: some file systems skip entries when
    /// others are removed, and other processes may add entries. The number of passes is limited.
    static constexpr unsigned max_passes = 32;

    owned own(removal_node* node) noexcept { return owned(node, {&table_}); }

    bool work(const detail::slice& time) override {
        owned next = own(nullptr);
        if (!has_begun_.exchange(true, std::memory_order_relaxed)) {
            begin();
        }
        while (error() == 0 && waiting_.take(next)) {
            clear(std::move(next), time);
            if (time.is_over() || wants_help()) {
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] bool has_much() const noexcept override {
        return waiting_.size() > 1 && !table_.is_small();
    }

    void fail_at(int error, const removal_node& node, const char* entry = nullptr) {
        if (fail(error)) {
            failed_at_ = node.path_of(entry);
        }
    }

    /// A path ending in "." or ".." cannot be removed by name, nor can "/": their content is not
    /// removed either.
    void begin() {
        const int opened = top_.open(path_);
        if (opened == -ENOENT) {
            done_ = true;
        } else if (opened < 0 || top_.is_dot()) {
            const bool is_root = path_.find_first_not_of('/') == std::string::npos;
            fail(opened < 0 ? opened : is_root ? -EBUSY : -EINVAL);
        } else {
            owned node = own(new removal_node(nullptr, path_));
            table_.place_top(*node, top_.at(), top_.leaf);
            waiting_.put(std::move(node));
        }
    }

    int unlink_top(int flags) { return detail::sys::unlinkat(top_.at(), top_.leaf.c_str(), flags); }

    /// Removes the content of a directory until the slice ends.
    void clear(owned node, const detail::slice& time) {
        std::vector<owned> inside;
        const int result = clear_open(*node, time, inside);
        if (result == go_on) {
            waiting_.put(std::move(node), std::move(inside));
            return;
        }
        waiting_.put(std::move(inside));
        if (result == 0 || result == -ENOENT) { // -ENOENT: another process has removed it
            let_go(std::move(node), result == 0, time);
        } else if (result == -ENOTDIR || result == -ELOOP) { // the name refers to another file now
            replaced(std::move(node), time);
        } else {
            fail_at(result, *node);
        }
    }

    /// Adds its subdirectories to `inside`. Returns 0 at the end of the directory, go_on if it may
    /// have more entries, or -errno.
    int clear_open(removal_node& node, const detail::slice& time, std::vector<owned>& inside) {
        const pinned_directory pinned(table_, node);
        if (pinned.fd() < 0) {
            return pinned.fd();
        }
        if (node.has_begun) { // it may have been closed meanwhile, or is read again
            detail::sys::lseek(pinned.fd(), node.position, SEEK_SET);
        }
        node.has_begun = true;
        for (;;) {
            const bool is_late = time.is_over();
            alignas(8) std::array<std::byte, buffer_size> buffer;
            const int n = detail::read_entries(pinned.fd(), buffer.data(), buffer.size());
            if (n <= 0) {
                return n;
            }
            raw_entries entries(buffer.data(), static_cast<std::size_t>(n));
            if (!clear_some(node, pinned.fd(), entries, time, inside) ||
                inside.size() >= detail::enough_directories ||
                detail::leaves_rest(n, buffer_size, is_late, time)) {
                return go_on;
            }
        }
    }

    /// Returns false if the slice has ended or an error occurred.
    bool clear_some(removal_node& node, int fd, raw_entries& entries, const detail::slice& time,
                    std::vector<owned>& inside) {
        std::uintmax_t gone = 0;
        bool all = true;
        for (; all && !entries.empty(); entries.pop()) {
            const raw_entry entry = entries.front();
            const int result =
                entry.type() == DT_DIR ? -EISDIR : detail::sys::unlinkat(fd, entry.name(), 0);
            if (result == 0) {
                ++gone;
            } else if (result == -EISDIR) {
                inside.push_back(own(new removal_node(&node, entry.name())));
                node.left.fetch_add(1, std::memory_order_relaxed);
            } else if (result != -ENOENT) {
                fail_at(result, node, entry.name());
                all = false;
            }
            node.position = entry.position_behind();
            all = all && !time.is_over();
        }
        count_.fetch_add(gone, std::memory_order_relaxed);
        return all || (entries.empty() && error() == 0);
    }

    /// Removes the file that has taken the name of a directory.
    void replaced(owned node, const detail::slice& time) {
        removal_node* const above = node->above();
        int result = 0;
        if (above == nullptr) {
            result = top_.had_slash ? -ENOTDIR : unlink_top(0); // "link/" names the link's target
        } else {
            const pinned_directory parent(table_, *above);
            result = parent.fd() < 0 ? parent.fd()
                                     : detail::sys::unlinkat(parent.fd(), node->name().c_str(), 0);
        }
        if (result == 0) {
            count_.fetch_add(1, std::memory_order_relaxed);
        } else if (result == -EISDIR) { // a directory again
            waiting_.put(std::move(node));
            return;
        } else if (result != -ENOENT) {
            fail_at(result, *node);
            return;
        }
        let_go(std::move(node), false, time);
    }

    /// If the directory exists (`is_there`), decrements its `left` and, if nothing is left, removes
    /// it. A directory that is gone no longer counts in the `left` of its parent, which is treated
    /// in the same way, and so on upwards, until the slice ends.
    void let_go(owned node, bool is_there, const detail::slice& time) {
        for (bool is_first = true;; is_first = false) {
            if (is_there) {
                if (node->left.fetch_sub(1, std::memory_order_acq_rel) != 1) {
                    return;
                }
                if (!is_first && time.is_over()) { // removed after its end was read again
                    node->left = 1;
                    waiting_.put(std::move(node));
                    return;
                }
                const int result = remove_empty(*node);
                const bool is_full = result == -ENOTEMPTY || result == -EEXIST;
                if ((is_full || result == -ENOTDIR) && ++node->passes < max_passes) {
                    node->left = 1;
                    node->position = 0;
                    if (is_full) {
                        waiting_.put(std::move(node));
                    } else { // another file has taken its name
                        replaced(std::move(node), time);
                    }
                    return;
                }
                if (result == 0) {
                    count_.fetch_add(1, std::memory_order_relaxed);
                } else if (result != -ENOENT) {
                    fail_at(result, *node);
                    return;
                }
            }
            removal_node* const above = node->above();
            if (above == nullptr) {
                done_ = true;
                return;
            }
            directory_table::share(*above);
            node = own(above);
            is_there = true;
        }
    }

    int remove_empty(removal_node& node) {
        removal_node* const above = node.above();
        if (above == nullptr) {
            return unlink_top(AT_REMOVEDIR);
        }
        const int fd = table_.pin_if_open(node); // to open the parent by ".." if it is closed
        int result = 0;
        {
            const pinned_directory parent(table_, *above, fd);
            result = parent.fd() < 0
                         ? parent.fd()
                         : detail::sys::unlinkat(parent.fd(), node.name().c_str(), AT_REMOVEDIR);
        }
        if (fd >= 0) {
            table_.unpin(node);
        }
        return result;
    }

    static constexpr int go_on = 1;

    const std::string path_;
    detail::top_place top_;
    std::atomic<bool> has_begun_{false};
    directory_table table_;
    detail::work_list<owned> waiting_; // destroyed before the table
    std::atomic<std::uintmax_t> count_{0};
    std::atomic<bool> done_{false};
    std::string failed_at_;
};

/// 0 or -errno; `failed_at`: the failed path, unless it is `p` itself.
task<int> remove_tree(path p, std::uintmax_t& count, path& failed_at) {
    removal work(p);
    co_await detail::do_tree_work(work);
    count = work.count();
    failed_at = work.failed_at();
    co_return work.error();
}

} // namespace

task<std::uintmax_t> remove_all(path p, std::error_code& ec) {
    std::uintmax_t count = 0;
    path failed_at;
    const int error = co_await remove_tree(std::move(p), count, failed_at);
    ec = detail::error_of(error);
    co_return error == 0 ? count : static_cast<std::uintmax_t>(-1);
}

task<std::uintmax_t> remove_all(path p) {
    std::uintmax_t count = 0;
    path failed_at;
    const int error = co_await remove_tree(p, count, failed_at);
    if (failed_at.empty()) {
        failed_at = p;
    }
    detail::throw_if(detail::error_of(error), "coil::fs::remove_all", p, failed_at);
    co_return count;
}

} // namespace coil::fs
