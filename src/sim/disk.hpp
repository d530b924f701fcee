#pragma once

#include "event_scheduler.hpp"
#include "object.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

namespace coil::sim::detail {

class disk;

/// CLOCK_REALTIME at the start of a world: 2026-01-01.
inline constexpr std::int64_t epoch_ns = 1'767'225'600'000'000'000;

/// A file of any type. Content is stored twice where it differs: as programs see it, and the
/// durable version, which remains after a crash.
class inode final : public object {
public:
    inode(disk& on, std::uint64_t number, ::mode_t mode) noexcept;
    ~inode() override;

    [[nodiscard]] bool is_directory() const noexcept { return S_ISDIR(mode); }
    [[nodiscard]] bool is_regular() const noexcept { return S_ISREG(mode); }
    [[nodiscard]] bool is_link() const noexcept { return S_ISLNK(mode); }

    // The data of a regular file. read() and write() return bytes or -errno, resize() 0 or -errno.
    int read(std::span<const ::iovec> to, std::size_t skip, std::uint64_t at,
             std::size_t most) const;
    int write(std::span<const ::iovec> from, std::size_t skip, std::uint64_t at, std::size_t count);
    int resize(std::uint64_t to);
    void zero(std::uint64_t from, std::uint64_t count);
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t blocks() const noexcept;
    /// Makes all data durable.
    void sync() noexcept;
    /// Reduces the data to what survives a crash.
    void crash(random_source& random, unsigned kept_per_mille);

    // The entries of a directory.
    std::map<std::string, ref<inode>, std::less<>> entries;
    std::map<std::string, ref<inode>, std::less<>> durable_entries;
    inode* parent = nullptr; // only for a directory

    std::string target; // the content of a symbolic link

    /// Extended attributes. The durable version changes with sync().
    std::map<std::string, std::string, std::less<>> attributes;

    disk& on;
    const std::uint64_t number;
    ::mode_t mode;
    ::uid_t owner = 0;
    ::gid_t group = 0;
    ::dev_t device = 0; // only for a character device
    unsigned links = 0;
    bool may_be_linked = false; // without a name: it was opened with O_TMPFILE and not O_EXCL
    ::timespec accessed{};      // CLOCK_REALTIME
    ::timespec modified{};
    ::timespec changed{};
    ::timespec born{};
    /// Called when the content was read: updates the time of access as with the mount option
    /// relatime.
    void note_access() noexcept;
    /// Changes the permission bits. The durable version changes with sync().
    void set_permissions(::mode_t to) noexcept;
    void set_owner(::uid_t user, ::gid_t its_group) noexcept;

private:
    static constexpr std::size_t page_size = 4096;
    static constexpr std::size_t sector_size = 512;
    using bytes = std::array<std::byte, page_size>;

    struct page {
        std::unique_ptr<bytes> seen; // null: zeros
        std::unique_ptr<bytes> safe; // null: zeros; used only while there are dirty sectors
        std::uint8_t dirty = 0;      // one bit per sector
    };
    page& touched(std::size_t index, std::size_t from, std::size_t to);

    std::vector<page> pages_;
    std::vector<std::size_t> dirty_; // indices of pages_
    std::uint64_t size_ = 0;
    std::uint64_t safe_size_ = 0;
    ::mode_t safe_mode_;
    ::uid_t safe_owner_ = 0;
    ::gid_t safe_group_ = 0;
    std::map<std::string, std::string, std::less<>> safe_attributes_;
};

/// The type of the last component of a path.
enum class last_name : std::uint8_t { ordinary, root, dot, dot_dot };

/// The result of resolving a path.
struct place {
    int error = 0;        // -errno: a directory on the path could not be resolved
    ref<inode> directory; // the directory of the last component
    std::string name;     // the last component, if it is an ordinary name
    last_name last = last_name::root;
    ref<inode> target;            // null: no file has that name
    bool wants_directory = false; // the path ends in a slash
};

/// How a path is resolved.
enum class last_link : std::uint8_t {
    followed,
    kept, // not followed, except if the path ends in a slash
    named // for calls that create or remove names: never followed, and the caller handles a
          // trailing slash
};
struct resolution {
    last_link link = last_link::followed;
    std::uint64_t how = 0; // RESOLVE_... of openat2(2)
    bool creates = false;  // O_CREAT: a regular file's name cannot end in a slash
};

/// The file system of a machine.
class disk {
public:
    disk(event_scheduler& world, std::uint64_t capacity);
    ~disk();
    disk(const disk&) = delete;
    disk& operator=(const disk&) = delete;

    [[nodiscard]] inode& root() const noexcept { return *root_; }
    /// `from` is the start of a relative path.
    [[nodiscard]] place find(inode& from, std::string_view path, resolution way) const;

    [[nodiscard]] ref<inode> create(::mode_t mode);
    /// Changes of names, checked by the caller. A crash keeps or loses a move in both directories.
    void put(inode& directory, const std::string& name, inode& what);
    void remove(inode& directory, const std::string& name);
    void move(inode& from, const std::string& name, inode& to, const std::string& new_name,
              bool exchange);

    /// Makes the names in `directory` durable.
    void sync_names(inode& directory);
    /// Simulates a power failure: changes that were not durable survive completely, partly or not
    /// at all.
    void crash();

    bool take(std::uint64_t bytes) noexcept {
        if (used_ + bytes > capacity_) {
            return false;
        }
        used_ += bytes;
        return true;
    }
    void give(std::uint64_t bytes) noexcept { used_ -= bytes; }
    [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
    /// CLOCK_REALTIME.
    [[nodiscard]] ::timespec clock() const noexcept;

private:
    struct assignment {
        ref<inode> directory;
        std::string name;
        ref<inode> what; // null: the name is removed
    };
    /// A set of changes that is atomic.
    using change = std::vector<assignment>;

    void assign(change all);
    static void apply(const change& all, bool durable);

    event_scheduler& world_;
    const std::uint64_t capacity_;
    std::uint64_t used_ = 0;
    std::uint64_t next_number_ = 2;
    ref<inode> root_;
    std::vector<change> unsafe_; // changes of names that are not durable, oldest first
    friend class inode;
    std::unordered_set<inode*> directories_; // never iterated where the order could be observed
};

} // namespace coil::sim::detail
