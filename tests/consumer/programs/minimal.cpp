// A program with coil::minimal: what it lacks is refused with a message, the rest works.

#include <coil/coil.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <system_error>

using namespace std::chrono_literals;

namespace {

coil::task<int> answer() {
    co_await coil::sleep_for(1ms);
    co_return 42;
}

coil::task<> check_backtrace() {
    const coil::task_backtrace trace = co_await coil::this_task::backtrace();
    if (trace.entries.empty() || trace.entries[0].module.empty() || trace.entries[0].offset == 0) {
        std::puts("a backtrace lacks the module or the offset");
        std::exit(1);
    }
}

coil::task<> co_main(int& got) {
    co_await check_backtrace();
    got = co_await answer();
}

/// Whether a context with the option is refused with that message.
bool is_refused(std::string_view message,
                const std::function<void(coil::io_context_options&)>& set) {
    coil::io_context_options options;
    set(options);
    try {
        coil::io_context context(options);
        context.run();
    } catch (const std::system_error& error) {
        std::puts(error.what());
        return error.code() == std::errc::not_supported &&
               std::string_view(error.what()).find(message) != std::string_view::npos;
    }
    std::printf("not refused: %s\n", message.data());
    return false;
}

} // namespace

int main() {
    if (!coil::uring::available()) {
        // What would be a fallback is an error that says why.
        return is_refused("no epoll backend, and ", [](auto&) {}) ? 0 : 1;
    }
    if (!is_refused("no epoll backend", [](auto& o) { o.backend = coil::io_backend::epoll; }) ||
        !is_refused("no admin_socket", [](auto& o) { o.admin_socket = "minimal.sock"; }) ||
        !is_refused("no dump_signal", [](auto& o) { o.dump_signal = SIGUSR1; }) ||
        !is_refused("no watchdog",
                    [](auto& o) { o.watchdog.enabled = coil::watchdog_options::use::on; }) ||
        !is_refused("no trace_file", [](auto& o) { o.trace_file = "minimal.json"; })) {
        return 1;
    }
    const std::size_t nothing = coil::trace::to_json().size();
    coil::trace::start();
    int got = 0;
    coil::run(co_main(got));
    coil::trace::stop();
    if (coil::trace::to_json().size() < nothing + 100) {
        std::puts("nothing was traced");
        return 1;
    }
    std::printf("a task slept and answered %d\n", got);
    return got == 42 ? 0 : 1;
}
