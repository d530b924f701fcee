#include <coil/context/operation.hpp>

#include <unistd.h>

namespace coil::detail {

void descriptor_element::drop() noexcept {
    if (entry_.completed && entry_.result >= 0) {
        ::close(entry_.result);
    }
}

} // namespace coil::detail
