#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace coil::fs::detail {

/// A directory of a tree on which work is under way: its place in the tree, and its descriptor
/// while it has one. Everything but the constants belongs to its directory_table.
class directory_node {
public:
    /// Of a tree's top: `name` is its path, and `parent` null.
    directory_node(directory_node* parent, std::string name, bool follow) noexcept;
    directory_node(const directory_node&) = delete;
    directory_node& operator=(const directory_node&) = delete;
    virtual ~directory_node();

    /// Of the top, the path as it was given; elsewhere with '/' between.
    [[nodiscard]] std::string path() const;
    [[nodiscard]] std::string path_of(const char* entry) const;
    [[nodiscard]] directory_node* parent() const noexcept { return parent_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] int depth() const noexcept { return depth_; }

private:
    friend class directory_table;

    directory_node* const parent_; // holds a reference
    const std::string name_;
    const int depth_;
    const bool follow_; // where its name is a symbolic link

    std::atomic<unsigned> references_{1};

    // Under the table's lock.
    int fd_ = -1;
    unsigned pins_ = 0;
    bool known_ = false; // which directory it is: below
    ::dev_t device_ = 0;
    ::ino_t inode_ = 0;
    directory_node* older_ = nullptr; // among those that are open and not pinned
    directory_node* newer_ = nullptr;
};

/// The open descriptors of trees' directories: a bounded number, whatever the trees look like.
///
/// A directory is opened relative to the one that it was found in, by one component without
/// following a symbolic link (unless its node says so), so that nobody who renames directories or
/// puts links in their place leads the work elsewhere. Where there are too many, those that were
/// not used for longest are closed; they are opened again by "..", or from the next ancestor that
/// is open, and must turn out to be what they were: the same device and inode. The top of a tree
/// stays open.
///
/// All functions from any thread.
class directory_table {
public:
    /// For as many descriptors as fit well into RLIMIT_NOFILE.
    directory_table() noexcept;
    explicit directory_table(unsigned most_open) noexcept : most_open_(most_open) {}
    directory_table(const directory_table&) = delete;
    directory_table& operator=(const directory_table&) = delete;

    /// A descriptor of the directory, which stays open until unpin(), or −errno: ENOENT also where
    /// it was moved away since it was open last. `child`: a descriptor of one of its
    /// subdirectories, if there is one at hand.
    [[nodiscard]] int pin(directory_node& node, int child = -1);
    void unpin(directory_node& node) noexcept;
    /// Before `node` goes: opens its parent, if it is closed and `node` is not. From below that is
    /// cheap; later it would be a way from the top.
    void reach_parent(directory_node& node);
    /// Instead of opening it: `fd` is one of it. Pins it.
    void adopt(directory_node& node, int fd) noexcept;
    /// Its descriptor, if it is open; pins it then.
    [[nodiscard]] int pin_if_open(directory_node& node) noexcept;

    /// The top is opened by one component, relative to `at`, which outlives the work; otherwise by
    /// its path. Before it is opened.
    void place_top(const directory_node& node, int at, std::string leaf);

    /// From then on nothing stays open without being pinned, not even the top.
    void close_all(directory_node& top) noexcept;

    /// What openat(2) gives, or −errno, with O_CLOEXEC; closes directories where there are too many
    /// descriptors.
    [[nodiscard]] int open_file(int at, const char* name, int flags, ::mode_t mode);

    /// One more reference to it.
    static directory_node& share(directory_node& node) noexcept {
        node.references_.fetch_add(1, std::memory_order_relaxed);
        return node;
    }
    /// One fewer. With the last one it is closed and deleted, and its reference to its parent goes.
    void release(directory_node* node) noexcept;

    /// Whether a directory with these numbers is `node` or above it.
    [[nodiscard]] bool is_at_or_above(directory_node& node, ::dev_t device, ::ino_t inode);

private:
    struct placed_top {
        const directory_node* node;
        int at;
        std::string leaf;
    };

    int open_top(directory_node& node);
    int open_below(int parent, directory_node& node, const char* name);
    int reopen(directory_node& node, int child);
    int climb(directory_node& node, int child);
    directory_node* pin_child_of(directory_node& node) noexcept;
    int walk_down(directory_node& node);
    int open(int at, const char* name, bool follow);
    bool close_oldest() noexcept;
    void close(directory_node& node) noexcept;
    void forget(directory_node& node) noexcept;
    void learn(directory_node& node, int fd) noexcept;

    std::mutex mutex_;
    std::mutex reopening_;         // one at a time goes back to what was closed; before mutex_
    std::vector<placed_top> tops_; // two at most
    unsigned most_open_;
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

/// A directory's descriptor for the time of a block.
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

    /// Or −errno.
    [[nodiscard]] int fd() const noexcept { return fd_; }

private:
    directory_table* table_;
    directory_node* node_;
    int fd_;
};

} // namespace coil::fs::detail
