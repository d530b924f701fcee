#pragma once

#include "directory_stream.hpp"
#include "directory_table.hpp"

#include <coil/fs/directory_entry.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include <sys/stat.h>

namespace coil::fs::detail {

/// State that entries refer to after the end of their walk.
struct walk_base {
    directory_table table;
    std::atomic<bool> wants_metadata{false};
};

/// Entries of a directory, as getdents64 wrote them, and their metadata once it has been queried.
class entry_batch {
public:
    struct metadata {
        struct ::stat status{};
        int error = 0;
    };

    entry_batch(std::shared_ptr<walk_base> base, directory_node& directory,
                const std::byte* records, std::size_t size);
    entry_batch(const entry_batch&) = delete;
    entry_batch& operator=(const entry_batch&) = delete;
    ~entry_batch() { base_->table.release(&directory_); }

    [[nodiscard]] unsigned size() const noexcept { return count_; }
    [[nodiscard]] directory_node& directory() const noexcept { return directory_; }
    [[nodiscard]] raw_entries records() const noexcept { return {records_.get(), bytes_}; }
    [[nodiscard]] raw_entry record(std::uint32_t offset) const noexcept {
        return raw_entry(records_.get() + offset);
    }
    [[nodiscard]] std::uint32_t offset_of(const raw_entry& record) const noexcept {
        return static_cast<std::uint32_t>(record.at() - records_.get());
    }

    /// Pool thread: queries the metadata of all entries, once. 0, or -errno of opening the
    /// directory.
    int ask();
    /// Null: not queried yet.
    [[nodiscard]] const metadata* known(std::uint32_t number) const noexcept {
        return asked_.load(std::memory_order_acquire) ? &metadata_[number] : nullptr;
    }
    /// Requests metadata for entries that are read from now on.
    void want_metadata() const noexcept {
        base_->wants_metadata.store(true, std::memory_order_relaxed);
    }
    /// Pool thread: the status of the entry's target. 0 or -errno.
    int follow(std::uint32_t offset, struct ::stat& status);

    void share() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }

private:
    std::atomic<unsigned> references_{1};
    std::atomic<bool> asked_{false};
    unsigned count_ = 0;
    const std::shared_ptr<walk_base> base_;
    directory_node& directory_;
    const std::unique_ptr<std::byte[]> records_;
    const std::size_t bytes_;
    std::mutex asking_;
    std::unique_ptr<metadata[]> metadata_;
};

/// Access to the private members of an entry.
struct entry_access {
    static directory_entry make(entry_batch& batch, std::uint32_t offset,
                                std::uint32_t number) noexcept {
        return {batch, offset, number};
    }
    static entry_batch& batch(const directory_entry& e) noexcept { return *e.batch_; }
    static std::uint32_t offset(const directory_entry& e) noexcept { return e.offset_; }
    static std::uint32_t number(const directory_entry& e) noexcept { return e.number_; }
};

} // namespace coil::fs::detail
