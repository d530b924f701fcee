#include "open_file.hpp"

#include "bytes.hpp"
#include "machine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/sysmacros.h>

namespace coil::sim::detail {

namespace {

using uring::opcode;

constexpr std::uint64_t largest_file = std::uint64_t{1} << 40;

} // namespace

bool open_file::reads() const noexcept {
    return (flags_ & O_ACCMODE) != O_WRONLY && (flags_ & O_PATH) == 0;
}
bool open_file::appends() const noexcept { return (flags_ & O_APPEND) != 0; }
bool open_file::is_path() const noexcept { return (flags_ & O_PATH) != 0; }
bool open_file::writes() const noexcept {
    return (flags_ & O_ACCMODE) != O_RDONLY && (flags_ & O_PATH) == 0;
}

std::uint32_t open_file::events() { return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM; }

int open_file::attempt(op& call) {
    const fault_plan& faults = own_machine.world.options.faults;
    if (is_path()) {
        return -EBADF;
    }
    if (node->is_regular() && own_machine.world.fault(faults.io_error, "EIO")) {
        return -EIO;
    }
    switch (call.code()) {
    case opcode::read:
    case opcode::readv:
    case opcode::read_fixed:
        return reads() ? read(call) : -EBADF;
    case opcode::write:
    case opcode::writev:
    case opcode::write_fixed:
        return writes() ? write(call) : -EBADF;
    case opcode::fsync:
        if (node->is_directory()) {
            own_machine.files.sync_names(*node);
            node->sync();
        } else if (node->is_regular()) {
            node->sync();
        } else {
            return -EINVAL;
        }
        return 0;
    case opcode::ftruncate: {
        const auto to = static_cast<std::int64_t>(call.entry.off);
        if (!node->is_regular() || !writes() || to < 0) {
            return -EINVAL;
        }
        return static_cast<std::uint64_t>(to) > largest_file ? -EFBIG
                                                             : node->resize(call.entry.off);
    }
    case opcode::fallocate:
        return allocate(call.entry);
    case opcode::sync_file_range: // guarantees nothing across a crash
    case opcode::fadvise:
        return 0;
    default:
        return -EINVAL;
    }
}

void open_file::note_access() noexcept {
    if ((flags_ & O_NOATIME) == 0) {
        node->note_access();
    }
}

int open_file::read(op& call) {
    if (node->is_directory() && call.size() == 0 && call.chooser == nullptr) {
        return 0;
    }
    if (node->is_directory()) {
        return -EISDIR;
    }
    if (call.chooser != nullptr) {
        if (const int error = call.chooser->choose(call); error != 0) {
            return error;
        }
    }
    if (S_ISCHR(node->mode)) {
        if (::gnu_dev_minor(node->device) == 3) {
            return 0;
        }
        for_each_part(call.data, 0, SIZE_MAX,
                      [](std::byte* to, std::size_t n) { std::memset(to, 0, n); });
        return static_cast<int>(call.size());
    }
    const bool moves = call.entry.off == ~std::uint64_t{0};
    const std::uint64_t at = moves ? position_ : call.entry.off;
    if (static_cast<std::int64_t>(at) < 0 || static_cast<std::int64_t>(at + call.size()) < 0) {
        return -EINVAL;
    }
    std::size_t count = call.size();
    if (count > 1 &&
        own_machine.world.fault(own_machine.world.options.faults.short_transfer, "a short read")) {
        count = static_cast<std::size_t>(
            own_machine.world.random.between(1, static_cast<std::int64_t>(count) - 1));
    }
    const int result = node->read(call.data, 0, at, count);
    if (count > 0) {
        note_access();
    }
    if (moves && result > 0) {
        position_ += static_cast<unsigned>(result);
    }
    return result;
}

int open_file::write(op& call) {
    if (S_ISCHR(node->mode)) {
        return static_cast<int>(call.size());
    }
    const fault_plan& faults = own_machine.world.options.faults;
    const bool moves = call.entry.off == ~std::uint64_t{0};
    const bool at_end = appends() || (call.entry.rw_flags & RWF_APPEND) != 0;
    const std::uint64_t at = at_end ? node->size() : moves ? position_ : call.entry.off;
    if (static_cast<std::int64_t>(at) < 0 || static_cast<std::int64_t>(at + call.size()) < 0) {
        return -EINVAL;
    }
    std::size_t count = call.size();
    if (count == 0) {
        return 0;
    }
    if (at + count > largest_file) {
        return -EFBIG;
    }
    if (own_machine.world.fault(faults.no_space, "ENOSPC")) {
        return -ENOSPC;
    }
    if (count > 1 && own_machine.world.fault(faults.short_transfer, "a short write")) {
        count = static_cast<std::size_t>(
            own_machine.world.random.between(1, static_cast<std::int64_t>(count) - 1));
    }
    const int result = node->write(call.data, 0, at, count);
    if (result > 0 && moves) {
        position_ = at + static_cast<unsigned>(result);
    }
    if (result > 0 && ((flags_ & (O_SYNC | O_DSYNC)) != 0 ||
                       (call.entry.rw_flags & (RWF_SYNC | RWF_DSYNC)) != 0)) {
        node->sync();
    }
    return result;
}

int open_file::allocate(const uring::sqe& entry) {
    const auto mode = static_cast<int>(entry.len);
    const auto offset = static_cast<std::int64_t>(entry.off);
    const auto length = static_cast<std::int64_t>(entry.addr);
    if (offset < 0 || length <= 0) {
        return -EINVAL;
    }
    constexpr int kinds = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
    const bool punches = (mode & FALLOC_FL_PUNCH_HOLE) != 0;
    if ((mode & ~(FALLOC_FL_KEEP_SIZE | kinds)) != 0 || (mode & kinds) == kinds ||
        (punches && (mode & FALLOC_FL_KEEP_SIZE) == 0)) {
        return -EOPNOTSUPP;
    }
    if (!writes()) {
        return -EBADF;
    }
    if (!node->is_regular()) {
        return node->is_directory() ? -EISDIR : -ENODEV;
    }
    const std::uint64_t end =
        static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(length);
    if (end > largest_file) {
        return -EFBIG;
    }
    if (punches) {
        node->zero(entry.off, entry.addr);
        return 0;
    }
    if ((mode & FALLOC_FL_ZERO_RANGE) != 0) {
        node->zero(entry.off, entry.addr);
    }
    return (mode & FALLOC_FL_KEEP_SIZE) == 0 && end > node->size() ? node->resize(end) : 0;
}

int open_file::perform(const uring::sqe& entry) {
    if (entry.opcode == static_cast<std::uint8_t>(uring::call_opcode::getdents64)) {
        return node->is_directory()
                   ? read_names(reinterpret_cast<std::byte*>(entry.addr), entry.len)
                   : -ENOTDIR;
    }
    const auto offset = static_cast<std::int64_t>(entry.off);
    std::int64_t base = 0;
    switch (entry.len) {
    case SEEK_SET:
        break;
    case SEEK_CUR:
        base = static_cast<std::int64_t>(position_);
        break;
    case SEEK_END:
        base = static_cast<std::int64_t>(node->size());
        break;
    case SEEK_DATA:
    case SEEK_HOLE:
        if (entry.off >= node->size()) {
            return -ENXIO;
        }
        base = entry.len == SEEK_DATA ? 0 : static_cast<std::int64_t>(node->size()) - offset;
        break;
    default:
        return -EINVAL;
    }
    std::int64_t position = 0;
    if (__builtin_add_overflow(base, offset, &position) || position < 0) {
        return -EINVAL;
    }
    position_ = static_cast<std::uint64_t>(position);
    if (node->is_directory() && position_ == 0) {
        names_.clear();
    }
    *reinterpret_cast<std::int64_t*>(entry.addr) = static_cast<std::int64_t>(position_);
    return 0;
}

/// getdents64(2). The first call takes a snapshot of the names: later calls do not return entries
/// that were created after it, and skip those that were removed.
int open_file::read_names(std::byte* to, std::size_t room) {
    struct record { // linux_dirent64
        std::uint64_t number;
        std::int64_t next;
        std::uint16_t length;
        std::uint8_t type;
    };
    constexpr std::size_t header = 19;
    if (position_ == 0) {
        names_ = {".", ".."};
        for (const auto& [name, what] : node->entries) {
            names_.push_back(name);
        }
    }
    note_access();
    std::size_t used = 0;
    while (position_ < names_.size()) {
        const std::string& name = names_[position_];
        const inode* what = name == "." ? node.get() : name == ".." ? node->parent : nullptr;
        if (what == nullptr) {
            const auto found = node->entries.find(name);
            if (found == node->entries.end()) {
                ++position_;
                continue;
            }
            what = found->second.get();
        }
        const std::size_t length = (header + name.size() + 1 + 7) / 8 * 8;
        if (used + length > room) {
            return used == 0 ? -EINVAL : static_cast<int>(used);
        }
        ++position_;
        record r{};
        r.number = what->number;
        r.next = static_cast<std::int64_t>(position_);
        r.length = static_cast<std::uint16_t>(length);
        r.type = static_cast<std::uint8_t>(what->mode >> 12);
        std::memset(to + used, 0, length);
        std::memcpy(to + used, &r, header);
        std::memcpy(to + used + header, name.c_str(), name.size() + 1);
        used += length;
    }
    return static_cast<int>(used);
}

} // namespace coil::sim::detail
