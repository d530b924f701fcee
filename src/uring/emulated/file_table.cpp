#include "../system_calls.hpp"
#include "emulation.hpp"

#include <cerrno>
#include <new>

namespace coil::uring::detail {

int file_table::make(unsigned count) noexcept try {
    if (exists_) {
        return -EBUSY;
    }
    if (count == 0) {
        return -EINVAL;
    }
    if (count > 1U << 20 || count > emulation::max_files(world_)) {
        return -EMFILE;
    }
    slots_.assign(count, nullptr);
    first_ = hint_ = 0;
    last_ = count;
    exists_ = true;
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

int file_table::clear() noexcept {
    if (!exists_) {
        return -ENXIO;
    }
    for (emulated_file*& slot : slots_) {
        if (slot != nullptr) {
            release(slot);
        }
    }
    slots_.clear();
    exists_ = false;
    return 0;
}

emulated_file* file_table::own(int file) noexcept {
    auto* f = new (std::nothrow) emulated_file{file, 1};
    if (f == nullptr) {
        emulation::drop_file(world_, file);
    }
    return f;
}

emulated_file* file_table::use(unsigned slot) noexcept {
    if (slot >= slots_.size() || slots_[slot] == nullptr) {
        return nullptr;
    }
    ++slots_[slot]->owners;
    return slots_[slot];
}

void file_table::release(emulated_file* file) noexcept {
    if (--file->owners != 0) {
        return;
    }
    emulation::drop_file(world_, file->file);
    delete file;
}

void file_table::put(unsigned slot, emulated_file* file) noexcept {
    emulated_file* const before = slots_[slot];
    slots_[slot] = file;
    if (slot >= first_ && slot < last_) { // where Linux searches next
        hint_ = (slot - first_ + (file != nullptr ? 1 : 0)) % (last_ - first_);
    }
    if (before != nullptr) {
        release(before);
    }
}

/// Searches from the slot after the last one filled, or from the last one emptied.
int file_table::find_free() noexcept {
    const unsigned n = last_ - first_;
    for (unsigned i = 0; i < n; ++i) {
        const unsigned slot = first_ + (hint_ + i) % n;
        if (slots_[slot] == nullptr) {
            return static_cast<int>(slot);
        }
    }
    return -ENFILE;
}

int file_table::install(int file, std::uint32_t file_index) noexcept {
    int error = !exists_ ? (file_index == file_index_alloc ? -ENFILE : -ENXIO) : 0;
    unsigned slot = file_index - 1;
    int result = 0;
    if (error == 0 && file_index == file_index_alloc) {
        result = find_free();
        error = result < 0 ? result : 0;
        slot = static_cast<unsigned>(result);
    } else if (error == 0 && slot >= slots_.size()) {
        error = -EINVAL;
    }
    if (error != 0) {
        emulation::drop_file(world_, file);
        return error;
    }
    emulated_file* const f = own(file);
    if (f == nullptr) {
        return -ENOMEM;
    }
    const unsigned hint = hint_;
    const bool replaces = slots_[slot] != nullptr;
    put(slot, f);
    if (replaces) {
        hint_ = hint; // as on Linux, unlike an update of the table
    }
    return result;
}

int file_table::remove(unsigned slot) noexcept {
    if (!exists_) {
        return -ENXIO;
    }
    if (slot >= slots_.size()) {
        return -EINVAL;
    }
    if (slots_[slot] == nullptr) {
        return -EBADF;
    }
    put(slot, nullptr);
    return 0;
}

int file_table::assign(unsigned slot, int descriptor) noexcept {
    if (descriptor == -1) {
        put(slot, nullptr);
        return 0;
    }
    const int file = emulation::hold_file(world_, descriptor);
    if (file < 0) {
        return file;
    }
    emulated_file* const f = own(file);
    if (f == nullptr) {
        return -ENOMEM;
    }
    put(slot, f);
    return 0;
}

int file_table::add(int descriptor) noexcept {
    if (!exists_) {
        return -ENXIO;
    }
    const int file = emulation::hold_file(world_, descriptor);
    return file < 0 ? file : install(file, file_index_alloc);
}

int file_table::set_range(unsigned first, unsigned count) noexcept {
    const std::uint64_t end = std::uint64_t{first} + count;
    if (end > UINT32_MAX) {
        return -EOVERFLOW;
    }
    if (end > slots_.size()) {
        return -EINVAL;
    }
    first_ = first;
    last_ = static_cast<unsigned>(end);
    hint_ = 0;
    return 0;
}

} // namespace coil::uring::detail
