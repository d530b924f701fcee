#pragma once

#include <coil/core/config.hpp>

#include <cstddef>
#include <filesystem>
#include <utility>

namespace coil {

namespace detail {
class spawn_plan;
}

/// What a standard stream of a child process is connected to.
class redirect {
public:
    /// A pipe; its other end is process::stdin(), stdout() or stderr().
    static redirect pipe() { return redirect(kind::pipe); }
    /// The parent's stream.
    static redirect inherit() { return redirect(kind::inherit); }
    /// /dev/null.
    static redirect null() { return redirect(kind::null); }
    /// A file. For output, it is created or truncated. A relative path is relative to the parent's
    /// directory, whatever process_options::directory is.
    static redirect file(std::filesystem::path path) {
        redirect to(kind::file);
        to.path_ = std::move(path);
        return to;
    }
    /// A descriptor of the caller, which must stay open until spawn() has returned.
    static redirect descriptor(int fd) {
        redirect to(kind::descriptor);
        to.fd_ = fd;
        return to;
    }
    /// A pseudoterminal, which all streams with this target share; its other side is
    /// process::terminal(). It is the controlling terminal of the child, which starts a new
    /// session.
    static redirect terminal() { return redirect(kind::terminal); }
    /// For standard error: the same as standard output.
    static redirect to_stdout() { return redirect(kind::to_stdout); }

    /// Produces a readable compiler error.
    redirect(std::nullptr_t) // NOLINT(*-explicit-*)
        COIL_DELETE("write redirect::null(), or inherit(), pipe(), file(path), descriptor(fd), "
                    "terminal()");

private:
    friend class detail::spawn_plan;
    enum class kind : unsigned char { pipe, inherit, null, file, descriptor, terminal, to_stdout };
    explicit redirect(kind what) noexcept : kind_(what) {}

    kind kind_;
    int fd_ = -1;
    std::filesystem::path path_;
};

} // namespace coil
