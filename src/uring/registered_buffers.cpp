#include <coil/uring/registered_buffers.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <system_error>

namespace coil::uring {
namespace {

std::string explain(int error, unsigned slots) {
    const std::string what = "coil::uring::registered_buffers: a table of " +
                             std::to_string(slots) + " slots was refused: ";
    switch (error) {
    case EINVAL:
        if (slots == 0 || slots > registered_buffers::max_slots)
            return what + "it can have 1 to 16384";
        return what + "tables that can be changed need Linux 5.13";
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

registered_buffers::registered_buffers(ring& r, unsigned slots) {
    if (const int error = setup(r, slots); error != 0)
        throw std::system_error(-error, std::generic_category(), explain(-error, slots));
}

int registered_buffers::setup(ring& r, unsigned slots) noexcept {
    if (table_)
        return -EBUSY;
    if (slots == 0 || slots > max_slots)
        return -EINVAL;
    kernel& k = r.get_kernel();
    rsrc_register arg{};
    arg.nr = slots;
    arg.flags = rsrc_flag::sparse;
    int error = k.control(register_op::buffers2, &arg, sizeof arg);
    if (error == -EINVAL) {
        // Before Linux 5.19 the empty slots must be spelled out.
        const std::unique_ptr<::iovec[]> empty{new (std::nothrow)::iovec[slots]()};
        if (empty == nullptr)
            return -ENOMEM;
        arg.flags = 0;
        arg.data = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(empty.get()));
        error = k.control(register_op::buffers2, &arg, sizeof arg);
    }
    if (error < 0)
        return error;
    table_ = detail::registration{k, register_op::unregister_buffers, slots};
    return 0;
}

int registered_buffers::update(unsigned slot, std::span<const ::iovec> buffers) noexcept {
    if (!table_)
        return -EBADF;
    if (slot > size() || buffers.size() > size() - slot)
        return -EINVAL;
    if (buffers.empty())
        return 0;
    rsrc_update2 arg{};
    arg.offset = slot;
    arg.data = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(buffers.data()));
    arg.nr = static_cast<std::uint32_t>(buffers.size());
    return table_.control(register_op::buffers_update, &arg, sizeof arg);
}

int registered_buffers::clear(unsigned slot, unsigned count) noexcept {
    if (!table_)
        return -EBADF;
    if (slot > size() || count > size() - slot)
        return -EINVAL;
    constexpr std::array<::iovec, 32> empty{};
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

} // namespace coil::uring
