#include <coil/context/detail/io_element.hpp>
#include <coil/context/detail/perform.hpp>

namespace coil::detail {

void descriptor_element::drop() noexcept {
    if (entry_.is_completed() && entry_.result >= 0) {
        close_descriptor(entry_.result);
    }
}

} // namespace coil::detail
