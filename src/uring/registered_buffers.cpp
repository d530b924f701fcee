#include <coil/uring/registered_buffers.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>

namespace coil::uring {
namespace {

std::string_view why_no_buffers(int error, unsigned slots) noexcept {
    if (error != EINVAL) {
        return {};
    }
    return slots == 0 || slots > registered_buffers::max_slots
               ? "the number must be from 1 to 16384"
               : "registered buffer tables need Linux 5.13";
}

} // namespace

registered_buffers::registered_buffers(ring& r, unsigned slots) {
    if (const int error = setup(r, slots); error != 0) {
        detail::registration::refused("registered_buffers", slots, -error,
                                      why_no_buffers(-error, slots));
    }
}

int registered_buffers::setup(ring& r, unsigned slots) noexcept {
    if (table_) {
        return -EBUSY;
    }
    if (slots == 0 || slots > max_slots) {
        return -EINVAL;
    }
    backend& k = r.get_backend();
    rsrc_register arg{};
    arg.nr = slots;
    arg.flags = rsrc_flag::sparse;
    int error = k.do_register(register_op::buffers2, &arg, sizeof arg);
    if (error == -EINVAL) {
        // Before Linux 5.19 a sparse table needs an array of empty slots.
        const std::unique_ptr<::iovec[]> empty{new (std::nothrow)::iovec[slots]()};
        if (empty == nullptr) {
            return -ENOMEM;
        }
        arg.flags = 0;
        arg.data = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(empty.get()));
        error = k.do_register(register_op::buffers2, &arg, sizeof arg);
    }
    if (error < 0) {
        return error;
    }
    table_ = detail::registration{k, register_op::unregister_buffers, slots};
    return 0;
}

int registered_buffers::update(unsigned slot, std::span<const ::iovec> buffers) noexcept {
    if (const int error = table_.check(slot, buffers.size()); error != 0 || buffers.empty()) {
        return error;
    }
    rsrc_update2 arg{};
    arg.offset = slot;
    arg.data = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(buffers.data()));
    arg.nr = static_cast<std::uint32_t>(buffers.size());
    return table_.do_register(register_op::buffers_update, &arg, sizeof arg);
}

int registered_buffers::clear(unsigned slot, unsigned count) noexcept {
    constexpr std::array<::iovec, 32> empty{};
    return table_.clear(*this, empty, slot, count);
}

} // namespace coil::uring
