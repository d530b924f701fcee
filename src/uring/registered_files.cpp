#include <coil/uring/registered_files.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include <sys/resource.h>

namespace coil::uring {
namespace {

std::string why_no_files(int error, unsigned slots) {
    ::rlimit limit{};
    switch (error) {
    case EINVAL:
        return "at least one slot is required";
    case EMFILE:
        if (slots > registered_files::max_slots || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
            return "the limit is the smaller of 1048576 and RLIMIT_NOFILE (ulimit -n)";
        }
        return "the limit RLIMIT_NOFILE is " + std::to_string(limit.rlim_cur) + " (ulimit -n)";
    default:
        return {};
    }
}

} // namespace

registered_files::registered_files(ring& r, unsigned slots) {
    if (const int error = setup(r, slots); error != 0) {
        detail::registration::refused("registered_files", slots, -error,
                                      why_no_files(-error, slots));
    }
}

int registered_files::setup(ring& r, unsigned slots) noexcept {
    if (table_) {
        return -EBUSY;
    }
    if (slots == 0) {
        return -EINVAL;
    }
    if (slots > max_slots) {
        return -EMFILE;
    }
    backend& k = r.get_backend();
    rsrc_register arg{};
    arg.nr = slots;
    arg.flags = rsrc_flag::sparse;
    int error = k.do_register(register_op::files2, &arg, sizeof arg);
    if (error == -EINVAL) {
        // Before Linux 5.19 a sparse table needs an array of empty slots.
        const std::unique_ptr<int[]> empty{new (std::nothrow) int[slots]};
        if (empty == nullptr) {
            return -ENOMEM;
        }
        std::fill_n(empty.get(), slots, -1);
        error = k.do_register(register_op::files, empty.get(), slots);
    }
    if (error < 0) {
        return error;
    }
    table_ = detail::registration{k, register_op::unregister_files, slots};
    return 0;
}

int registered_files::update(unsigned slot, std::span<const int> fds) noexcept {
    if (const int error = table_.check(slot, fds.size()); error != 0 || fds.empty()) {
        return error;
    }
    files_update arg{};
    arg.offset = slot;
    arg.fds = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(fds.data()));
    return table_.do_register(register_op::files_update, &arg, static_cast<unsigned>(fds.size()));
}

int registered_files::clear(unsigned slot, unsigned count) noexcept {
    std::array<int, 64> empty{};
    empty.fill(-1);
    return table_.clear(*this, empty, slot, count);
}

int registered_files::alloc_range(unsigned first, unsigned count) noexcept {
    file_index_range range{};
    range.off = first;
    range.len = count;
    const int error = table_.do_register(register_op::file_alloc_range, &range, 0);
    return error < 0 ? error : 0;
}

} // namespace coil::uring
