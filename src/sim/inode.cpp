// The data of a file in memory, and the part of it that survives a crash.

#include "bytes.hpp"
#include "disk.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace coil::sim::detail {

inode::inode(disk& disk_of, std::uint64_t its_number, ::mode_t its_mode) noexcept
    : on(disk_of), number(its_number), mode(its_mode), safe_mode_(its_mode) {
    if (is_directory()) {
        on.directories_.insert(this);
    }
}

inode::~inode() {
    on.directories_.erase(this);
    for (const page& p : pages_) {
        if (p.seen) {
            on.give(page_size);
        }
    }
}

std::uint64_t inode::blocks() const noexcept {
    std::uint64_t count = 0;
    for (const page& p : pages_) {
        count += p.seen ? page_size / sector_size : 0;
    }
    return count;
}

int inode::read(std::span<const ::iovec> to, std::size_t skip, std::uint64_t at,
                std::size_t most) const {
    if (at >= size_) {
        return 0;
    }
    const std::size_t count = std::min<std::uint64_t>(most, size_ - at);
    for_each_part(to, skip, count, [&](std::byte* out, std::size_t n) {
        while (n > 0) {
            const std::size_t index = at / page_size;
            const std::size_t offset = at % page_size;
            const std::size_t now = std::min(n, page_size - offset);
            if (index < pages_.size() && pages_[index].seen) {
                std::memcpy(out, pages_[index].seen->data() + offset, now);
            } else {
                std::memset(out, 0, now);
            }
            out += now;
            at += now;
            n -= now;
        }
    });
    return static_cast<int>(count);
}

/// Returns a page that is about to be written in [from, to), after saving its durable version.
inode::page& inode::touched(std::size_t index, std::size_t from, std::size_t to) {
    page& p = pages_[index];
    if (p.dirty == 0) {
        dirty_.push_back(index);
        p.safe = p.seen ? std::make_unique<bytes>(*p.seen) : nullptr;
    }
    for (std::size_t s = from / sector_size; s <= (to - 1) / sector_size; ++s) {
        p.dirty |= static_cast<std::uint8_t>(1U << s);
    }
    return p;
}

int inode::write(std::span<const ::iovec> from, std::size_t skip, std::uint64_t at,
                 std::size_t count) {
    const std::size_t last = (at + count + page_size - 1) / page_size;
    if (pages_.size() < last) {
        pages_.resize(last);
    }
    int written = 0;
    bool full = false;
    for_each_part(from, skip, count, [&](const std::byte* source, std::size_t n) {
        while (n > 0 && !full) {
            const std::size_t index = at / page_size;
            const std::size_t offset = at % page_size;
            const std::size_t now = std::min(n, page_size - offset);
            if (!pages_[index].seen && !on.take(page_size)) {
                full = true;
                return;
            }
            page& p = touched(index, offset, offset + now);
            if (!p.seen) {
                p.seen = std::make_unique<bytes>();
                p.seen->fill({});
            }
            std::memcpy(p.seen->data() + offset, source, now);
            source += now;
            at += now;
            n -= now;
            written += static_cast<int>(now);
        }
    });
    size_ = std::max(size_, at);
    modified = changed = on.clock();
    return written == 0 && full ? -ENOSPC : written;
}

void inode::zero(std::uint64_t from, std::uint64_t count) {
    const std::uint64_t end = std::min<std::uint64_t>(from + count, pages_.size() * page_size);
    while (from < end) {
        const std::size_t index = from / page_size;
        const std::size_t offset = from % page_size;
        const std::size_t now = std::min<std::uint64_t>(end - from, page_size - offset);
        if (pages_[index].seen) {
            std::memset(touched(index, offset, offset + now).seen->data() + offset, 0, now);
        }
        from += now;
    }
}

int inode::resize(std::uint64_t to) {
    if (to < size_) {
        zero(to, size_ - to);
    }
    size_ = to;
    modified = changed = on.clock();
    return 0;
}

void inode::note_access() noexcept {
    constexpr ::time_t day = 24 * 60 * 60;
    const auto is_after = [](const ::timespec& a, const ::timespec& b) {
        return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
    };
    const ::timespec now = on.clock();
    if (!is_after(accessed, modified) || !is_after(accessed, changed) ||
        now.tv_sec - accessed.tv_sec >= day) {
        accessed = now;
    }
}

void inode::set_permissions(::mode_t to) noexcept {
    constexpr ::mode_t bits = 07777;
    mode = (mode & ~bits) | (to & bits);
    changed = on.clock();
}

/// Changes the owner and clears the set-uid and set-gid bits, like chown(2).
void inode::set_owner(::uid_t user, ::gid_t its_group) noexcept {
    owner = user == static_cast<::uid_t>(-1) ? owner : user;
    group = its_group == static_cast<::gid_t>(-1) ? group : its_group;
    if (!is_directory()) {
        mode &= ~static_cast<::mode_t>(S_ISUID);
        mode &= (mode & S_IXGRP) != 0 ? ~static_cast<::mode_t>(S_ISGID) : ~::mode_t{0};
    }
    changed = on.clock();
}

void inode::sync() noexcept {
    safe_mode_ = mode;
    safe_owner_ = owner;
    safe_group_ = group;
    safe_attributes_ = attributes;
    for (const std::size_t index : dirty_) {
        pages_[index].safe.reset();
        pages_[index].dirty = 0;
    }
    dirty_.clear();
    safe_size_ = size_;
    const std::size_t needed = (size_ + page_size - 1) / page_size;
    while (pages_.size() > needed) {
        if (pages_.back().seen) {
            on.give(page_size);
        }
        pages_.pop_back();
    }
}

/// Each dirty sector survives or is lost, independently of the others; so does the new length.
void inode::crash(random_source& random, unsigned kept_per_mille) {
    for (const std::size_t index : dirty_) {
        page& p = pages_[index];
        for (std::size_t s = 0; s < page_size / sector_size; ++s) {
            if ((p.dirty & (1U << s)) == 0 || random.chance(kept_per_mille)) {
                continue;
            }
            std::byte* const to = p.seen->data() + s * sector_size;
            if (p.safe) {
                std::memcpy(to, p.safe->data() + s * sector_size, sector_size);
            } else {
                std::memset(to, 0, sector_size);
            }
        }
    }
    if ((mode != safe_mode_ || owner != safe_owner_ || group != safe_group_) &&
        !random.chance(kept_per_mille)) {
        mode = safe_mode_;
        owner = safe_owner_;
        group = safe_group_;
    }
    if (attributes != safe_attributes_ && !random.chance(kept_per_mille)) {
        attributes = safe_attributes_;
    }
    if (size_ != safe_size_ && !random.chance(kept_per_mille)) {
        const auto [low, high] = std::minmax(size_, safe_size_);
        size_ = kept_per_mille == 0 || random.one_in(2) ? safe_size_
                                                        : low + random.below(high - low + 1);
    }
    if (size_ < pages_.size() * page_size) {
        zero(size_, pages_.size() * page_size - size_);
    }
    sync();
}

} // namespace coil::sim::detail
