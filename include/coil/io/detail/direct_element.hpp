#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/prep.hpp>

#include <cstdint>

namespace coil::detail {

/// A call that stores a file in the table of direct descriptors. The first such call creates the
/// table.
class table_element : public io_element {
public:
    static constexpr bool needs_result = true;

    using io_element::io_element;

    sqe_slot& arm() noexcept {
        event_loop& loop = required_loop();
        table_error_ = loop.use_direct_descriptors();
        table_ = loop.direct_table();
        return entry_;
    }

protected:
    /// The result of a failed call: the error of creating the table, or that of the call itself.
    [[nodiscard]] io::direct_descriptor failure() const noexcept {
        const bool no_table = table_error_ < 0 && entry_.result != -ECANCELED;
        return io::direct_descriptor(no_table ? table_error_ : entry_.result);
    }
    [[nodiscard]] io::direct_descriptor descriptor_of(int slot) const noexcept {
        return {slot, table_};
    }
    /// Does nothing if the table, and with it the file, no longer exists.
    void close_slot(int slot) const noexcept;

private:
    int table_error_ = 0;
    std::uint32_t table_ = 0;
};

/// A call whose result is a direct descriptor. A result that is not received is closed (guarantee
/// G4), except in the middle of a chain when the program has chosen the slot: later calls use it.
class direct_element : public table_element {
public:
    direct_element(const prepared_sqe& request, std::uint32_t slot) noexcept
        : table_element(request), slot_(slot) {}

    [[nodiscard]] io::direct_descriptor result() const noexcept {
        return entry_.result < 0 ? failure() : descriptor_of(slot());
    }
    void drop() const noexcept {
        if (entry_.is_completed() && entry_.result >= 0) {
            close_slot(slot());
        }
    }
    void discard_mid_chain() const noexcept {
        if (slot_ == uring::file_index_alloc) {
            drop();
        }
    }

private:
    [[nodiscard]] int slot() const noexcept {
        return slot_ == uring::file_index_alloc ? entry_.result : static_cast<int>(slot_);
    }

    std::uint32_t slot_;
};

/// Registers the file of a plain descriptor in the table.
class register_file_element : public table_element {
public:
    explicit register_file_element(int fd) noexcept
        : table_element(uring::prep::files_update(nullptr, 1, uring::file_index_alloc)), slot_(fd) {
    }

    sqe_slot& arm() noexcept {
        entry_.request.addr = reinterpret_cast<std::uintptr_t>(&slot_);
        return table_element::arm();
    }
    [[nodiscard]] io::direct_descriptor result() const noexcept {
        return entry_.result != 1 ? failure() : descriptor_of(slot_);
    }
    void drop() const noexcept {
        if (entry_.is_completed() && entry_.result == 1) {
            close_slot(slot_);
        }
    }

private:
    int slot_; // the plain descriptor until the kernel replaces it by the slot
};

} // namespace coil::detail
