#include "replacement.hpp"
#include "ring_or_pool.hpp"
#include "write_data.hpp"

#include <coil/compose/shield.hpp>
#include <coil/fs/file.hpp>
#include <coil/fs/write_file.hpp>

namespace coil::fs {

namespace {

int open_flags(write_mode mode) noexcept {
    switch (mode) {
    case write_mode::append:
        return O_APPEND;
    case write_mode::create_new:
        return O_EXCL;
    default:
        return O_TRUNC;
    }
}

task<io_result> write_in_place(const path& p, const_buffer data, write_options options) {
    std::error_code ec;
    file opened = co_await file::open(p, O_WRONLY | O_CREAT | open_flags(options.mode),
                                      static_cast<::mode_t>(options.permissions), ec);
    if (ec) {
        co_return -ec.value();
    }
    int r = co_await detail::write_data(opened.native_handle(), data);
    if (r >= 0 && options.durable) {
        r = co_await opened.sync();
    }
    if (r >= 0 && options.durable) {
        const int fd = opened.native_handle();
        r = co_await detail::on_thread([fd, &p] { return detail::sync_directory_of(fd, p); });
    }
    if (r < 0) {
        co_return r;
    }
    co_return co_await opened.close();
}

task<io_result> write_replacement(const path& p, const_buffer data, ::mode_t mode) {
    detail::replacement made;
    int r = co_await detail::on_thread([&] { return made.begin(p.native(), mode); });
    if (r >= 0) {
        r = co_await detail::write_data(made.content().native_handle(), data);
    }
    if (r >= 0) {
        r = co_await made.content().sync();
    }
    if (r >= 0) {
        r = co_await detail::on_thread([&] { return made.commit(); });
    }
    if (r < 0) { // an error, or the task was asked to stop
        co_await shield(detail::on_thread([&] {
            made.discard();
            return 0;
        }));
    }
    co_return r;
}

task<io_result> write_as_told(const path& p, const_buffer data, write_options options) {
    if (options.mode == write_mode::replace) {
        return write_replacement(p, data, static_cast<::mode_t>(options.permissions));
    }
    return write_in_place(p, data, options);
}

} // namespace

task<> write_file(path p, const_buffer data, write_options options, std::error_code& ec) {
    const int r = co_await write_as_told(p, data, options);
    ec = detail::error_of(r);
}

task<> write_file(path p, const_buffer data, write_options options) {
    const int r = co_await write_as_told(p, data, options);
    detail::throw_if(detail::error_of(r), "coil::fs::write_file", p);
}

} // namespace coil::fs
