#include <coil/io/registered_buffers.hpp>

#include <cerrno>
#include <initializer_list>
#include <span>
#include <system_error>
#include <vector>

#include <sys/uio.h>

namespace coil::io {

registered_buffers::registered_buffers(std::span<const mutable_buffer> memory)
    : memory_(memory.begin(), memory.end()), loop_(&detail::required_loop()) {
    std::vector<::iovec> parts;
    parts.reserve(memory_.size());
    for (const mutable_buffer& part : memory_) {
        parts.push_back({part.data(), part.size()});
    }
    const int first = loop_->add_buffers(parts);
    if (first < 0) {
        throw std::system_error(
            -first, std::generic_category(),
            first == -ENOMEM
                ? "coil: cannot register buffers: RLIMIT_MEMLOCK (ulimit -l) may be too low"
                : "coil: cannot register buffers");
    }
    first_ = static_cast<unsigned>(first);
    loop_->attach(*this);
}

registered_buffers::registered_buffers(std::initializer_list<mutable_buffer> memory)
    : registered_buffers(std::span<const mutable_buffer>(memory.begin(), memory.size())) {}

registered_buffers::~registered_buffers() {
    if (loop_ != nullptr) {
        loop_->detach(*this);
        loop_->remove_buffers(first_, static_cast<unsigned>(memory_.size()));
    }
}

} // namespace coil::io
