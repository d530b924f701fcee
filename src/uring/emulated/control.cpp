#include "../opcode_table.hpp"
#include "../readable.hpp"
#include "../system_calls.hpp"
#include "emulation.hpp"

#include <coil/uring/syscall.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <new>

#include <sys/mman.h>

// io_uring_register(2).

namespace coil::uring::detail {
namespace {

/// Whether the arguments describe a table. Tags are refused: the emulation does not support them.
bool is_table(const rsrc_register& given) noexcept {
    const bool sparse = (given.flags & rsrc_flag::sparse) != 0;
    return given.nr != 0 && given.resv2 == 0 && given.tags == 0 &&
           (given.flags & ~rsrc_flag::sparse) == 0 && !(sparse && given.data != 0);
}

bool is_update(const rsrc_update2& given) noexcept {
    return given.resv == 0 && given.resv2 == 0 && given.tags == 0;
}

constexpr unsigned max_buffers = 16384;
constexpr std::size_t largest_buffer = std::size_t{1} << 30;

/// The number of elements before the first one for which `is_usable(address, size)` is false. Like
/// io_uring, the emulation processes the elements before the first invalid one.
template <class T>
unsigned usable_elements(const T* list, unsigned count,
                         bool (*is_usable)(const void*, std::size_t) noexcept) noexcept {
    if (is_usable(list, count * sizeof(T))) {
        return count;
    }
    unsigned n = 0;
    while (n < count && is_usable(list + n, sizeof(T))) {
        ++n;
    }
    return n;
}

/// The result of an update that has processed `done` elements of an array, up to the first one that
/// cannot be accessed.
int processed(unsigned done, unsigned count) noexcept {
    return done == 0 && count != 0 ? -EFAULT : static_cast<int>(done);
}

/// Whether the memory at `arg` that an operation reads is readable, and what it writes is writable.
/// The elements of arrays are checked where they are processed.
bool are_arguments_valid(register_op op, const void* arg, unsigned count) noexcept {
    switch (op) {
    case register_op::probe:
        return arg == nullptr || count > 256 ||
               is_accessible(arg, offsetof(probe, ops) + count * sizeof(probe::ops[0]));
    case register_op::files2:
    case register_op::buffers2:
        return is_readable(arg, sizeof(rsrc_register));
    case register_op::files_update:
        return is_readable(arg, sizeof(files_update));
    case register_op::files_update2:
    case register_op::buffers_update:
        return is_readable(arg, sizeof(rsrc_update2));
    case register_op::file_alloc_range:
        return is_readable(arg, sizeof(file_index_range));
    case register_op::sync_cancel:
        return is_readable(arg, sizeof(sync_cancel_reg));
    case register_op::pbuf_ring:
    case register_op::unregister_pbuf_ring:
        return is_readable(arg, sizeof(buf_reg));
    case register_op::pbuf_status:
        return is_accessible(arg, sizeof(buf_status));
    default:
        return true;
    }
}

constexpr auto is_zero = [](auto value) { return value == 0; };

int check_buffer(const ::iovec& area) noexcept {
    if (area.iov_base == nullptr) {
        return area.iov_len != 0 ? -EFAULT : 0;
    }
    if (area.iov_len > SSIZE_MAX) {
        return -EINVAL;
    }
    return area.iov_len == 0 || area.iov_len > largest_buffer ||
                   !is_writable(area.iov_base, area.iov_len)
               ? -EFAULT
               : 0;
}

} // namespace

int emulation::enable() noexcept {
    if (!disabled_) {
        return -EBADFD;
    }
    disabled_ = false;
    if ((setup_flags_ & setup::single_issuer) != 0) {
        owner_ = number_this_thread();
    }
    world_.entered_by_owner();
    return 0;
}

int emulation::do_register(register_op op, void* arg, unsigned count) noexcept {
    if ((op == register_op::ring_fds || op == register_op::unregister_ring_fds) && arg == nullptr) {
        return 0;
    }
    if (!are_arguments_valid(op, arg, count)) {
        return -EFAULT;
    }
    // Unlike Linux, another thread may unregister a buffer ring (while the ring is idle): the
    // caller is about to unmap the memory, which the emulation would otherwise continue to use.
    if (owner_ != 0 && owner_ != number_this_thread() && op != register_op::unregister_pbuf_ring) {
        return -EEXIST;
    }
    switch (op) {
    case register_op::enable_rings:
        return arg != nullptr || count != 0 ? -EINVAL : enable();
    case register_op::probe:
        return arg == nullptr || count > 256 ? -EINVAL
                                             : answer_probe(*static_cast<probe*>(arg), count);
    case register_op::sync_cancel:
        return count != 1 ? -EINVAL : cancel_now(*static_cast<const sync_cancel_reg*>(arg));
    default:
        return register_file_table(op, arg, count);
    }
}

/// Handles operations on the table of files; passes others on.
int emulation::register_file_table(register_op op, void* arg, unsigned count) noexcept {
    switch (op) {
    case register_op::files:
        return arg == nullptr ? -EFAULT : register_files(static_cast<const int*>(arg), count);
    case register_op::files2: {
        const auto& given = *static_cast<const rsrc_register*>(arg);
        if (count != sizeof given || !is_table(given)) {
            return -EINVAL;
        }
        return register_files(pointer<const int>(given.data), given.nr);
    }
    case register_op::unregister_files:
        return arg != nullptr || count != 0 ? -EINVAL : files_.clear();
    case register_op::files_update: {
        const auto& given = *static_cast<const files_update*>(arg);
        if (count == 0 || given.resv != 0) {
            return -EINVAL;
        }
        return replace_files(given.offset, pointer<const int>(given.fds), count);
    }
    case register_op::files_update2: {
        const auto& given = *static_cast<const rsrc_update2*>(arg);
        if (count != sizeof given || !is_update(given)) {
            return -EINVAL;
        }
        return replace_files(given.offset, pointer<const int>(given.data), given.nr);
    }
    case register_op::file_alloc_range: {
        const auto& given = *static_cast<const file_index_range*>(arg);
        return given.resv != 0 || count != 0 ? -EINVAL : files_.set_range(given.off, given.len);
    }
    default:
        return register_buffer_table(op, arg, count);
    }
}

/// Handles operations on the table of buffers; passes others on.
int emulation::register_buffer_table(register_op op, void* arg, unsigned count) noexcept {
    switch (op) {
    case register_op::buffers:
        return arg == nullptr ? -EFAULT : register_buffers(static_cast<const ::iovec*>(arg), count);
    case register_op::buffers2: {
        const auto& given = *static_cast<const rsrc_register*>(arg);
        if (count != sizeof given || !is_table(given)) {
            return -EINVAL;
        }
        return register_buffers(pointer<const ::iovec>(given.data), given.nr);
    }
    case register_op::buffers_update: {
        const auto& given = *static_cast<const rsrc_update2*>(arg);
        if (count != sizeof given || !is_update(given)) {
            return -EINVAL;
        }
        return replace_buffers(given.offset, pointer<const ::iovec>(given.data), given.nr);
    }
    case register_op::unregister_buffers:
        if (!has_buffers_) {
            return -ENXIO;
        }
        has_buffers_ = false;
        buffers_.clear();
        return 0;
    default:
        return register_buffer_group(op, arg, count);
    }
}

/// Handles operations on rings of provided buffers; passes others on.
int emulation::register_buffer_group(register_op op, void* arg, unsigned count) noexcept {
    switch (op) {
    case register_op::pbuf_ring: {
        const auto& given = *static_cast<const buf_reg*>(arg);
        if (count != 1) {
            return -EINVAL;
        }
        const int error = groups_.check_ring(given);
        if (error == 0 &&
            !is_writable(pointer<void>(given.ring_addr), given.ring_entries * sizeof(buf))) {
            return -EFAULT;
        }
        return error != 0 ? error : groups_.add_ring(given);
    }
    case register_op::unregister_pbuf_ring:
        return count != 1 ? -EINVAL : groups_.remove_ring(*static_cast<const buf_reg*>(arg));
    case register_op::pbuf_status: {
        auto& status = *static_cast<buf_status*>(arg);
        const bool valid = count == 1 && std::ranges::all_of(status.resv, is_zero);
        const int head = valid ? groups_.head_of(status.buf_group) : -EINVAL;
        if (head < 0) {
            return head;
        }
        status.head = static_cast<std::uint32_t>(head);
        return 0;
    }
    default:
        return world_.control_more(op, arg, count);
    }
}

int emulation::answer_probe(probe& answer, unsigned count) const noexcept {
    const unsigned n = std::min(count, opcode_count);
    answer.last_op = opcode_count - 1;
    answer.ops_len = static_cast<std::uint8_t>(n);
    for (unsigned i = 0; i < n; ++i) {
        const auto op = static_cast<opcode>(i);
        answer.ops[i].op = static_cast<std::uint8_t>(i);
        answer.ops[i].flags = has_trait(op, opcode_info::by_core) || world_.has_opcode(op)
                                  ? op_supported
                                  : std::uint16_t{0};
    }
    return 0;
}

// ---- files

int emulation::register_files(const int* fds, unsigned count) noexcept {
    if (const int error = files_.make(count); error != 0 || fds == nullptr) {
        return error;
    }
    const unsigned readable = usable_elements(fds, count, &is_readable);
    int error = 0;
    for (unsigned i = 0; i < readable && error == 0; ++i) {
        error = fds[i] != -1 ? files_.assign(i, fds[i]) : 0;
    }
    if (error == 0 && readable < count) {
        error = -EFAULT;
    }
    if (error != 0) {
        files_.clear();
    }
    return error;
}

/// The number of slots processed, or the error of the first one.
int emulation::replace_files(unsigned offset, const int* fds, unsigned count) noexcept {
    if (!files_.exists()) {
        return -ENXIO;
    }
    if (std::uint64_t{offset} + count > files_.size()) {
        return -EINVAL;
    }
    const unsigned readable = usable_elements(fds, count, &is_readable);
    for (unsigned i = 0; i < readable; ++i) {
        if (fds[i] == files_skip) {
            continue;
        }
        if (const int error = files_.assign(offset + i, fds[i]); error != 0) {
            return i != 0 ? static_cast<int>(i) : error;
        }
    }
    return processed(readable, count);
}

int emulation::update_files(request& r) noexcept {
    const sqe& s = r.entry;
    int* const fds = pointer<int>(s.addr);
    if (static_cast<std::uint32_t>(s.off) != file_index_alloc) {
        return replace_files(static_cast<unsigned>(s.off), fds, s.len);
    }
    const unsigned accessible = usable_elements(fds, s.len, &is_accessible);
    for (unsigned i = 0; i < accessible; ++i) {
        const int slot = files_.add(fds[i]);
        if (slot < 0) {
            return i != 0 ? static_cast<int>(i) : slot;
        }
        fds[i] = slot;
    }
    return processed(accessible, s.len);
}

// ---- buffers

int emulation::register_buffers(const ::iovec* areas, unsigned count) noexcept try {
    if (has_buffers_) {
        return -EBUSY;
    }
    if (count == 0 || count > max_buffers) {
        return -EINVAL;
    }
    std::vector<::iovec> table(count);
    const unsigned readable = areas != nullptr ? usable_elements(areas, count, &is_readable) : 0;
    for (unsigned i = 0; i < readable; ++i) {
        if (const int error = check_buffer(areas[i]); error != 0) {
            return error;
        }
        table[i] = areas[i];
    }
    if (areas != nullptr && readable < count) {
        return -EFAULT;
    }
    buffers_.swap(table);
    has_buffers_ = true;
    return 0;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

int emulation::replace_buffers(unsigned offset, const ::iovec* areas, unsigned count) noexcept {
    if (!has_buffers_) {
        return -ENXIO;
    }
    if (count == 0 || std::uint64_t{offset} + count > buffers_.size()) {
        return -EINVAL;
    }
    const unsigned readable = usable_elements(areas, count, &is_readable);
    for (unsigned i = 0; i < readable; ++i) {
        if (const int error = check_buffer(areas[i]); error != 0) {
            return i != 0 ? static_cast<int>(i) : error;
        }
        buffers_[offset + i] = areas[i];
    }
    return processed(readable, count);
}

} // namespace coil::uring::detail
