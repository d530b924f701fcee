#include "ring_or_pool.hpp"
#include "standard.hpp"
#include "standard_calls.hpp"

#include <coil/core/this_task.hpp>
#include <coil/fs/paths.hpp>
#include <coil/fs/status.hpp>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace coil::fs {

namespace {

namespace stdfs = detail::stdfs;

/// Functions that do not wait honour cancellation as well.
task<bool> is_stopped(std::error_code& ec) {
    const inplace_stop_token token = co_await this_task::stop_token();
    const bool stopped = token.stop_requested();
    ec = stopped ? std::make_error_code(std::errc::operation_canceled) : std::error_code();
    co_return stopped;
}

path temporary_from_environment() {
    for (const char* const name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
        if (const char* const value = ::secure_getenv(name)) {
            return value;
        }
    }
    return "/tmp";
}

/// Returns the path even if it is not a directory, for the exception.
task<path> temporary(std::error_code& ec) {
    path p = temporary_from_environment();
    const file_status s = co_await fs::status(p, ec);
    if (!ec && !fs::is_directory(s)) {
        ec = std::make_error_code(std::errc::not_a_directory);
    }
    co_return p;
}

} // namespace

task<path> canonical(path p) {
    co_return co_await detail::standard([&p] { return stdfs::canonical(p); }, "coil::fs::canonical",
                                        p);
}
task<path> canonical(path p, std::error_code& ec) {
    co_return co_await detail::standard([&p, &ec] { return stdfs::canonical(p, ec); }, ec, path());
}

task<path> weakly_canonical(path p) {
    co_return co_await detail::standard([&p] { return stdfs::weakly_canonical(p); },
                                        "coil::fs::weakly_canonical", p);
}
task<path> weakly_canonical(path p, std::error_code& ec) {
    co_return co_await detail::standard([&p, &ec] { return stdfs::weakly_canonical(p, ec); }, ec,
                                        path());
}

task<path> absolute(path p, std::error_code& ec) {
    const bool stopped = co_await is_stopped(ec);
    if (stopped) {
        co_return path();
    }
    if (detail::sys::is_in_world() && !p.empty()) {
        co_return path("/") / p;
    }
    co_return std::filesystem::absolute(p, ec);
}
task<path> absolute(path p) {
    std::error_code ec;
    path result = co_await fs::absolute(p, ec);
    detail::throw_if(ec, "coil::fs::absolute", p);
    co_return result;
}

task<path> relative(path p) {
    co_return co_await detail::standard([&p] { return stdfs::relative(p); }, "coil::fs::relative",
                                        p);
}
task<path> relative(path p, std::error_code& ec) {
    co_return co_await detail::standard([&p, &ec] { return stdfs::relative(p, ec); }, ec, path());
}
task<path> relative(path p, path base) {
    co_return co_await detail::standard([&p, &base] { return stdfs::relative(p, base); },
                                        "coil::fs::relative", p, base);
}
task<path> relative(path p, path base, std::error_code& ec) {
    co_return co_await detail::standard([&p, &base, &ec] { return stdfs::relative(p, base, ec); },
                                        ec, path());
}

task<path> proximate(path p) {
    co_return co_await detail::standard([&p] { return stdfs::proximate(p); }, "coil::fs::proximate",
                                        p);
}
task<path> proximate(path p, std::error_code& ec) {
    co_return co_await detail::standard([&p, &ec] { return stdfs::proximate(p, ec); }, ec, path());
}
task<path> proximate(path p, path base) {
    co_return co_await detail::standard([&p, &base] { return stdfs::proximate(p, base); },
                                        "coil::fs::proximate", p, base);
}
task<path> proximate(path p, path base, std::error_code& ec) {
    co_return co_await detail::standard([&p, &base, &ec] { return stdfs::proximate(p, base, ec); },
                                        ec, path());
}

task<path> current_path(std::error_code& ec) {
    const bool stopped = co_await is_stopped(ec);
    if (stopped) {
        co_return path();
    }
    co_return detail::sys::is_in_world() ? path("/") : std::filesystem::current_path(ec);
}
task<path> current_path() {
    std::error_code ec;
    path result = co_await fs::current_path(ec);
    detail::throw_if(ec, "coil::fs::current_path");
    co_return result;
}

task<> current_path(path p, std::error_code& ec) {
    co_await detail::standard([&p, &ec] { stdfs::current_path(p, ec); }, ec);
}
task<> current_path(path p) {
    std::error_code ec;
    co_await fs::current_path(p, ec);
    detail::throw_if(ec, "coil::fs::current_path", p);
}

task<path> temp_directory_path() {
    std::error_code ec;
    path result = co_await temporary(ec);
    detail::throw_if(ec, "coil::fs::temp_directory_path", result);
    co_return result;
}
task<path> temp_directory_path(std::error_code& ec) {
    path result = co_await temporary(ec);
    if (ec) {
        result.clear();
    }
    co_return result;
}

} // namespace coil::fs
