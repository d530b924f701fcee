#include <coil/io/direct.hpp>

namespace coil::detail {

/// A result may be discarded after the run of its context, whose ring has then closed the file.
void table_element::close_slot(int slot) const noexcept {
    if (current_loop != nullptr && current_loop->direct_table() == table_) {
        current_loop->close_direct(slot);
    }
}

} // namespace coil::detail
