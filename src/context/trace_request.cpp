// Alone in this source: coil::minimal replaces it.

#include "trace_recorder.hpp"

#include <coil/context/trace.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

#include <unistd.h>

namespace coil::detail {

namespace {

struct trace_request {
    std::mutex mutex;
    std::string file; // written at exit
    ::pid_t process = 0;

    static trace_request& instance() {
        static auto& only = *new trace_request; // used during the program's exit
        return only;
    }
};

void write_at_exit() {
    trace_request& request = trace_request::instance();
    if (request.process != ::getpid()) {
        return; // a child of the traced process
    }
    try {
        trace::stop();
        trace::write(request.file);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "coil: no trace: %s\n", error.what());
    }
}

} // namespace

void begin_requested_trace(const std::string& file) {
    static const char* const by_environment = std::getenv("COIL_TRACE");
    const std::string wanted = file.empty() && by_environment != nullptr ? by_environment : file;
    if (wanted.empty()) {
        return;
    }
    trace_request& request = trace_request::instance();
    {
        const std::scoped_lock lock(request.mutex);
        if (!std::exchange(request.file, wanted).empty()) {
            return; // the trace of the process has begun; the last file counts
        }
        request.process = ::getpid();
    }
    std::atexit(&write_at_exit);
    trace::start();
}

} // namespace coil::detail
