#include "../system_calls.hpp"
#include "emulation.hpp"

#include <coil/uring/emulated_backend.hpp>

#include <cerrno>
#include <span>

namespace coil::uring {

std::span<::iovec> emulated_request::data() noexcept { return {parts_, part_count_}; }

std::span<const ::iovec> emulated_request::data() const noexcept { return {parts_, part_count_}; }

emulated_backend::emulated_backend() : core_(new detail::emulation(*this)) {}

emulated_backend::~emulated_backend() = default;

void emulated_backend::close_world() noexcept { core_.reset(); }

int emulated_backend::setup(unsigned entries, params& p, mapping& m) noexcept {
    return core_->setup(entries, p, m);
}

int emulated_backend::enter(unsigned to_submit, unsigned min_complete, unsigned flags,
                            const void* arg, std::size_t arg_size) noexcept {
    return core_->enter(to_submit, min_complete, flags, arg, arg_size);
}

int emulated_backend::do_register(register_op op, void* arg, unsigned count) noexcept {
    return core_->do_register(op, arg, count);
}

std::chrono::steady_clock::time_point emulated_backend::now() noexcept {
    return std::chrono::steady_clock::time_point{std::chrono::nanoseconds{now_ns()}};
}

std::unique_ptr<emulated_request> emulated_backend::make_request() {
    return std::make_unique<request>();
}

int emulated_backend::control_more(register_op, void*, unsigned) noexcept { return -EINVAL; }

void emulated_backend::complete(request& r, int result, std::uint32_t flags) noexcept {
    core_->complete(r, result, flags);
}

bool emulated_backend::part(request& r, int result, std::uint32_t flags) noexcept {
    return core_->part(r, result, flags);
}

void emulated_backend::deliver(std::uint64_t user_data, int result, std::uint32_t flags) noexcept {
    core_->deliver(user_data, result, flags);
}

int emulated_backend::select(request& r, std::size_t most) noexcept {
    return core_->select(r, most);
}

void emulated_backend::unselect(request& r) noexcept { core_->unselect(r); }

void emulated_backend::hold_selected(request& r) noexcept { core_->hold_selected(r); }

void emulated_backend::copy_args(request& r) noexcept { detail::emulation::copy_args(r); }

void emulated_backend::finish_message(request& r, int payload) noexcept {
    core_->finish_message(r, payload);
}

std::int64_t emulated_backend::next_timer_ns() const noexcept { return core_->next_timer(); }

unsigned emulated_backend::pending_count() const noexcept { return core_->pending(); }

int emulated_backend::add_file(int file, std::uint32_t file_index) noexcept {
    return core_->add_file(file, file_index);
}

emulated_request* emulated_backend::first_pending() const noexcept {
    return detail::emulation::in_world(core_->first());
}

emulated_request* emulated_backend::next_pending(request& r) noexcept {
    return detail::emulation::in_world(detail::emulation::after(r));
}

unsigned emulated_backend::user_memory_of(const request& r, request::owned* areas) noexcept {
    return detail::emulation::user_memory_of(r, areas);
}

unsigned emulated_backend::provided_buffers(request::owned* areas, unsigned room) const noexcept {
    unsigned n = 0;
    core_->groups().for_each_buffer([&](const buf& b) {
        if (n < room) {
            areas[n] = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(b.addr)), b.len, true};
        }
        ++n;
    });
    return n;
}

} // namespace coil::uring
