#include "at_offset.hpp"

#include <coil/base/page_size.hpp>
#include <coil/uring/detail/prep_entry.hpp>
#include <coil/uring/zcrx_area.hpp>

#include <atomic>
#include <bit>
#include <cerrno>
#include <system_error>

#include <sys/mman.h>

namespace coil::uring {

namespace {

/// The refill ring's head, tail and flags, before its entries: the kernel uses at most this.
constexpr std::size_t refill_words = 4096;

[[noreturn]] void refuse_area(int error, const char* sentence) {
    throw std::system_error(error, std::generic_category(), sentence);
}

} // namespace

zcrx_area::zcrx_area(std::size_t bytes, unsigned refill_entries) {
    const std::size_t page = coil::detail::page_size();
    constexpr std::size_t most = std::size_t{1} << 40;
    if (bytes == 0 || bytes > most || refill_entries == 0 || refill_entries > max_refill_entries) {
        refuse_area(EINVAL,
                    "coil::uring::zcrx_area: an area has 1 byte to 1 TiB, and a refill ring 1 "
                    "to 32768 entries");
    }
    page_shift_ = static_cast<unsigned>(std::countr_zero(page));
    pages_ = static_cast<unsigned>((bytes + page - 1) >> page_shift_);
    mask_ = std::bit_ceil(refill_entries) - 1;
    const std::size_t region = refill_words + (std::size_t{mask_} + 1) * sizeof(zcrx_rqe);
    region_size_ = (region + page - 1) & ~(page - 1);
    held_.reset(new page_returns[pages_]);
    // Not from the heap: the device may write to the pages until the kernel has closed the ring,
    // so they must not be reused for other objects.
    void* const memory = ::mmap(nullptr, size() + region_size_, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        refuse_area(errno, "coil::uring::zcrx_area: no memory for the area");
    }
    ::madvise(memory, size() + region_size_, MADV_DONTFORK);
    memory_ = static_cast<std::byte*>(memory);
}

zcrx_area::~zcrx_area() { ::munmap(memory_, size() + region_size_); }

int zcrx_area::register_with(backend& backend, unsigned interface_index,
                             unsigned rx_queue) noexcept {
    using detail::at_offset;
    std::byte* const region = memory_ + size();
    zcrx_area_reg area{};
    area.addr = prep::detail::address(memory_);
    area.len = size();
    region_desc refill{};
    refill.user_addr = prep::detail::address(region);
    refill.size = region_size_;
    refill.flags = region_flag::user_memory;
    zcrx_ifq_reg queue{};
    queue.if_idx = interface_index;
    queue.if_rxq = rx_queue;
    queue.rq_entries = mask_ + 1;
    queue.area_ptr = prep::detail::address(&area);
    queue.region_ptr = prep::detail::address(&refill);
    const int error = backend.do_register(register_op::zcrx_ifq, &queue, 1);
    if (error < 0) {
        return error;
    }
    head_ = at_offset<std::uint32_t>(region, queue.offsets.head);
    tail_ = at_offset<std::uint32_t>(region, queue.offsets.tail);
    entries_ = at_offset<zcrx_rqe>(region, queue.offsets.rqes);
    token_ = area.rq_area_token;
    next_ = std::atomic_ref<std::uint32_t>(*tail_).load(std::memory_order_relaxed);
    return static_cast<int>(queue.zcrx_id);
}

bool zcrx_area::push(std::uint64_t offset, std::uint32_t len) noexcept {
    const std::uint32_t head =
        std::atomic_ref<std::uint32_t>(*head_).load(std::memory_order_acquire);
    if (next_ - head > mask_) {
        return false;
    }
    entries_[next_ & mask_] = {token_ | offset, len, 0};
    std::atomic_ref<std::uint32_t>(*tail_).store(++next_, std::memory_order_release);
    return true;
}

void zcrx_area::give_back(std::uint64_t offset, std::uint32_t len) noexcept {
    flush(); // in order, so that the pages held back are not overtaken for ever
    if (held_back_ > 0 || !push(offset, len)) {
        hold_back(static_cast<std::uint32_t>(offset >> page_shift_));
    }
}

void zcrx_area::hold_back(std::uint32_t page) noexcept {
    page_returns& returns = held_[page];
    if (returns.count++ == 0) {
        returns.next = none;
        (first_held_ == none ? first_held_ : held_[last_held_].next) = page;
        last_held_ = page;
    }
    ++held_back_;
}

void zcrx_area::flush_held() noexcept {
    while (first_held_ != none) {
        page_returns& returns = held_[first_held_];
        while (returns.count > 0) {
            // Only the page matters to the kernel.
            if (!push(std::uint64_t{first_held_} << page_shift_, 0)) {
                return;
            }
            --returns.count;
            --held_back_;
        }
        first_held_ = returns.next;
    }
}

} // namespace coil::uring
