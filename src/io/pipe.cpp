#include <coil/context/detail/perform.hpp>
#include <coil/io/pipe.hpp>

namespace coil::detail {

void pipe_element::drop() noexcept {
    if (entry_.is_completed() && entry_.result == 0) {
        close_descriptor(made_[0]);
        close_descriptor(made_[1]);
    }
}

} // namespace coil::detail
