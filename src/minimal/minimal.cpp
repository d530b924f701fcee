// coil::minimal: replaces the sources of coil that most programs need only for observability, and
// the epoll backend. A linker takes what an object file of the program defines and does not look
// for it in libcoil.a, so the replaced sources and all that only they use are not linked. Each of
// them contains nothing else that a program may refer to.
//
// An option whose part is missing is an error. An environment variable is not: it prints a line,
// because it may be meant for other programs.

#include "../context/backend_choice.hpp"
#include "../context/deadlock.hpp"
#include "../context/trace_recorder.hpp"
#include "../context/watched_pool.hpp"
#include "../context/watched_run.hpp"

#include <coil/context/detail/admin_registration.hpp>
#include <coil/context/detail/dump_registration.hpp>
#include <coil/context/detail/sim_driver.hpp>
#include <coil/context/io_context.hpp>
#include <coil/core/backtrace.hpp>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

namespace coil::detail {

namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw std::system_error(ENOTSUP, std::generic_category(),
                            "coil: " + what + ": this program links coil::minimal");
}

/// Prints a line if an environment variable asks for a part that is not linked.
void note_variable(std::atomic<bool>& is_noted, const char* name, bool is_set) noexcept {
    if (is_set && !is_noted.exchange(true, std::memory_order_relaxed)) {
        std::fprintf(stderr, "coil: %s has no effect: this program links coil::minimal\n", name);
    }
}

std::string program_path() {
    std::string path(4096, '\0');
    const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
    path.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return path;
}

} // namespace

// ---- the backend where io_uring is refused

std::unique_ptr<uring::backend> make_fallback_backend(const std::string& reason) {
    refuse("no epoll backend" + (reason.empty() ? "" : ", and " + reason));
}

// ---- the admin socket, the dump signal, the watchdog

admin_registration::admin_registration(io_context& context, const std::string& path)
    : context_(context) {
    if (!path.empty() && current_sim_driver == nullptr) {
        refuse("no admin_socket");
    }
}
// The headers declare these destructors because they do something in the replaced sources; so they
// are not trivial here either.
admin_registration::~admin_registration() {}

dump_registration::dump_registration(io_context& context, int signal) : context_(context) {
    if (current_sim_driver != nullptr) {
        return;
    }
    if (signal != 0) {
        refuse("no dump_signal");
    }
    if (context.options().watchdog.enabled == watchdog_options::use::on) {
        refuse("no watchdog");
    }
}
dump_registration::~dump_registration() {}

dumps_paused::dumps_paused() = default; // no other thread reads the contexts
dumps_paused::~dumps_paused() {}

watched_run::watched_run(const io_context_options& options, const ready_queue& ready,
                         live_metrics& metrics, const turn_meter& meter) noexcept
    : options_(options), ready_(ready), metrics_(metrics), meter_(meter) {
    static constinit std::atomic<bool> is_noted{false};
    const char* const word = std::getenv("COIL_WATCHDOG");
    note_variable(is_noted, "COIL_WATCHDOG=on", word != nullptr && std::strcmp(word, "on") == 0);
}
watched_run::~watched_run() = default;

void watched_pool::begin_watching() noexcept {}
void watched_pool::end_watching() noexcept {}

// ---- traces and texts

void begin_requested_trace(const std::string& file) {
    if (!file.empty()) {
        refuse("no trace_file");
    }
    static constinit std::atomic<bool> is_noted{false};
    const char* const by_environment = std::getenv("COIL_TRACE");
    note_variable(is_noted, "COIL_TRACE", by_environment != nullptr && *by_environment != '\0');
}

/// Without the tasks it cannot be seen whether one of them can continue, so only the deadlock of a
/// process with one thread is reported.
std::string describe_deadlock(std::span<event_loop* const>, bool has_others) {
    return has_others ? std::string()
                      : std::string(deadlock_sentence) + "(coil::minimal does not list them)\n";
}

/// The module and the offset, from which addr2line(1) and coil-lines find the function.
backtrace_entry find_symbol(const void* function) {
    backtrace_entry entry;
    ::Dl_info info{};
    void* extra = nullptr;
    entry.offset = reinterpret_cast<std::uintptr_t>(function);
    if (::dladdr1(function, &info, &extra, RTLD_DL_LINKMAP) != 0 && extra != nullptr) {
        const auto& map = *static_cast<const ::link_map*>(extra);
        entry.offset -= map.l_addr;
        entry.module = map.l_name == nullptr || *map.l_name == '\0' ? program_path() : map.l_name;
    }
    return entry;
}

} // namespace coil::detail
