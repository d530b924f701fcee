// A hash table with chains: a lookup costs a cache miss for the bucket and one for each entry of
// its chain.
#pragma once

#include <coil/interleave/lookup.hpp>
#include <coil/interleave/prefetch.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace structures {

class hash_table {
public:
    struct entry {
        std::uint64_t key;
        std::uint64_t value;
        const entry* next;
    };

    /// The number of `buckets` is a power of two, and all are null. The caller owns both arrays.
    hash_table(std::span<const entry*> buckets, std::span<entry> entries) noexcept
        : buckets_(buckets), entries_(entries), shift_(64 - std::countr_zero(buckets.size())) {}

    void insert(std::uint64_t key, std::uint64_t value) noexcept {
        entry& added = entries_[size_++];
        const entry*& first = buckets_[bucket_of(key)];
        added = {key, value, first};
        first = &added;
    }

    [[nodiscard]] std::uint64_t value_of(std::uint64_t key) const noexcept {
        for (const entry* e = buckets_[bucket_of(key)]; e != nullptr; e = e->next) {
            if (e->key == key) {
                return e->value;
            }
        }
        return 0;
    }

    /// The same lookup as a coil::lookup.
    [[nodiscard]] coil::lookup<std::uint64_t> find_value(std::uint64_t key) const {
        const entry* const* bucket = &buckets_[bucket_of(key)];
        co_await coil::prefetch(bucket);
        for (const entry* e = *bucket; e != nullptr; e = e->next) {
            co_await coil::prefetch(e);
            if (e->key == key) {
                co_return e->value;
            }
        }
        co_return 0;
    }

    [[nodiscard]] const entry* const* bucket(std::uint64_t key) const noexcept {
        return &buckets_[bucket_of(key)];
    }

private:
    [[nodiscard]] std::size_t bucket_of(std::uint64_t key) const noexcept {
        return (key * 0x9E3779B97F4A7C15U) >> shift_;
    }

    std::span<const entry*> buckets_;
    std::span<entry> entries_;
    int shift_;
    std::size_t size_ = 0;
};

} // namespace structures
