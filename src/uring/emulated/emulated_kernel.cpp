#include "../system_calls.hpp"
#include "emulation.hpp"

#include <coil/uring/emulated_kernel.hpp>

#include <cerrno>

namespace coil::uring {

emulated_kernel::emulated_kernel() : core_(std::make_unique<detail::emulation>(*this)) {}

emulated_kernel::~emulated_kernel() = default;

void emulated_kernel::close_world() noexcept { core_.reset(); }

int emulated_kernel::setup(unsigned entries, params& p, mapping& m) noexcept {
    return core_->setup(entries, p, m);
}

int emulated_kernel::enter(unsigned to_submit, unsigned min_complete, unsigned flags,
                           const void* arg, std::size_t arg_size) noexcept {
    return core_->enter(to_submit, min_complete, flags, arg, arg_size);
}

int emulated_kernel::control(register_op op, void* arg, unsigned count) noexcept {
    return core_->control(op, arg, count);
}

std::chrono::steady_clock::time_point emulated_kernel::now() noexcept {
    return std::chrono::steady_clock::time_point{std::chrono::nanoseconds{now_ns()}};
}

std::unique_ptr<emulated_request> emulated_kernel::make_request() {
    return std::make_unique<request>();
}

int emulated_kernel::control_more(register_op, void*, unsigned) noexcept { return -EINVAL; }

void emulated_kernel::complete(request& r, int result, std::uint32_t flags) noexcept {
    core_->complete(r, result, flags);
}

bool emulated_kernel::part(request& r, int result, std::uint32_t flags) noexcept {
    return core_->part(r, result, flags);
}

void emulated_kernel::deliver(std::uint64_t user_data, int result, std::uint32_t flags) noexcept {
    core_->deliver(user_data, result, flags);
}

int emulated_kernel::select(request& r, std::size_t most) noexcept {
    return core_->select(r, most);
}

void emulated_kernel::unselect(request& r) noexcept { core_->unselect(r); }

void emulated_kernel::hold_selected(request& r) noexcept { core_->hold_selected(r); }

void emulated_kernel::keep(request& r) noexcept { detail::emulation::keep(r); }

void emulated_kernel::finish_message(request& r, int payload) noexcept {
    core_->finish_message(r, payload);
}

std::int64_t emulated_kernel::next_timer_ns() const noexcept { return core_->next_timer(); }

unsigned emulated_kernel::pending_count() const noexcept { return core_->pending(); }

int emulated_kernel::add_file(int file, std::uint32_t file_index) noexcept {
    return core_->add_file(file, file_index);
}

emulated_request* emulated_kernel::first_pending() const noexcept {
    return detail::emulation::in_world(core_->first());
}

emulated_request* emulated_kernel::next_pending(request& r) noexcept {
    return detail::emulation::in_world(detail::emulation::after(r));
}

unsigned emulated_kernel::owned_by(const request& r, request::owned* areas) noexcept {
    return detail::emulation::owned_by(r, areas);
}

unsigned emulated_kernel::provided_buffers(request::owned* areas, unsigned room) const noexcept {
    unsigned n = 0;
    core_->groups().for_each_buffer([&](const buf& b) {
        if (n < room)
            areas[n] = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(b.addr)), b.len, true};
        ++n;
    });
    return n;
}

} // namespace coil::uring
