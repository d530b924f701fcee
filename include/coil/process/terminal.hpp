#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/pipe_end.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <unistd.h>

namespace coil {

/// The size of a terminal's window, in characters.
struct window_size {
    std::uint16_t columns = 80;
    std::uint16_t rows = 24;

    friend constexpr bool operator==(const window_size&, const window_size&) noexcept = default;
};

/// The size of a terminal's window; nullopt if the descriptor is not a terminal. SIGWINCH reports
/// changes (signal_set). Does not block.
[[nodiscard]] std::optional<window_size> terminal_size(int fd = STDOUT_FILENO) noexcept;

/// Puts a terminal or a serial port into raw mode while the object exists: every byte is read at
/// once, unchanged and without echo, and written unchanged; Ctrl-C is a byte. See cfmakeraw(3).
///
///     raw_mode raw;                 // of standard input
///     co_await keys.read_some(buf);
///
/// The destructor restores the previous mode, also when an exception ends the scope. A program that
/// is killed leaves the terminal in raw mode. Each change of the mode blocks until the terminal has
/// transmitted its pending output (tcsetattr(3), TCSADRAIN).
///
/// Threading: any thread; the mode belongs to the terminal, so use one object at a time. The
/// descriptor must stay open.
class raw_mode {
public:
    /// Throws std::system_error: std::errc::inappropriate_io_control_operation if it is not a
    /// terminal.
    explicit raw_mode(int fd = STDIN_FILENO);
    raw_mode(raw_mode&& other) noexcept;
    raw_mode& operator=(raw_mode&& other) noexcept;
    ~raw_mode();

    /// Restores the previous mode now: 0 or -errno. Output that was written before is still
    /// written in raw mode.
    io_result restore() noexcept;

private:
    struct saved_mode; // ::termios
    int fd_ = -1;
    std::unique_ptr<saved_mode> before_;
};

/// The controlling side of a pseudoterminal (pty(7)), a byte_stream: reading returns the output of
/// the programs on the terminal, and they read what is written as keyboard input. Move-only; the
/// destructor closes it, which hangs up (SIGHUP). See process::terminal().
///
/// The kernel's line discipline is between the two sides. By default it echoes the input, ends
/// lines of output with "\r\n", and turns the byte 3 (Ctrl-C) into SIGINT.
///
/// Threading: on one context at a time; one read and one write may be in flight together.
/// Cancellation: as for io_awaitable.
class pseudoterminal {
public:
    /// Owns nothing; calls return -EBADF.
    pseudoterminal() noexcept = default;
    /// Takes ownership of the descriptor of a controlling side, as of posix_openpt(3).
    explicit pseudoterminal(int fd) noexcept : end_(fd) {}

    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(end_); }
    [[nodiscard]] int native_handle() const noexcept { return end_.native_handle(); }
    /// Releases ownership.
    [[nodiscard]] int release() noexcept { return end_.release(); }

    /// byte_source: 0 when every program has closed the terminal.
    task<io_result> read_some(mutable_buffer to COIL_LIFETIMEBOUND);
    /// byte_sink. A terminal that is not in raw mode accepts at most 4095 bytes of a line, and
    /// discards the rest.
    operation write_some(const_buffer from COIL_LIFETIMEBOUND) noexcept {
        return end_.write_some(from);
    }
    /// Writes the end-of-file character (Ctrl-D): 0 or -errno. If it follows a complete line, the
    /// programs see the end of their input. -EOPNOTSUPP in raw mode, and if no such character is
    /// set (`stty eof undef`). Writing remains possible.
    task<io_result> shutdown_write();

    /// Resizes the window; the programs on the terminal get SIGWINCH: 0 or -errno, at once.
    io_result resize(const window_size& size) noexcept;

private:
    pipe_end end_;
};

namespace detail {

/// Opens a pseudoterminal; returns its controlling side and the path of the other side. Throws.
std::pair<pseudoterminal, std::string> open_pseudoterminal(const window_size& size);

} // namespace detail

} // namespace coil
