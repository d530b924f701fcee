#include <coil/context/detail/perform.hpp>
#include <coil/stream/pipe_end.hpp>
#include <coil/uring/prep.hpp>

#include <system_error>

#include <fcntl.h>

namespace coil {

pipe_end& pipe_end::operator=(pipe_end&& other) noexcept {
    if (this != &other) {
        const pipe_end closing(std::move(*this));
        fd_ = std::exchange(other.fd_, nothing);
    }
    return *this;
}

pipe_end::~pipe_end() {
    if (fd_ >= 0) {
        detail::close_owned_descriptor(fd_, "pipe_end");
    }
}

std::pair<pipe_end, pipe_end> make_pipe() {
    int fds[2];
    if (const int result = detail::perform(uring::prep::pipe(fds, O_CLOEXEC)); result < 0) {
        throw std::system_error(-result, std::generic_category(), "coil: pipe");
    }
    return {pipe_end(fds[0]), pipe_end(fds[1])};
}

} // namespace coil
