#pragma once

#include "copy_data.hpp"
#include "directory_stream.hpp"
#include "directory_table.hpp"
#include "tree_work.hpp"

#include <coil/fs/copy.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace coil::fs::detail {

class owned_fd {
public:
    explicit owned_fd(int fd) noexcept : fd_(fd) {}
    owned_fd(owned_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    owned_fd& operator=(owned_fd&&) = delete;
    ~owned_fd() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    /// What close(2) says, which may be that writing has failed.
    int close() noexcept { return ::close(std::exchange(fd_, -1)) == 0 ? 0 : -errno; }
    operator int() const noexcept { return fd_; }

private:
    int fd_;
};

/// What copy() does, from beginning to end.
class tree_copy final : public tree_work {
public:
    tree_copy(const path& from, const path& to, copy_tree_options options, bool as_the_standard);
    tree_copy(const tree_copy&) = delete;
    tree_copy& operator=(const tree_copy&) = delete;
    ~tree_copy();

    [[nodiscard]] bool is_done() const noexcept override {
        return waiting_count_.load(std::memory_order_relaxed) == 0;
    }
    [[nodiscard]] copy_progress progress() const noexcept {
        return {entries_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed)};
    }
    /// What could not be copied, and to where.
    [[nodiscard]] const std::pair<std::string, std::string>& failed_at() const noexcept {
        return failed_at_;
    }

private:
    struct releaser {
        directory_table* table;
        void operator()(directory_node* node) const noexcept { table->release(node); }
    };
    template <class Node>
    using owned = std::unique_ptr<Node, releaser>;

    /// A directory that is being copied; it is where it comes from.
    class copied final : public directory_node {
    public:
        copied(copied* parent, std::string name, bool follow, const struct ::stat& from)
            : directory_node(parent, std::move(name), follow), status(from) {}

        [[nodiscard]] copied* above() const noexcept { return static_cast<copied*>(parent()); }

        const struct ::stat status;
        owned<directory_node> target{nullptr, releaser{nullptr}};
        bool is_new = false;           // what it is copied to; nothing is in there
        std::int64_t position = 0;     // where reading goes on
        std::atomic<unsigned> left{1}; // what of it is under way, and 1 while it is read
    };

    /// A file of which a part has been copied.
    struct open_file {
        owned_fd in;
        owned_fd out;
        struct ::stat status;
        data_copy data;
        owned<copied> directory; // that it is in, if any
        std::string name;
    };

    /// Something that is to be copied, and to where. At the top, `in` is null.
    struct place {
        int from_at;
        const char* from;
        unsigned char type;
        int to_at;
        const char* to;
        copied* in;
    };

    /// The rest of a directory, or of a file.
    struct item {
        owned<copied> directory;
        std::unique_ptr<open_file> file;
    };
    struct identity {
        ::dev_t device;
        ::ino_t inode;
    };

    bool work(const slice& time) override;
    [[nodiscard]] bool has_much() const noexcept override {
        return waiting_count_.load(std::memory_order_relaxed) > 1;
    }
    void after_slice() override;

    template <class Node>
    owned<Node> own(Node* node) noexcept {
        return owned<Node>(node, releaser{&table_});
    }
    bool take(item& next);
    void put(item first, std::vector<item> more = {});
    void fail_at(int error, std::string from, std::string to);

    void begin(std::vector<item>& more);
    void copy_some(owned<copied> directory, const slice& time);
    int copy_entries(copied& directory, const slice& time, std::vector<item>& more);
    int copy_one(const place& p, const slice* time, std::vector<item>& more);
    int copy_known(const place& p, struct ::stat& from, const slice* time, std::vector<item>& more);
    int copy_link(const place& p, const struct ::stat& from);
    int copy_directory(const place& p, const struct ::stat& from, const struct ::stat* to,
                       std::vector<item>& more);
    int copy_regular(const place& p, const char* to_name, const struct ::stat& from,
                     const struct ::stat* to, const slice* time, std::vector<item>& more);
    int copy_new(const place& p, const slice* time, std::vector<item>& more);
    int begin_file(const place& p, owned_fd in, owned_fd out, const struct ::stat& from,
                   const slice* time, std::vector<item>& more);
    int go_on(open_file& file, const slice* time);
    void let_go(owned<copied> directory);
    int finish_directory(copied& directory);
    int set_owner_and_mode(int fd, const struct ::stat& from) const noexcept;
    [[nodiscard]] bool has(copy_options option) const noexcept {
        return (options_.options & option) != copy_options::none;
    }
    [[nodiscard]] bool looks_at_links() const noexcept {
        return has(copy_options::create_symlinks) || has(copy_options::skip_symlinks);
    }

    const copy_tree_options options_;
    const bool as_the_standard_;
    const path from_;
    const path to_;
    directory_table table_;
    std::atomic<std::uintmax_t> entries_{0};
    std::atomic<std::uintmax_t> bytes_{0};
    std::mutex mutex_;
    std::atomic<bool> has_begun_{false};
    identity target_{};         // the directory into which all goes, when there is one
    bool has_target_ = false;   // before the jobs become several
    std::vector<item> waiting_; // after the table
    std::atomic<std::size_t> waiting_count_{1};
    std::pair<std::string, std::string> failed_at_;
};

} // namespace coil::fs::detail
