#pragma once

#include "huge_pages.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

namespace coil::detail {

/// The memory of a snapshot: blocks from the kernel, freed together. A snapshot of a million tasks
/// is made on a context's thread and freed on another one. With malloc() both would use one arena,
/// and the first large allocation of the next snapshot would merge a million freed pieces, in the
/// middle of a turn.
class snapshot_memory {
public:
    snapshot_memory() = default;
    snapshot_memory(snapshot_memory&& other) noexcept
        : newest_(std::exchange(other.newest_, nullptr)), at_(std::exchange(other.at_, nullptr)),
          end_(std::exchange(other.end_, nullptr)) {}
    snapshot_memory& operator=(snapshot_memory&& other) noexcept {
        std::swap(newest_, other.newest_);
        std::swap(at_, other.at_);
        std::swap(end_, other.end_);
        return *this;
    }
    ~snapshot_memory() {
        while (newest_ != nullptr) {
            const block one = *newest_;
            ::munmap(one.mapping, one.bytes);
            newest_ = one.older;
        }
    }

    /// Obtains memory for later allocations, as far as there is any. All of it is written to by the
    /// kernel now, on this thread, so that the thread which takes the snapshot has no page faults.
    void reserve(std::size_t bytes) noexcept {
        const bool is_huge = bytes >= huge_page / 2;
        const std::size_t unit = is_huge ? huge_page : usual_bytes;
        bytes = (bytes + sizeof(block) + unit - 1) / unit * unit;
        const std::size_t mapped = is_huge ? bytes + huge_page : bytes; // to align it
        std::byte* const mapping = map(mapped, 0);
        if (mapping == nullptr) {
            return;
        }
        std::byte* begin = mapping;
        if (is_huge) {
            begin += huge_page - reinterpret_cast<std::uintptr_t>(mapping) % huge_page;
            advise_huge_pages(begin, bytes);
        }
        constexpr int populate_write = 23; // MADV_POPULATE_WRITE; before Linux 5.14: EINVAL
        ::madvise(begin, bytes, populate_write);
        use(begin, bytes, {newest_, mapping, mapped});
    }

    /// Suitably aligned for pointers.
    [[nodiscard]] void* allocate(std::size_t bytes) {
        bytes = (bytes + alignof(block) - 1) & ~(alignof(block) - 1);
        if (bytes > static_cast<std::size_t>(end_ - at_)) [[unlikely]] {
            add_block(bytes);
        }
        return std::exchange(at_, at_ + bytes);
    }
    template <class T>
    [[nodiscard]] T* make() {
        static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignof(block));
        return new (allocate(sizeof(T))) T();
    }
    [[nodiscard]] std::string_view copy(std::string_view text) {
        if (text.empty()) {
            return {};
        }
        void* const to = allocate(text.size());
        std::memcpy(to, text.data(), text.size());
        return {static_cast<const char*>(to), text.size()};
    }

private:
    struct block { // at its beginning
        block* older;
        std::byte* mapping;
        std::size_t bytes; // of the mapping
    };
    static constexpr std::size_t usual_bytes = std::size_t{256} * 1024;

    [[nodiscard]] static std::byte* map(std::size_t bytes, int flags) noexcept {
        void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
        return memory != MAP_FAILED ? static_cast<std::byte*>(memory) : nullptr;
    }
    void use(std::byte* memory, std::size_t bytes, const block& one) noexcept {
        newest_ = new (memory) block(one);
        at_ = memory + sizeof(block);
        end_ = memory + bytes;
    }
    void add_block(std::size_t least) {
        const std::size_t bytes =
            (sizeof(block) + least + usual_bytes - 1) / usual_bytes * usual_bytes;
        // After the first block, many pages at once cost less than a fault for each.
        std::byte* const memory = map(bytes, newest_ != nullptr ? MAP_POPULATE : 0);
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        use(memory, bytes, {newest_, memory, bytes});
    }

    block* newest_ = nullptr;
    std::byte* at_ = nullptr;
    std::byte* end_ = nullptr;
};

/// Records in a snapshot's memory.
template <class T>
class record_list {
    struct node {
        T record;
        node* next = nullptr;
    };

    template <class Record>
    class position {
    public:
        explicit position(node* at) noexcept : at_(at) {}
        Record& operator*() const noexcept { return at_->record; }
        position& operator++() noexcept {
            at_ = at_->next;
            return *this;
        }
        bool operator==(const position&) const = default;

    private:
        node* at_;
    };

public:
    T& add(snapshot_memory& memory) {
        node* const added = memory.make<node>();
        (last_ != nullptr ? last_->next : first_) = added;
        last_ = added;
        ++size_;
        return added->record;
    }
    T& add_in_front(snapshot_memory& memory) {
        node* const added = memory.make<node>();
        added->next = first_;
        first_ = added;
        last_ = last_ != nullptr ? last_ : added;
        ++size_;
        return added->record;
    }
    /// Moves the records of another list, in the same memory, to the end of this one.
    void append(record_list& other) noexcept {
        if (other.first_ != nullptr) {
            (last_ != nullptr ? last_->next : first_) = other.first_;
            last_ = other.last_;
            size_ += other.size_;
            other = {};
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] T& back() noexcept { return last_->record; }
    [[nodiscard]] auto begin() noexcept { return position<T>(first_); }
    [[nodiscard]] auto end() noexcept { return position<T>(nullptr); }
    [[nodiscard]] auto begin() const noexcept { return position<const T>(first_); }
    [[nodiscard]] auto end() const noexcept { return position<const T>(nullptr); }

private:
    node* first_ = nullptr;
    node* last_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace coil::detail
