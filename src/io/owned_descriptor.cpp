#include <coil/context/detail/perform.hpp>
#include <coil/io/owned_descriptor.hpp>

namespace coil::io {

owned_descriptor::~owned_descriptor() {
    if (fd_ >= 0) {
        coil::detail::close_owned_descriptor(fd_, "io::owned_descriptor");
    }
}

} // namespace coil::io
