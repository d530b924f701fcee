#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace coil::fs::detail {

/// Identifies a directory that was closed. The inode number alone does not: a file system may reuse
/// that of a removed directory. The new directory has another time of creation (where the file
/// system records it, and is not an overlay).
struct directory_identity {
    ::dev_t device = 0;
    ::ino_t inode = 0;
    std::int64_t created_seconds = 0; // 0 where the file system does not record it
    std::uint32_t created_nanoseconds = 0;

    friend bool operator==(const directory_identity&, const directory_identity&) = default;
};

/// A directory of a tree being processed: its position in the tree, and its descriptor while it is
/// open. Everything except the constants is managed by its directory_table.
class directory_node {
public:
    /// For the top of a tree `name` is its path, and `parent` is null.
    directory_node(directory_node* parent, std::string name, bool follow) noexcept;
    directory_node(const directory_node&) = delete;
    directory_node& operator=(const directory_node&) = delete;
    virtual ~directory_node();

    /// The path, beginning with that of the top as it was given.
    [[nodiscard]] std::string path() const;
    [[nodiscard]] std::string path_of(const char* entry) const;
    [[nodiscard]] directory_node* parent() const noexcept { return parent_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] int depth() const noexcept { return depth_; }
    /// Whether a symbolic link below the top may have led here. Only such a directory can also be
    /// one of its own ancestors.
    [[nodiscard]] bool may_be_by_link() const noexcept { return may_be_by_link_; }

private:
    friend class directory_table;

    directory_node* const parent_; // holds a reference
    const std::string name_;
    const int depth_;
    const bool follow_; // if its name is a symbolic link
    const bool may_be_by_link_;

    std::atomic<unsigned> references_{1};

    // Protected by the table's lock.
    int fd_ = -1;
    unsigned pins_ = 0;
    bool known_ = false; // its identity is known
    directory_identity identity_;
    directory_node* older_ = nullptr; // list of open directories that are not pinned
    directory_node* newer_ = nullptr;
};

/// The open descriptors of the directories of trees; their number is bounded for any shape of tree.
///
/// A directory is opened as an entry of its parent (opening.hpp), without following a symbolic link
/// unless its node permits it, so that renaming directories or replacing them by links cannot
/// redirect the work. If too many are open, the least recently used ones are closed. They are
/// reopened by "..", or from the nearest open ancestor, and verified by their identity. The top of
/// a tree stays open.
///
/// All functions may be called from any thread.
class directory_table {
public:
    /// Derives the maximum number of open descriptors from RLIMIT_NOFILE.
    directory_table() noexcept;
    explicit directory_table(unsigned max_open) noexcept : max_open_(max_open) {}
    directory_table(const directory_table&) = delete;
    directory_table& operator=(const directory_table&) = delete;

    /// Returns a descriptor of the directory, which stays open until unpin(), or -errno. -ENOENT
    /// may also mean that it was moved since it was last open. `child`: the descriptor of one of
    /// its subdirectories, if available.
    [[nodiscard]] int pin(directory_node& node, int child = -1);
    void unpin(directory_node& node) noexcept;
    /// Opens the parent of `node` if it is closed and `node` is open. Call it before `node` is
    /// destroyed: opening the parent through its child is cheap; later it takes a walk from the
    /// top.
    void reach_parent(directory_node& node);
    /// Uses `fd` as its descriptor instead of opening it, and pins it.
    void adopt(directory_node& node, int fd) noexcept;
    /// Returns its descriptor and pins it if it is open.
    [[nodiscard]] int pin_if_open(directory_node& node) noexcept;

    /// The top `node` is opened by one component, `leaf`, relative to `at`. Without this call it is
    /// opened by its path. Call it before the top is opened; `at` must stay open until then.
    void place_top(const directory_node& node, int at, std::string leaf);

    /// Closes every descriptor that is not pinned, including that of the top; pinned ones are
    /// closed when they are unpinned.
    void close_all(directory_node& top) noexcept;

    /// Like sys::open_entry(); closes directories if descriptors have run out.
    [[nodiscard]] int open_file(int at, const char* name, int flags, ::mode_t mode);

    /// Whether several jobs would constantly close each other's directories: one job needs four,
    /// for the source and the target of a copy and their parents.
    [[nodiscard]] bool is_small() const noexcept {
        return max_open_.load(std::memory_order_relaxed) < 16;
    }

    /// Adds a reference.
    static directory_node& share(directory_node& node) noexcept {
        node.references_.fetch_add(1, std::memory_order_relaxed);
        return node;
    }
    /// Drops a reference. The last one closes and deletes the node and drops its reference to its
    /// parent.
    void release(directory_node* node) noexcept;

    /// Whether a directory with this identity is `node` or an ancestor of it.
    [[nodiscard]] bool is_at_or_above(directory_node& node, ::dev_t device, ::ino_t inode);

private:
    struct placed_top {
        const directory_node* node;
        int at;
        std::string leaf;
    };

    int pin_locked(directory_node& node) noexcept;
    int open_top(directory_node& node);
    int open_below(int parent, directory_node& node, const char* name);
    int reopen(directory_node& node, int child);
    int climb(directory_node& node, int child);
    directory_node* pin_child_of(directory_node& node) noexcept;
    int walk_down(directory_node& node);
    static std::string first_levels(const std::vector<directory_node*>& closed, std::size_t& levels,
                                    bool by_chunks);
    int open(int at, const char* name, bool follow);
    template <class Open>
    int retried(Open open);
    bool close_oldest() noexcept;
    void close(directory_node& node) noexcept;
    void forget(directory_node& node) noexcept;
    void learn(directory_node& node, int fd) noexcept;

    std::mutex mutex_;
    std::mutex reopening_;           // serializes reopening; acquired before mutex_
    std::vector<placed_top> tops_;   // at most two
    std::atomic<unsigned> max_open_; // modified under the lock
    unsigned open_ = 0;
    directory_node* oldest_ = nullptr;
    directory_node* newest_ = nullptr;
};

/// A reference to a directory.
struct node_releaser {
    directory_table* table;
    void operator()(directory_node* node) const noexcept { table->release(node); }
};
template <class Node>
using owned_node = std::unique_ptr<Node, node_releaser>;

/// Pins a directory for a scope.
class pinned_directory {
public:
    pinned_directory(directory_table& table, directory_node& node, int child = -1)
        : table_(&table), node_(&node), fd_(table.pin(node, child)) {}
    pinned_directory(const pinned_directory&) = delete;
    pinned_directory& operator=(const pinned_directory&) = delete;
    ~pinned_directory() {
        if (fd_ >= 0) {
            table_->unpin(*node_);
        }
    }

    /// The descriptor, or -errno.
    [[nodiscard]] int fd() const noexcept { return fd_; }

private:
    directory_table* table_;
    directory_node* node_;
    int fd_;
};

} // namespace coil::fs::detail
