#include <coil/io/direct.hpp>

namespace coil::detail {

void direct_element::drop() noexcept {
    if (entry_.completed && entry_.result >= 0) {
        required_loop().close_direct(slot());
    }
}

void register_file_element::drop() noexcept {
    if (entry_.completed && entry_.result == 1) {
        required_loop().close_direct(slot_);
    }
}

} // namespace coil::detail
