#pragma once

#include <coil/uring/epoll_backend.hpp>

#include <memory>

/// Deprecated: include <coil/uring/epoll_backend.hpp>. This header will be removed in the next
/// release.

namespace coil::uring {

[[deprecated("use make_epoll_backend()")]] inline std::unique_ptr<backend>
make_epoll_kernel() { // retired
    return make_epoll_backend();
}

} // namespace coil::uring
