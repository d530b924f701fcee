#include <coil/context/detail/perform.hpp>
#include <coil/fs/watch.hpp>
#include <coil/io/file.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

#include <linux/limits.h>

namespace coil::fs {

namespace {

[[noreturn]] void throw_cannot_watch(const path& p, int error) {
    throw filesystem_error("coil::fs::watch", p, std::error_code(error, std::generic_category()));
}

} // namespace

struct watcher::queue {
    alignas(::inotify_event) char data[16 * (sizeof(::inotify_event) + NAME_MAX + 1)];
    std::size_t begin = 0;
    std::size_t end = 0;
    bool is_over = false;

    watch_event take() noexcept(false) {
        ::inotify_event head{};
        std::memcpy(&head, data + begin, sizeof head);
        const char* const name = data + begin + sizeof head;
        watch_event event{head.mask, head.cookie, std::string(name, ::strnlen(name, head.len))};
        begin += sizeof head + head.len;
        return event;
    }
};

watcher::watcher(io::owned_descriptor inotify)
    : inotify_(std::move(inotify)), queue_(new queue()) {}
watcher::watcher(watcher&&) noexcept = default;
watcher& watcher::operator=(watcher&&) noexcept = default;
watcher::~watcher() = default;

task<std::optional<watch_event>> watcher::next() {
    if (queue_->begin == queue_->end) {
        if (queue_->is_over) {
            co_return std::nullopt;
        }
        const int n = (co_await io::read(inotify_.native_handle(), queue_->data)).value();
        queue_->begin = 0;
        queue_->end = static_cast<std::size_t>(n);
    }
    watch_event event = queue_->take();
    queue_->is_over = queue_->is_over || event.is_end();
    if (event.is_end()) {
        queue_->begin = queue_->end;
        co_return std::nullopt;
    }
    co_return std::optional<watch_event>(std::move(event));
}

watcher watch(const path& p, std::uint32_t mask) {
    if (coil::detail::current_world() != nullptr) {
        throw_cannot_watch(p, EOPNOTSUPP);
    }
    io::owned_descriptor inotify(::inotify_init1(IN_CLOEXEC));
    if (!inotify) {
        throw_cannot_watch(p, errno);
    }
    if (::inotify_add_watch(inotify.native_handle(), p.c_str(), mask) < 0) {
        throw_cannot_watch(p, errno);
    }
    return watcher(std::move(inotify));
}

} // namespace coil::fs
