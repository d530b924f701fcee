// Alone in this source: coil::minimal replaces it.

#include "backend_choice.hpp"

#include <coil/uring/epoll_backend.hpp>

namespace coil::detail {

std::unique_ptr<uring::backend> make_fallback_backend(const std::string&) {
    return uring::make_epoll_backend();
}

} // namespace coil::detail
