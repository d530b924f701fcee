#include "multi.hpp"

#include <coil/curl/error.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include <sys/epoll.h>
#include <unistd.h>

namespace coil::curl::detail {

namespace {

using clock = std::chrono::steady_clock;

/// libcurl may ask to be called again immediately. After this many calls in a row other tasks run.
constexpr int rounds_at_once = 16;

/// A task often begins its next transfer as soon as one has ended, so a few are enough.
constexpr std::size_t most_spare_handles = 8;

} // namespace

multi::multi(const client_options& options) {
    static const ::CURLcode initialized = ::curl_global_init(CURL_GLOBAL_ALL);
    handle_ = initialized == CURLE_OK ? ::curl_multi_init() : nullptr;
    if (handle_ == nullptr) {
        throw std::bad_alloc();
    }
    // NOLINTBEGIN(*-vararg): libcurl's interface
    ::curl_multi_setopt(handle_, CURLMOPT_SOCKETFUNCTION, &on_socket);
    ::curl_multi_setopt(handle_, CURLMOPT_SOCKETDATA, this);
    ::curl_multi_setopt(handle_, CURLMOPT_TIMERFUNCTION, &on_timer);
    ::curl_multi_setopt(handle_, CURLMOPT_TIMERDATA, this);
    ::curl_multi_setopt(handle_, CURLMOPT_MAX_TOTAL_CONNECTIONS, options.max_connections);
    ::curl_multi_setopt(handle_, CURLMOPT_MAX_HOST_CONNECTIONS, options.max_connections_per_host);
    ::curl_multi_setopt(handle_, CURLMOPT_MAXCONNECTS, options.max_idle_connections);
    // NOLINTEND(*-vararg)
    spare_.reserve(most_spare_handles);
}

multi::~multi() {
    close();
    for (::CURL* const handle : spare_) {
        ::curl_easy_cleanup(handle);
    }
    ::curl_multi_cleanup(handle_); // calls on_socket
}

::CURL* multi::take_handle() {
    if (!spare_.empty()) {
        ::CURL* const handle = spare_.back();
        spare_.pop_back();
        return handle;
    }
    ::CURL* const handle = ::curl_easy_init();
    if (handle == nullptr) {
        throw std::bad_alloc();
    }
    set_shared_options(handle);
    return handle;
}

// NOLINTBEGIN(*-vararg): libcurl's interface
void multi::give_back(::CURL* handle, bool is_get) noexcept {
    if (spare_.size() == most_spare_handles) {
        ::curl_easy_cleanup(handle);
        return;
    }
    if (is_get) {
        ::curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, nullptr);
    } else {
        ::curl_easy_reset(handle);
        set_shared_options(handle);
    }
    spare_.push_back(handle);
}

void multi::set_shared_options(::CURL* handle) noexcept {
    ::curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    ::curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    ::curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    ::curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &easy::on_header);
    ::curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &easy::on_body);
    ::curl_easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, &on_open);
    ::curl_easy_setopt(handle, CURLOPT_SOCKOPTDATA, this);
    ::curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, &on_close);
    ::curl_easy_setopt(handle, CURLOPT_CLOSESOCKETDATA, this);
}
// NOLINTEND(*-vararg)

multi::watched& multi::entry(::curl_socket_t fd) {
    const auto index = static_cast<std::size_t>(fd);
    if (index >= sockets_.size()) {
        sockets_.resize(index + 1);
    }
    return sockets_[index];
}

/// Between two transfers on the same connection libcurl watches its socket for no event. It then
/// stays in the epoll set, which saves two system calls for each transfer. That is safe only for a
/// socket that is known to be removed before it is closed.
int multi::on_socket(::CURL*, ::curl_socket_t fd, int what, void* self, void*) noexcept try {
    auto& m = *static_cast<multi*>(self);
    watched& socket = m.entry(fd);
    socket.wanted = 0;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) {
        socket.wanted |= EPOLLIN;
    }
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) {
        socket.wanted |= EPOLLOUT;
    }
    const bool is_up_to_date = socket.wanted == 0 || socket.wanted == socket.in_set;
    if (!socket.is_followed || !is_up_to_date) {
        m.loop_.watch(fd, socket.wanted);
        socket.in_set = socket.wanted;
    }
    return 0;
} catch (const std::exception&) {
    return -1; // libcurl aborts the transfers
}

int multi::on_open(void* self, ::curl_socket_t fd, ::curlsocktype) noexcept try {
    static_cast<multi*>(self)->entry(fd) = {.is_followed = true};
    return CURL_SOCKOPT_OK;
} catch (const std::exception&) {
    return CURL_SOCKOPT_OK;
}

int multi::on_close(void* self, ::curl_socket_t fd) noexcept {
    auto& m = *static_cast<multi*>(self);
    m.loop_.unwatch(fd);
    if (static_cast<std::size_t>(fd) < m.sockets_.size()) {
        m.sockets_[static_cast<std::size_t>(fd)] = {};
    }
    return ::close(fd);
}

int multi::on_timer(::CURLM*, long ms, void* self) noexcept {
    auto& m = *static_cast<multi*>(self);
    m.timer_set_ = true;
    m.timer_ms_ = ms;
    m.is_due_ = ms == 0;
    return 0;
}

void multi::add(easy& e) {
    if (failure_) {
        e.fail(CURLE_FAILED_INIT, *failure_);
    }
    if (!task_) {
        task_.emplace();
    }
    if (!is_running_) {
        task_->spawn(run(), "curl");
        task_->spawn(start_transfers(), "curl start");
        is_running_ = true;
    }
    active_.push_back(&e);
    e.index_ = active_.size() - 1;
    if (const ::CURLMcode code = ::curl_multi_add_handle(handle_, e.handle_); code != CURLM_OK) {
        active_.pop_back();
        e.fail(CURLE_FAILED_INIT, ::curl_multi_strerror(code));
    }
    due_.set();
}

void multi::remove(easy& e) noexcept {
    ::curl_multi_remove_handle(handle_, e.handle_);
    std::swap(active_[e.index_], active_.back());
    active_[e.index_]->index_ = e.index_;
    active_.pop_back();
}

void multi::act(::curl_socket_t fd, int events) noexcept {
    int running = 0;
    ::curl_multi_socket_action(handle_, fd, events, &running);
}

void multi::report(::curl_socket_t fd, std::uint32_t events) noexcept {
    watched& socket = sockets_[static_cast<std::size_t>(fd)];
    if (socket.wanted == 0) { // an idle connection; the server has closed it
        loop_.unwatch(fd);
        socket.in_set = 0;
        return;
    }
    // Errors are found by reading; a failed connect() also reports EPOLLOUT.
    act(fd, ((events & ~EPOLLOUT) != 0 ? CURL_CSELECT_IN : 0) |
                ((events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0));
}

void multi::settle() noexcept {
    for (int i = 0; is_due_ && i < rounds_at_once; ++i) {
        is_due_ = false;
        act(CURL_SOCKET_TIMEOUT, 0);
    }
    reap();
    if (is_due_) {
        due_.set();
    } else if (timer_ms_) {
        set_timer();
    }
}

void multi::set_timer() noexcept {
    if (*timer_ms_ > 0) {
        loop_.set_deadline(clock::now() + std::chrono::milliseconds(*timer_ms_));
    } else {
        loop_.clear_deadline();
    }
    timer_ms_.reset();
}

/// Starts the transfers that the tasks which were ready before it have added. Tasks whose transfers
/// have ended together often add others: one call of libcurl sends all their requests. It ends when
/// it is cancelled, and so does run(), which ends the transfers.
task<> multi::start_transfers() {
    try {
        for (;;) {
            co_await due_.wait();
            settle();
        }
    } catch (const std::system_error&) { // NOLINT(bugprone-empty-catch): see above
    }
}

void multi::reap() noexcept {
    int left = 0;
    while (const ::CURLMsg* const message = ::curl_multi_info_read(handle_, &left)) {
        if (message->msg == CURLMSG_DONE) {
            const ::CURLcode code = message->data.result; // NOLINT(*-union-access)
            void* of = nullptr;
            ::curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &of); // NOLINT(*-vararg)
            auto& e = *static_cast<easy*>(of);
            remove(e);
            e.end(code, nullptr);
        }
    }
}

task<> multi::run() {
    try {
        for (;;) {
            const auto woken = co_await loop_.wait();
            for (const auto& [fd, events] : woken.ready) {
                if (events != 0) {
                    report(fd, events);
                }
            }
            if (woken.expired) {
                timer_set_ = false;
                is_due_ = true;
            }
            settle();
            // libcurl does not call on_timer() if its next deadline equals the one it set last.
            if (long ms = -1; woken.expired && !timer_set_ &&
                              ::curl_multi_timeout(handle_, &ms) == CURLM_OK && ms >= 0) {
                loop_.set_deadline(clock::now() + std::chrono::milliseconds(ms));
            }
        }
    } catch (const std::exception& e) {
        failure_ = e.what();
        fail_all(CURLE_FAILED_INIT, e.what());
    }
}

void multi::fail_all(::CURLcode code, const char* reason) noexcept {
    while (!active_.empty()) {
        easy& e = *active_.back();
        remove(e);
        e.end(code, reason);
    }
}

void multi::close() noexcept {
    if (task_) {
        task_->cancel();
        task_.reset();
    }
    fail_all(CURLE_ABORTED_BY_CALLBACK, "the client was destroyed");
}

} // namespace coil::curl::detail

namespace coil::curl {

client::client(const client_options& options) : multi_(std::make_shared<detail::multi>(options)) {}
client::client(client&&) noexcept = default;
client& client::operator=(client&& other) noexcept {
    client(std::move(other)).multi_.swap(multi_);
    return *this;
}
client::~client() {
    if (multi_) {
        multi_->close();
    }
}

std::size_t client::active() const noexcept { return multi_->active(); }

namespace {

task<response> run_request(std::shared_ptr<detail::multi> on, request what) {
    detail::easy e(std::move(on), std::move(what), true);
    while (!e.has_ended()) {
        co_await e.readable.wait();
    }
    co_return e.take_response();
}

} // namespace

task<response> client::perform(request what) { return run_request(multi_, std::move(what)); }

task<response> client::get(std::string url) { return perform({.url = std::move(url)}); }

transfer client::start(request what) {
    return transfer(std::make_unique<detail::easy>(multi_, std::move(what), false));
}

} // namespace coil::curl
