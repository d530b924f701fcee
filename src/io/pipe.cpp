#include <coil/io/pipe.hpp>

#include <unistd.h>

namespace coil::detail {

void pipe_element::drop() noexcept {
    if (entry_.completed && entry_.result == 0) {
        ::close(made_[0]);
        ::close(made_[1]);
    }
}

} // namespace coil::detail
