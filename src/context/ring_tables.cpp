#include <coil/context/detail/ring_tables.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

namespace coil::detail {

int ring_tables::use_files(uring::ring& ring, unsigned slots) noexcept {
    if (files_) [[likely]] {
        return 0;
    }
    unsigned size = std::min(chosen_files + slots, uring::registered_files::max_slots);
    int error = files_.setup(ring, size);
    while (error == -EMFILE && size > 1) {
        size /= 2;
        error = files_.setup(ring, size);
    }
    if (error == 0) {
        static std::atomic<std::uint64_t> tables{0};
        constexpr std::uint64_t numbers = UINT32_MAX - any_files; // the numbers above any_files
        files_number_ = static_cast<std::uint32_t>(
            any_files + 1 + tables.fetch_add(1, std::memory_order_relaxed) % numbers);
    }
    if (error == 0 && size > chosen_files) {
        // Without support for a range (before Linux 6.0), the kernel takes any free slot.
        files_.alloc_range(chosen_files, size - chosen_files);
    }
    return error;
}

void ring_tables::close_file(int slot) noexcept { files_.clear(static_cast<unsigned>(slot)); }

int ring_tables::find_free(unsigned count) const noexcept {
    unsigned row = 0;
    for (unsigned slot = 0; slot < buffers_.size(); ++slot) {
        row = taken_[slot] ? 0 : row + 1;
        if (row == count) {
            return static_cast<int>(slot + 1 - count);
        }
    }
    return -ENFILE;
}

int ring_tables::add_buffers(uring::ring& ring, unsigned slots,
                             std::span<const ::iovec> memory) noexcept try {
    if (!buffers_) {
        if (const int error =
                buffers_.setup(ring, std::min(slots, uring::registered_buffers::max_slots));
            error < 0) {
            return error;
        }
        taken_ = owned<bool[]>(new bool[buffers_.size()]());
    }
    const auto count = static_cast<unsigned>(memory.size());
    const int first = count == 0 ? -EINVAL : find_free(count);
    if (first < 0) {
        return first;
    }
    const auto slot = static_cast<unsigned>(first);
    const int added = buffers_.update(slot, memory);
    if (added == static_cast<int>(count)) {
        std::fill_n(taken_.get() + first, count, true);
        return first;
    }
    if (added < 0) {
        return added;
    }
    // The buffer after these was refused: determine the error, and undo.
    const int error = buffers_.update(slot + static_cast<unsigned>(added),
                                      memory.subspan(static_cast<std::size_t>(added), 1));
    buffers_.clear(slot, count);
    return error < 0 ? error : -EAGAIN;
} catch (const std::bad_alloc&) {
    buffers_.close();
    return -ENOMEM;
}

void ring_tables::remove_buffers(unsigned first, unsigned count) noexcept {
    buffers_.clear(first, count);
    std::fill_n(taken_.get() + first, count, false);
}

void ring_tables::close() noexcept {
    files_.close();
    files_number_ = 0;
    buffers_.close();
    taken_.reset();
}

} // namespace coil::detail
