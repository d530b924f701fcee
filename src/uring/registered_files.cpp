#include <coil/uring/registered_files.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <system_error>

#include <sys/resource.h>

namespace coil::uring {
namespace {

std::string explain(int error, unsigned slots) {
    const std::string what = "coil::uring::registered_files: a table of " + std::to_string(slots) +
                             " slots was refused: ";
    ::rlimit limit{};
    switch (error) {
    case EINVAL:
        return what + "it needs at least one";
    case EMFILE:
        if (slots > registered_files::max_slots || ::getrlimit(RLIMIT_NOFILE, &limit) != 0)
            return what + "it can have 1048576 at most, and no more than RLIMIT_NOFILE (ulimit -n)";
        return what + "RLIMIT_NOFILE is " + std::to_string(limit.rlim_cur) +
               " (ulimit -n) and limits it";
    case EBUSY:
        return what + "a ring can have one at a time, and there is one";
    case ENOMEM:
        return what + "there is no memory for it";
    case EEXIST:
        return what + "the ring belongs to another thread";
    default:
        return what + "io_uring_register failed";
    }
}

} // namespace

registered_files::registered_files(ring& r, unsigned slots) {
    if (const int error = setup(r, slots); error != 0)
        throw std::system_error(-error, std::generic_category(), explain(-error, slots));
}

int registered_files::setup(ring& r, unsigned slots) noexcept {
    if (table_)
        return -EBUSY;
    if (slots == 0)
        return -EINVAL;
    if (slots > max_slots)
        return -EMFILE;
    kernel& k = r.get_kernel();
    rsrc_register arg{};
    arg.nr = slots;
    arg.flags = rsrc_flag::sparse;
    int error = k.control(register_op::files2, &arg, sizeof arg);
    if (error == -EINVAL) {
        // Before Linux 5.19 the empty slots must be spelled out.
        const std::unique_ptr<int[]> empty{new (std::nothrow) int[slots]};
        if (empty == nullptr)
            return -ENOMEM;
        std::fill_n(empty.get(), slots, -1);
        error = k.control(register_op::files, empty.get(), slots);
    }
    if (error < 0)
        return error;
    table_ = detail::registration{k, register_op::unregister_files, slots};
    return 0;
}

int registered_files::update(unsigned slot, std::span<const int> fds) noexcept {
    if (!table_)
        return -EBADF;
    if (slot > size() || fds.size() > size() - slot)
        return -EINVAL;
    if (fds.empty())
        return 0;
    files_update arg{};
    arg.offset = slot;
    arg.fds = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(fds.data()));
    return table_.control(register_op::files_update, &arg, static_cast<unsigned>(fds.size()));
}

int registered_files::clear(unsigned slot, unsigned count) noexcept {
    if (!table_)
        return -EBADF;
    if (slot > size() || count > size() - slot)
        return -EINVAL;
    std::array<int, 64> empty{};
    empty.fill(-1);
    while (count != 0) {
        const unsigned most = std::min<unsigned>(count, empty.size());
        const int n = update(slot, {empty.data(), most});
        if (n <= 0)
            return n < 0 ? n : -EIO;
        slot += static_cast<unsigned>(n);
        count -= static_cast<unsigned>(n);
    }
    return 0;
}

int registered_files::alloc_range(unsigned first, unsigned count) noexcept {
    file_index_range range{};
    range.off = first;
    range.len = count;
    const int error = table_.control(register_op::file_alloc_range, &range, 0);
    return error < 0 ? error : 0;
}

} // namespace coil::uring
