#pragma once

#include <coil/io/owned_descriptor.hpp>
#include <coil/process/process.hpp>

#include <vector>

#include <spawn.h>
#include <sys/types.h>

namespace coil::detail {

/// The arguments of posix_spawn(3), and the descriptors that must stay open until it returns.
class spawn_plan {
public:
    explicit spawn_plan(const process_options& options);
    spawn_plan(const spawn_plan&) = delete;
    spawn_plan& operator=(const spawn_plan&) = delete;
    ~spawn_plan();

    /// Starts the process and returns its pid. Throws on errors.
    ::pid_t spawn(const std::vector<std::string>& argv);

    /// The parent's ends of the pipes; empty for streams that are not pipes.
    pipe_end ends[3];
    /// The parent's side of the pseudoterminal, if a stream is one.
    pseudoterminal terminal;

private:
    static bool on_terminal(const process_options& options) noexcept;
    void connect(int target, const redirect& what);
    void connect_pipe(int target);
    void connect_terminal(int target);
    /// Connects the child's standard stream `target` to `source`.
    void give(int target, io::owned_descriptor source);

    const process_options& options_;
    ::posix_spawn_file_actions_t actions_;
    ::posix_spawnattr_t attributes_;
    std::vector<io::owned_descriptor> sources_;
    int on_terminal_ = -1; // the first stream of the child that is the pseudoterminal
};

} // namespace coil::detail
