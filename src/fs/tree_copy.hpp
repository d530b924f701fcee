#pragma once

#include "attributes.hpp"
#include "copy_data.hpp"
#include "directory_stream.hpp"
#include "directory_table.hpp"
#include "owned_descriptor.hpp"
#include "top_place.hpp"
#include "tree_work.hpp"
#include "work_list.hpp"

#include <coil/fs/copy.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace coil::fs::detail {

/// A result besides 0 (complete) and -errno (failed): the time slice is over before the work is
/// complete.
inline constexpr int more_to_come = 1;
/// The work is not complete, and this job ends to release its descriptors.
inline constexpr int has_given_way = 2;

/// The implementation of copy() and copy_tree().
class tree_copy final : public tree_work {
public:
    tree_copy(const path& from, const path& to, copy_tree_options options, bool as_the_standard);
    tree_copy(const tree_copy&) = delete;
    tree_copy& operator=(const tree_copy&) = delete;
    ~tree_copy();

    [[nodiscard]] bool is_done() const noexcept override {
        return has_begun_.load(std::memory_order_relaxed) && waiting_.size() == 0 &&
               files_.size() == 0;
    }
    [[nodiscard]] copy_progress progress() const noexcept {
        return {entries_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed)};
    }
    /// The source and target of the entry that failed.
    [[nodiscard]] const std::pair<std::string, std::string>& failed_at() const noexcept {
        return failed_at_;
    }

private:
    template <class Node>
    using owned = owned_node<Node>;

    /// A directory being copied; the node is that of the source.
    class copied final : public directory_node {
    public:
        copied(copied* parent, std::string name, bool follow)
            : directory_node(parent, std::move(name), follow) {}

        [[nodiscard]] copied* above() const noexcept { return static_cast<copied*>(parent()); }

        attributes original; // those of the opened directory, once it has begun
        owned<directory_node> target{nullptr, {nullptr}};
        bool has_begun = false;
        bool has_target = false;                  // the target existed before
        bool is_new = false;                      // the target was created, and is empty
        bool has_read = false;                    // some entries have been read
        bool is_read = false;                     // all entries have been read
        bool target_is_private = false;           // see is_private()
        std::int64_t position = 0;                // the position at which reading continues
        std::set<std::string, std::less<>> links; // links created in `target`
        std::atomic<unsigned> left{1};            // entries in progress, plus 1 while it is read
    };

    /// A partly copied file.
    struct open_file {
        owned_descriptor in;
        owned_descriptor out;
        attributes original;
        data_copy data;
        owned<copied> directory; // its directory, if any
        std::string name;
    };
    using open_file_ptr = std::unique_ptr<open_file>;

    /// An entry to copy and its target: single components, except at the top, where `in` is null.
    struct place {
        int from_at;
        const char* from;
        unsigned char type;
        int to_at;
        const char* to;
        copied* in;
        bool from_is_private = false; // see is_private()
        bool to_is_private = false;
    };
    /// An existing file with the name of a copy. For a link that is followed: its target.
    struct found_target {
        struct ::stat status{};
        bool is_there = false;
        bool by_link = false;
        bool is_kept = false; // it is written to, not replaced, if it has other names
    };

    using directories = std::vector<owned<copied>>;
    struct identity {
        ::dev_t device;
        ::ino_t inode;
    };

    bool work(const slice& time) override;
    [[nodiscard]] bool has_much() const noexcept override {
        return waiting_.size() + files_.size() > 1 && !table_.is_small();
    }
    void after_slice() override;

    template <class Node>
    owned<Node> own(Node* node) noexcept {
        return owned<Node>(node, {&table_});
    }
    void fail_at(int error, const copied* in, const char* entry = nullptr);

    bool begin(const slice& time);
    int open_places();
    int give_way(int result, const slice& time) noexcept;
    [[nodiscard]] bool go_on_with(open_file_ptr file, const slice& time);
    [[nodiscard]] bool copy_some(owned<copied> directory, const slice& time);
    int copy_entries(copied& directory, const slice& time, directories& more);
    int read_on(copied& directory, int from, int to, const slice& time, directories& more);
    int begin_directory(copied& directory, int from);
    [[nodiscard]] bool let_go(owned<copied> directory, const slice& time);
    int finish_directory(copied& directory);

    // Single entries: tree_copy_entry.cpp.
    int copy_one(const place& p, const slice& time, directories& more);
    [[nodiscard]] bool follows_in_target(const place& p) const;
    int find_target(const place& p, bool follows, found_target& to) const;
    int copy_known(const place& p, const struct ::stat& from, const slice& time, directories& more);
    int copy_link(const place& p, const struct ::stat& from);
    int copy_link_metadata(const place& p, const struct ::stat& from, const std::string& text);
    int copy_directory(const place& p, const found_target& to, directories& more);
    bool is_into_itself(copied& top, bool to_is_there, const struct ::stat& status);
    int begin_top(copied& top, bool to_is_there);
    int copy_file(const place& p, const struct ::stat& from, const found_target& to,
                  const slice& time);
    int copy_into(const place& p, const struct ::stat& from, const found_target& to,
                  const slice& time);
    int copy_regular(const place& p, const struct ::stat& from, const found_target& to,
                     const slice& time);
    [[nodiscard]] int meets(const struct ::stat& from, const struct ::stat& to) const noexcept;
    owned_descriptor open_target(const place& p, const struct ::stat& from, const found_target& to,
                                 int& result);
    owned_descriptor create(const place& p);
    owned_descriptor replace(const place& p);
    int copy_new(const place& p, const slice& time);
    int begin_file(const place& p, owned_descriptor in, owned_descriptor out,
                   const struct ::stat& from, const slice& time);
    int go_on(open_file& file, const slice& time);

    [[nodiscard]] owned_descriptor open(int at, const char* name, int flags, bool is_own,
                                        struct ::stat& status);
    /// Whether links are copied rather than followed. If so, a file that is replaced by a link
    /// during the copy is not followed either.
    [[nodiscard]] bool takes_links_as_such() const noexcept {
        return looks_at_links() || has(copy_options::copy_symlinks);
    }
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
    top_place top_from_; // its descriptor is open until begin() has returned
    top_place top_to_;
    directory_table table_;
    std::atomic<std::uintmax_t> entries_{0};
    std::atomic<std::uintmax_t> bytes_{0};
    std::atomic<bool> has_begun_{false};
    identity target_{};       // the target directory of the whole copy, if there is one
    bool has_target_ = false; // set before there are several jobs
    // Destroyed before the table. Files have priority, so that at most one per job is open.
    work_list<owned<copied>> waiting_;
    work_list<open_file_ptr> files_;
    std::pair<std::string, std::string> failed_at_;
};

} // namespace coil::fs::detail
