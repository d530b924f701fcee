#include "spawn_plan.hpp"

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace coil::detail {

namespace {

void check(int error, const std::string& what) {
    if (error != 0) {
        throw std::system_error(error, std::generic_category(), "coil: " + what);
    }
}

/// Returns a descriptor above those of the standard streams, or throws. The child's standard
/// streams are set one after the other, and none may overwrite a descriptor that is still needed.
io::owned_descriptor above_standard_streams(io::owned_descriptor fd, const std::string& what) {
    check(fd ? 0 : errno, what);
    if (fd.native_handle() > STDERR_FILENO) {
        return fd;
    }
    io::owned_descriptor higher(::fcntl(fd.native_handle(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    check(higher ? 0 : errno, what);
    return higher;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (const std::string& text : texts) {
        if (text.find('\0') != std::string::npos) {
            check(EINVAL, "an argument or environment variable contains a null character");
        }
        all.push_back(const_cast<char*>(text.c_str()));
    }
    all.push_back(nullptr);
    return all;
}

} // namespace

spawn_plan::spawn_plan(const process_options& options) : options_(options) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    try {
        ::sigset_t signals;
        ::sigemptyset(&signals);
        check(::posix_spawnattr_setsigmask(&attributes_, &signals), "spawn");
        ::sigfillset(&signals);
        check(::posix_spawnattr_setsigdefault(&attributes_, &signals), "spawn");
        int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
        if (on_terminal(options)) {
            flags |= POSIX_SPAWN_SETSID; // which creates a process group, too
        } else if (options.new_process_group) {
            flags |= POSIX_SPAWN_SETPGROUP;
        }
        check(::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)), "spawn");
        connect(STDIN_FILENO, options.standard_input);
        connect(STDOUT_FILENO, options.standard_output);
        connect(STDERR_FILENO, options.standard_error);
        if (!options.directory.empty()) { // redirected files are relative to the parent's directory
            check(::posix_spawn_file_actions_addchdir_np(&actions_, options.directory.c_str()),
                  "spawn");
        }
    } catch (...) {
        ::posix_spawnattr_destroy(&attributes_);
        ::posix_spawn_file_actions_destroy(&actions_);
        throw;
    }
}

bool spawn_plan::on_terminal(const process_options& options) noexcept {
    return options.standard_input.kind_ == redirect::kind::terminal ||
           options.standard_output.kind_ == redirect::kind::terminal ||
           options.standard_error.kind_ == redirect::kind::terminal;
}

spawn_plan::~spawn_plan() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
}

void spawn_plan::give(int target, io::owned_descriptor source) {
    check(::posix_spawn_file_actions_adddup2(&actions_, source.native_handle(), target), "spawn");
    sources_.push_back(std::move(source));
}

void spawn_plan::connect_pipe(int target) {
    int fds[2];
    check(::pipe2(fds, O_CLOEXEC) == 0 ? 0 : errno, "pipe for a process");
    const bool is_input = target == STDIN_FILENO;
    ends[target] = pipe_end(fds[is_input ? 1 : 0]);
    io::owned_descriptor childs(fds[is_input ? 0 : 1]);
    give(target, above_standard_streams(std::move(childs), "pipe for a process"));
}

/// Opening a terminal makes it the controlling terminal of a new session, so the child opens it.
void spawn_plan::connect_terminal(int target) {
    if (on_terminal_ >= 0) {
        check(::posix_spawn_file_actions_adddup2(&actions_, on_terminal_, target), "spawn");
        return;
    }
    auto [ours, path] = open_pseudoterminal(options_.window);
    terminal = std::move(ours);
    on_terminal_ = target;
    check(::posix_spawn_file_actions_addopen(&actions_, target, path.c_str(), O_RDWR, 0), "spawn");
}

void spawn_plan::connect(int target, const redirect& what) {
    switch (what.kind_) {
    case redirect::kind::pipe:
        connect_pipe(target);
        break;
    case redirect::kind::inherit:
        break;
    case redirect::kind::null:
        give(target,
             above_standard_streams(io::owned_descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC)),
                                    "cannot open /dev/null"));
        break;
    case redirect::kind::file: {
        const int flags = target == STDIN_FILENO ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
        give(target, above_standard_streams(
                         io::owned_descriptor(::open(what.path_.c_str(), flags | O_CLOEXEC, 0666)),
                         "cannot open \"" + what.path_.string() + "\" for a process"));
        break;
    }
    case redirect::kind::descriptor:
        give(target, above_standard_streams(io::owned_descriptor(::fcntl(what.fd_, F_DUPFD_CLOEXEC,
                                                                         STDERR_FILENO + 1)),
                                            "descriptor for a process"));
        break;
    case redirect::kind::terminal:
        connect_terminal(target);
        break;
    case redirect::kind::to_stdout:
        check(::posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, target), "spawn");
        break;
    }
}

::pid_t spawn_plan::spawn(const std::vector<std::string>& argv) {
    check(argv.empty() ? EINVAL : 0, "a process needs at least a program name");
    const std::vector<char*> arguments = pointers(argv);
    std::vector<char*> environment;
    if (options_.environment) {
        environment = pointers(*options_.environment);
    }
    ::pid_t pid = -1;
    const int error = ::posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments.data(),
                                     options_.environment ? environment.data() : ::environ);
    std::string in;
    if (!options_.directory.empty()) {
        in = " in \"" + options_.directory.string() + '"';
    }
    check(error, "cannot start \"" + argv[0] + '"' + in);
    return pid;
}

} // namespace coil::detail
