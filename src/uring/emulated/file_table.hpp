#pragma once

#include <coil/uring/abi.hpp>

#include <cstdint>
#include <vector>

namespace coil::uring {
class emulated_backend;
}

namespace coil::uring::detail {

/// A file of the table. Requests that use it keep it when its slot is replaced.
struct emulated_file {
    int file;
    unsigned owners;
};

/// The ring's table of registered files (io_uring_register(2)), whose slots are direct descriptors.
class file_table {
public:
    explicit file_table(emulated_backend& world) noexcept : world_(world) {}
    file_table(const file_table&) = delete;
    file_table& operator=(const file_table&) = delete;
    ~file_table() { clear(); }

    bool exists() const noexcept { return exists_; }
    std::size_t size() const noexcept { return slots_.size(); }

    /// Creates `count` empty slots. Returns 0, -EINVAL, -EBUSY, -EMFILE or -ENOMEM.
    int make(unsigned count) noexcept;
    int clear() noexcept;

    /// The file in a slot, with its reference count incremented, or null.
    emulated_file* use(unsigned slot) noexcept;
    void release(emulated_file* file) noexcept;

    /// Stores a file of the derived class in the slot that `file_index` requests: a slot's number
    /// counted from 1, or file_index_alloc. The table takes ownership of the file, even on failure.
    /// Returns the slot chosen for file_index_alloc, otherwise 0, or -errno.
    int install(int file, std::uint32_t file_index) noexcept;
    int remove(unsigned slot) noexcept;
    /// Stores a duplicate of an ordinary descriptor; -1 empties the slot.
    int assign(unsigned slot, int descriptor) noexcept;
    /// Stores a duplicate of an ordinary descriptor in a free slot, and returns the slot.
    int add(int descriptor) noexcept;

    int set_range(unsigned first, unsigned count) noexcept;

private:
    int find_free() noexcept;
    void put(unsigned slot, emulated_file* file) noexcept;
    emulated_file* own(int file) noexcept;

    emulated_backend& world_;
    std::vector<emulated_file*> slots_;
    unsigned first_ = 0; // the range of file_index_alloc
    unsigned last_ = 0;
    unsigned hint_ = 0;
    bool exists_ = false;
};

} // namespace coil::uring::detail
