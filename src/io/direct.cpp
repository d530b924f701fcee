#include <coil/io/direct.hpp>

namespace coil::detail {

namespace {

/// A result may be dropped after its context's run, whose ring closed it then.
void close_if_there(std::uint64_t table, int slot) noexcept {
    if (current_loop != nullptr && current_loop->direct_table() == table) {
        current_loop->close_direct(slot);
    }
}

} // namespace

void direct_element::drop() noexcept {
    if (entry_.completed && entry_.result >= 0) {
        close_if_there(table_, slot());
    }
}

void register_file_element::drop() noexcept {
    if (entry_.completed && entry_.result == 1) {
        close_if_there(table_, slot_);
    }
}

} // namespace coil::detail
