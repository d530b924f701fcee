#pragma once

#include "copy_data.hpp"
#include "directory_stream.hpp"
#include "directory_table.hpp"
#include "owned_descriptor.hpp"
#include "tree_work.hpp"
#include "work_list.hpp"

#include <coil/fs/copy.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace coil::fs::detail {

/// What copy() does, from beginning to end.
class tree_copy final : public tree_work {
public:
    tree_copy(const path& from, const path& to, copy_tree_options options, bool as_the_standard);
    tree_copy(const tree_copy&) = delete;
    tree_copy& operator=(const tree_copy&) = delete;
    ~tree_copy();

    [[nodiscard]] bool is_done() const noexcept override {
        return has_begun_.load(std::memory_order_relaxed) && waiting_.size() == 0;
    }
    [[nodiscard]] copy_progress progress() const noexcept {
        return {entries_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed)};
    }
    /// What could not be copied, and to where.
    [[nodiscard]] const std::pair<std::string, std::string>& failed_at() const noexcept {
        return failed_at_;
    }

private:
    template <class Node>
    using owned = owned_node<Node>;

    /// A directory that is being copied; it is where it comes from.
    class copied final : public directory_node {
    public:
        copied(copied* parent, std::string name, bool follow, const struct ::stat& from)
            : directory_node(parent, std::move(name), follow), status(from) {}

        [[nodiscard]] copied* above() const noexcept { return static_cast<copied*>(parent()); }

        const struct ::stat status;
        owned<directory_node> target{nullptr, {nullptr}};
        bool is_new = false;           // what it is copied to; nothing is in there
        std::int64_t position = 0;     // where reading goes on
        std::atomic<unsigned> left{1}; // what of it is under way, and 1 while it is read
    };

    /// A file of which a part has been copied.
    struct open_file {
        owned_descriptor in;
        owned_descriptor out;
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
    [[nodiscard]] bool has_much() const noexcept override { return waiting_.size() > 1; }
    void after_slice() override;

    template <class Node>
    owned<Node> own(Node* node) noexcept {
        return owned<Node>(node, {&table_});
    }
    void fail_at(int error, const copied* in, const char* entry = nullptr);

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
    int begin_file(const place& p, owned_descriptor in, owned_descriptor out,
                   const struct ::stat& from, const slice* time, std::vector<item>& more);
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
    std::atomic<bool> has_begun_{false};
    identity target_{};       // the directory into which all goes, when there is one
    bool has_target_ = false; // before the jobs become several
    work_list<item> waiting_; // after the table
    std::pair<std::string, std::string> failed_at_;
};

} // namespace coil::fs::detail
