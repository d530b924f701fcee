#include <coil/io/file.hpp>
#include <coil/process/terminal.hpp>
#include <coil/stream/write_all.hpp>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace coil {

namespace {

/// The path of the side that programs open (the pts); empty on an error, with errno set.
std::string other_side(int fd) {
    char path[128];
    if (::grantpt(fd) != 0 || ::unlockpt(fd) != 0) {
        return {};
    }
    const int error = ::ptsname_r(fd, path, sizeof path);
    if (error != 0) {
        errno = error;
        return {};
    }
    return path;
}

/// Sets the mode when all output has been sent; a signal may interrupt this wait, which then begins
/// again. Returns whether it has succeeded.
bool set_mode(int fd, const ::termios& mode) noexcept {
    int result = 0;
    do {
        result = ::tcsetattr(fd, TCSADRAIN, &mode);
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

} // namespace

struct raw_mode::saved_mode {
    ::termios state{};
};

std::optional<window_size> terminal_size(int fd) noexcept {
    ::winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) != 0) {
        return std::nullopt;
    }
    return window_size{size.ws_col, size.ws_row};
}

raw_mode::raw_mode(int fd) : fd_(fd), before_(std::make_unique<saved_mode>()) {
    ::termios raw{};
    if (::tcgetattr(fd, &before_->state) == 0) {
        raw = before_->state;
        ::cfmakeraw(&raw);
        if (set_mode(fd, raw)) {
            return;
        }
    }
    throw std::system_error(errno, std::generic_category(), "coil: raw mode of a terminal");
}

raw_mode::raw_mode(raw_mode&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), before_(std::move(other.before_)) {}

raw_mode& raw_mode::operator=(raw_mode&& other) noexcept {
    if (this != &other) {
        restore();
        fd_ = std::exchange(other.fd_, -1);
        before_ = std::move(other.before_);
    }
    return *this;
}

raw_mode::~raw_mode() { restore(); }

io_result raw_mode::restore() noexcept {
    const std::unique_ptr<saved_mode> before = std::move(before_);
    if (before == nullptr) {
        return io_result(0);
    }
    return io_result(set_mode(fd_, before->state) ? 0 : -errno);
}

/// When the last program has closed the terminal, read(2) fails with EIO.
task<io_result> pseudoterminal::read_some(mutable_buffer to) {
    const int n = co_await end_.read_some(to);
    co_return io_result(n == -EIO ? 0 : n);
}

task<io_result> pseudoterminal::shutdown_write() {
    ::termios state{}; // of the other side
    if (::tcgetattr(end_.native_handle(), &state) != 0) {
        co_return io_result(-errno);
    }
    const ::cc_t end_of_input = state.c_cc[VEOF];
    if ((state.c_lflag & ICANON) == 0 || end_of_input == _POSIX_VDISABLE) {
        co_return io_result(-EOPNOTSUPP);
    }
    const int n = co_await write_all(end_, {&end_of_input, 1});
    co_return io_result(n < 0 ? n : 0);
}

io_result pseudoterminal::resize(const window_size& size) noexcept {
    const ::winsize request{
        .ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
    return io_result(::ioctl(end_.native_handle(), TIOCSWINSZ, &request) == 0 ? 0 : -errno);
}

std::pair<pseudoterminal, std::string> detail::open_pseudoterminal(const window_size& size) {
    pseudoterminal terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    std::string path = terminal ? other_side(terminal.native_handle()) : std::string();
    if (path.empty() || terminal.resize(size) < 0) {
        throw std::system_error(errno, std::generic_category(), "coil: pseudoterminal");
    }
    return {std::move(terminal), std::move(path)};
}

} // namespace coil
