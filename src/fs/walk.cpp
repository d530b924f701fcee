#include "directory_stream.hpp"
#include "entry_batch.hpp"
#include "ring_or_pool.hpp"
#include "tree_work.hpp"
#include "work_list.hpp"

#include <coil/core/this_task.hpp>
#include <coil/fs/walk.hpp>
#include <coil/sync/event.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace coil::fs {

namespace {

using detail::directory_node;
using detail::entry_batch;
using detail::pinned_directory;
using detail::raw_entries;

class walked_directory final : public directory_node {
public:
    walked_directory(directory_node* parent, std::string name, bool follow)
        : directory_node(parent, std::move(name), follow) {}

    std::int64_t position = 0; // the position at which reading continues
};

struct batch_releaser {
    void operator()(entry_batch* batch) const noexcept { batch->release(); }
};
using batch_ptr = std::unique_ptr<entry_batch, batch_releaser>;

/// Reads directories into batches until enough of them are queued.
class walking final : public detail::tree_work {
public:
    walking(const path& p, walk_options options, bool recursive)
        : tree_work(recursive ? usual_workers() : 1), options_(std::move(options)),
          recursive_(recursive), top_(own(new walked_directory(nullptr, p.native(), true))) {
        base_->wants_metadata = options_.with_metadata;
        detail::directory_table::share(*top_);
        waiting_.put(own(top_.get()));
    }
    walking(const walking&) = delete;
    walking& operator=(const walking&) = delete;
    ~walking() { base_->table.close_all(*top_); }

    /// Takes the oldest queued batch; null if there is none.
    batch_ptr take_batch() {
        const std::scoped_lock lock(mutex_);
        if (ready_.empty()) {
            return nullptr;
        }
        batch_ptr first = std::move(ready_.front());
        ready_.pop_front();
        ready_entries_.fetch_sub(first->size(), std::memory_order_relaxed);
        return first;
    }
    /// Whether there is something to read and no worker reads.
    [[nodiscard]] bool stands_still() const noexcept {
        return workers() == 0 && error() == 0 && waiting_.size() > 0 &&
               ready_entries_.load(std::memory_order_relaxed) < enough_entries / 2;
    }
    [[nodiscard]] bool is_done() const noexcept override { return waiting_.size() == 0; }
    [[nodiscard]] const std::string& failed_at() const noexcept { return failed_at_; }

    auto_reset_event arrived; // for the context: there may be batches, or no more will come

private:
    using owned = detail::owned_node<walked_directory>;

    static constexpr std::size_t buffer_size = 16384; // a few hundred entries
    static constexpr std::size_t enough_entries = 8192;

    owned own(walked_directory* node) noexcept { return owned(node, {&base_->table}); }

    bool work(const detail::slice& time) override {
        owned next = own(nullptr);
        while (error() == 0 && ready_entries_.load(std::memory_order_relaxed) < enough_entries &&
               waiting_.take(next)) {
            std::vector<owned> inside;
            const int result = read(*next, time, inside);
            if (result < 0 && !is_taken_for_empty(*next, result)) {
                if (fail(result)) {
                    failed_at_ = next->path();
                }
                return false;
            }
            if (result == go_on) {
                waiting_.put(std::move(next), std::move(inside));
            } else {
                waiting_.put(std::move(inside));
                const std::scoped_lock lock(mutex_);
                std::swap(last_, next);
            }
            if (time.is_over() || wants_help()) {
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] bool has_much() const noexcept override {
        return waiting_.size() > 1 && !base_->table.is_small() &&
               ready_entries_.load(std::memory_order_relaxed) < enough_entries / 2;
    }
    void after_slice() override { arrived.set(); }

    [[nodiscard]] bool is_taken_for_empty(const walked_directory& node, int error) const noexcept {
        if (error == -EACCES) {
            return (options_.directories & directory_options::skip_permission_denied) !=
                   directory_options::none;
        }
        // Another process has removed or replaced it.
        return node.parent() != nullptr &&
               (error == -ENOENT || error == -ENOTDIR || error == -ELOOP);
    }

    /// An exception from `descend` terminates the program: without its result the walk cannot
    /// continue.
    [[nodiscard]] bool may_descend(const directory_entry& entry) const noexcept {
        return !options_.descend || options_.descend(entry);
    }
    [[nodiscard]] bool follows() const noexcept {
        return (options_.directories & directory_options::follow_directory_symlink) !=
               directory_options::none;
    }

    /// 0: read to the end; go_on: there is more; -errno.
    int read(walked_directory& node, const detail::slice& time, std::vector<owned>& inside) {
        const pinned_directory pinned(base_->table, node);
        if (pinned.fd() < 0) {
            return pinned.fd();
        }
        if (node.position != 0) { // the descriptor may be new
            detail::sys::lseek(pinned.fd(), node.position, SEEK_SET);
        }
        for (;;) {
            const bool is_late = time.is_over();
            alignas(8) std::array<std::byte, buffer_size> buffer;
            const int n = detail::read_entries(pinned.fd(), buffer.data(), buffer.size());
            if (n <= 0) {
                return n;
            }
            const auto size = static_cast<std::size_t>(n);
            batch_ptr batch(new entry_batch(base_, node, buffer.data(), size));
            if (batch->size() > 0) {
                inspect(*batch, pinned.fd(), inside);
                const std::scoped_lock lock(mutex_);
                ready_entries_.fetch_add(batch->size(), std::memory_order_relaxed);
                ready_.push_back(std::move(batch));
            }
            node.position = detail::sys::lseek(pinned.fd(), 0, SEEK_CUR);
            if (size > buffer_size / 2 || detail::leaves_rest(n, buffer_size, is_late, time)) {
                return go_on;
            }
        }
    }

    /// Prepares a batch before it is published: collects requested metadata and subdirectories.
    void inspect(entry_batch& batch, int fd, std::vector<owned>& inside) {
        bool asks = base_->wants_metadata.load(std::memory_order_relaxed);
        for (raw_entries all = batch.records(); !asks && !all.empty(); all.pop()) {
            asks = all.front().type() == DT_UNKNOWN;
        }
        if (asks) {
            batch.ask();
        }
        if (!recursive_) {
            return;
        }
        std::uint32_t number = 0;
        for (raw_entries all = batch.records(); !all.empty(); all.pop(), ++number) {
            const unsigned char type = all.front().type();
            if (type != DT_DIR && type != DT_UNKNOWN && (type != DT_LNK || !follows())) {
                continue;
            }
            const directory_entry entry =
                detail::entry_access::make(batch, batch.offset_of(all.front()), number);
            const bool is_link = entry.is_symlink() && follows();
            const bool may_lead_up = is_link || batch.directory().may_be_by_link();
            if ((is_link || entry.is_directory()) &&
                (!may_lead_up || leads_down(batch, fd, all.front().name())) && may_descend(entry)) {
                inside.push_back(
                    own(new walked_directory(&batch.directory(), all.front().name(), is_link)));
            }
        }
    }

    /// Whether the name refers to a directory, and not to one of its ancestors, as a link may.
    bool leads_down(entry_batch& batch, int fd, const char* name) {
        struct ::stat status{};
        return detail::sys::fstatat(fd, name, &status, 0) == 0 && S_ISDIR(status.st_mode) &&
               !base_->table.is_at_or_above(batch.directory(), status.st_dev, status.st_ino);
    }

    static constexpr int go_on = 1;

    const walk_options options_;
    const bool recursive_;
    const std::shared_ptr<detail::walk_base> base_ = std::make_shared<detail::walk_base>();
    const owned top_;
    detail::work_list<owned> waiting_; // directories
    std::mutex mutex_;                 // protects what follows
    /// Keeps open the directory that was read last, and thereby its parent, through which the next
    /// one can be reopened on the way up.
    owned last_ = own(nullptr);
    std::deque<batch_ptr> ready_;
    std::atomic<std::size_t> ready_entries_{0};
    std::string failed_at_;
};

/// Waits until there are batches or no more will come. Returns false if cancelled.
task<bool> next_arrival(walking& work) {
    try {
        co_await work.arrived.wait();
    } catch (const std::system_error&) {
        co_return false;
    }
    co_return true;
}

async_generator<directory_entry> entries_of(path p, walk_options options, bool recursive,
                                            std::error_code* ec) {
    if (ec != nullptr) {
        ec->clear();
    }
    walking work(p, std::move(options), recursive);
    scope worker_scope(co_await this_task::stop_token());
    for (;;) {
        if (work.stands_still()) {
            work.add_worker(worker_scope);
        }
        if (const batch_ptr batch = work.take_batch()) {
            std::uint32_t number = 0;
            for (raw_entries all = batch->records(); !all.empty(); all.pop(), ++number) {
                co_yield detail::entry_access::make(*batch, batch->offset_of(all.front()), number);
            }
        } else if (work.workers() == 0) {
            break;
        } else {
            const bool arrived = co_await next_arrival(work);
            if (!arrived) {
                work.fail(-ECANCELED);
                break;
            }
        }
    }
    co_await worker_scope.join();
    const std::error_code error = detail::error_of(work.error());
    if (ec != nullptr) {
        *ec = error;
    } else if (error) {
        const path where = work.failed_at();
        detail::throw_if(error, recursive ? "coil::fs::walk" : "coil::fs::read_directory", p,
                         where.empty() ? p : where);
    }
}

walk_options only(directory_options options) {
    walk_options all;
    all.directories = options;
    return all;
}

} // namespace

async_generator<directory_entry> read_directory(path p, directory_options options) {
    return entries_of(std::move(p), only(options), false, nullptr);
}
async_generator<directory_entry> read_directory(path p, std::error_code& ec) {
    return entries_of(std::move(p), {}, false, &ec);
}
async_generator<directory_entry> read_directory(path p, directory_options options,
                                                std::error_code& ec) {
    return entries_of(std::move(p), only(options), false, &ec);
}

async_generator<directory_entry> walk(path p, walk_options options) {
    return entries_of(std::move(p), std::move(options), true, nullptr);
}
async_generator<directory_entry> walk(path p, directory_options options) {
    return entries_of(std::move(p), only(options), true, nullptr);
}
async_generator<directory_entry> walk(path p, std::error_code& ec) {
    return entries_of(std::move(p), {}, true, &ec);
}
async_generator<directory_entry> walk(path p, directory_options options, std::error_code& ec) {
    return entries_of(std::move(p), only(options), true, &ec);
}
async_generator<directory_entry> walk(path p, walk_options options, std::error_code& ec) {
    return entries_of(std::move(p), std::move(options), true, &ec);
}

} // namespace coil::fs
