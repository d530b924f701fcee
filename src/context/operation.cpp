#include <coil/context/operation.hpp>
#include <coil/context/perform.hpp>

namespace coil::detail {

void descriptor_element::drop() noexcept {
    if (entry_.completed && entry_.result >= 0) {
        close_descriptor(entry_.result);
    }
}

} // namespace coil::detail
