#include <coil/io/direct.hpp>

namespace coil::detail {

/// A result may be dropped after its context's run, whose ring closed it then.
void table_element::close_slot(int slot) const noexcept {
    if (current_loop != nullptr && current_loop->direct_table() == table_) {
        current_loop->close_direct(slot);
    }
}

} // namespace coil::detail
