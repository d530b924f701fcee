#include <coil/io/direct.hpp>

namespace coil::detail {

/// The result may be discarded after its context has ended. The ring has then closed the file, and
/// the slot number may belong to the table of another ring.
void table_element::close_slot(int slot) const noexcept {
    if (current_loop != nullptr && current_loop->direct_table() == table_) {
        current_loop->close_direct(slot);
    }
}

} // namespace coil::detail
