#include <coil/cares.hpp>
#include <coil/compose/scope.hpp>
#include <coil/interop/foreign_loop.hpp>
#include <coil/interop/from_callback.hpp>
#include <coil/net/connect.hpp>

#include <array>
#include <charconv>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace coil::cares {

namespace {

using addresses = std::vector<net::inet_address>;
using clock = std::chrono::steady_clock;

[[noreturn]] void fail(int status, const std::string& what) {
    throw std::system_error(status, category(), "coil: cares: " + what);
}

/// The port of "https" or "443"; nullopt for anything else.
std::optional<std::uint16_t> port_of(const std::string& service) {
    std::uint16_t port = 0;
    const char* const end = service.data() + service.size();
    const auto parsed = std::from_chars(service.data(), end, port);
    if (parsed.ec == std::errc() && parsed.ptr == end) {
        return port;
    }
    ::servent storage{};
    ::servent* found = nullptr;
    std::array<char, 4096> buffer; // NOLINT(*-member-init): filled by getservbyname_r
    if (service.find('\0') != std::string::npos ||
        ::getservbyname_r(service.c_str(), "tcp", &storage, buffer.data(), buffer.size(), &found) !=
            0 ||
        found == nullptr) {
        return std::nullopt;
    }
    return ntohs(static_cast<std::uint16_t>(found->s_port));
}

} // namespace

namespace detail {

/// A channel of c-ares and the task that runs it. c-ares is called by that task and by the tasks
/// that resolve, all on one context.
class channel {
public:
    explicit channel(const resolver_options& options);
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() { close(); }

    void start(const std::string& host, std::uint16_t port, completion<addresses> done);
    void close() noexcept {
        if (task_) {
            task_->cancel();
            task_.reset();
        }
        if (handle_ != nullptr) {
            ::ares_destroy(std::exchange(handle_, nullptr)); // calls on_answer() for each query
        }
    }

private:
    static void on_socket(void* self, ::ares_socket_t fd, int reads, int writes) noexcept;
    static void on_answer(void* user, int status, int timeouts, ::ares_addrinfo* found) noexcept;

    task<> run();
    void update_deadline() noexcept;

    foreign_loop loop_;
    ::ares_channel handle_ = nullptr;
    bool is_running_ = false;
    std::exception_ptr failure_; // set if the task has ended with an exception
    std::optional<scope> task_;  // last: it uses the other members
};

channel::channel(const resolver_options& options) {
    static const int initialized = ::ares_library_init(ARES_LIB_INIT_ALL);
    std::string lookups = options.hosts_file ? "fb" : "b"; // "f": /etc/hosts, "b": DNS
    ::ares_options o{};
    o.timeout = static_cast<int>(options.timeout.count());
    o.tries = options.tries;
    o.lookups = lookups.data();
    o.sock_state_cb = &on_socket;
    o.sock_state_cb_data = this;
    int status = initialized;
    if (status == ARES_SUCCESS) {
        status = ::ares_init_options(&handle_, &o,
                                     ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                                         ARES_OPT_SOCK_STATE_CB);
    }
    std::string servers;
    for (const net::inet_address& server : options.servers) {
        servers += (servers.empty() ? "" : ",") + server.to_string();
    }
    if (status == ARES_SUCCESS && !servers.empty()) {
        status = ::ares_set_servers_ports_csv(handle_, servers.c_str());
    }
    if (status != ARES_SUCCESS) {
        close();
        fail(status, "the resolver cannot be initialized");
    }
}

/// Cannot report an error: if watching fails, c-ares does not read the answer, and its query times
/// out.
void channel::on_socket(void* self, ::ares_socket_t fd, int reads, int writes) noexcept try {
    static_cast<channel*>(self)->loop_.watch(fd, (reads != 0 ? EPOLLIN : 0U) |
                                                     (writes != 0 ? EPOLLOUT : 0U));
} catch (const std::system_error&) { // NOLINT(bugprone-empty-catch): see above
}

void channel::on_answer(void* user, int status, int, ::ares_addrinfo* found) noexcept {
    auto done = completion<addresses>::from_address(user);
    const std::unique_ptr<::ares_addrinfo, void (*)(::ares_addrinfo*)> owner(found,
                                                                             &::ares_freeaddrinfo);
    try {
        addresses result;
        for (const ::ares_addrinfo_node* node = found != nullptr ? found->nodes : nullptr;
             node != nullptr; node = node->ai_next) {
            if (node->ai_family == AF_INET || node->ai_family == AF_INET6) {
                result.emplace_back(node->ai_addr, node->ai_addrlen);
            }
        }
        if (status != ARES_SUCCESS || result.empty()) {
            done.set_error(
                std::error_code(status != ARES_SUCCESS ? status : ARES_ENODATA, category()));
        } else {
            done.set_value(std::move(result));
        }
    } catch (...) {
        done.set_error(std::current_exception());
    }
}

void channel::start(const std::string& host, std::uint16_t port, completion<addresses> done) {
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    if (handle_ == nullptr) {
        done.set_error(std::error_code(ARES_EDESTRUCTION, category()));
        return;
    }
    if (!task_) {
        task_.emplace();
    }
    if (!is_running_) {
        task_->spawn(run(), "c-ares");
        is_running_ = true;
    }
    ::ares_addrinfo_hints hints{};
    hints.ai_flags = ARES_AI_NUMERICSERV;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM; // otherwise every address is returned once per socket type
    // c-ares refuses the port 0; without a service it returns that.
    ::ares_getaddrinfo(handle_, host.c_str(), port != 0 ? std::to_string(port).c_str() : nullptr,
                       &hints, &on_answer, std::move(done).to_address());
    update_deadline();
}

void channel::update_deadline() noexcept {
    ::timeval storage{};
    if (const ::timeval* const left = ::ares_timeout(handle_, nullptr, &storage)) {
        // c-ares rounds the time down to milliseconds, so add one.
        loop_.set_deadline(clock::now() + std::chrono::seconds(left->tv_sec) +
                           std::chrono::microseconds(left->tv_usec) + std::chrono::milliseconds(1));
    } else {
        loop_.clear_deadline();
    }
}

task<> channel::run() {
    try {
        for (;;) {
            const auto woken = co_await loop_.wait();
            for (const auto& [fd, events] : woken.ready) {
                if (events != 0) {
                    ::ares_process_fd(handle_, (events & ~EPOLLOUT) != 0 ? fd : ARES_SOCKET_BAD,
                                      (events & EPOLLOUT) != 0 ? fd : ARES_SOCKET_BAD);
                }
            }
            if (woken.expired) {
                ::ares_process_fd(handle_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
            }
            update_deadline();
        }
    } catch (...) {
        failure_ = std::current_exception();
        ::ares_cancel(handle_);
    }
}

} // namespace detail

namespace {

task<addresses> look_up(std::shared_ptr<detail::channel> channel, std::string host,
                        std::string service) {
    const auto port = port_of(service);
    if (!port) {
        fail(ARES_ESERVICE, "service \"" + service + '"');
    }
    if (host.empty() || host.find('\0') != std::string::npos) {
        fail(ARES_EBADNAME, '"' + host + '"');
    }
    if (const auto numeric = net::inet_address::parse(host, *port)) {
        co_return addresses{*numeric};
    }
    try {
        co_return co_await from_callback<addresses>(
            [&](completion<addresses> done) { channel->start(host, *port, std::move(done)); });
    } catch (const std::system_error& e) {
        throw std::system_error(e.code(), "coil: cares: cannot resolve " + host);
    }
}

task<net::socket> resolve_and_connect(std::shared_ptr<detail::channel> channel, std::string host,
                                      std::uint16_t port) {
    const std::string service = std::to_string(port);
    const addresses found = co_await look_up(std::move(channel), host, service);
    co_return co_await net::detail::connect_to_any(
        host + " port " + service, net::detail::interleave(found), net::detail::no_deadline);
}

class ares_category final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "c-ares"; }
    [[nodiscard]] std::string message(int code) const override {
        return code == ARES_ESERVICE ? "Unknown service" : ::ares_strerror(code);
    }
    [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
        switch (code) {
        case ARES_ETIMEOUT:
            return std::errc::timed_out;
        case ARES_ECONNREFUSED:
            return std::errc::connection_refused;
        case ARES_ENOMEM:
            return std::errc::not_enough_memory;
        default:
            return {code, *this};
        }
    }
};

} // namespace

resolver::resolver(const resolver_options& options)
    : channel_(std::make_shared<detail::channel>(options)) {}
resolver::resolver(resolver&&) noexcept = default;
resolver& resolver::operator=(resolver&& other) noexcept {
    resolver(std::move(other)).channel_.swap(channel_);
    return *this;
}
resolver::~resolver() {
    if (channel_) {
        channel_->close();
    }
}

task<addresses> resolver::resolve(std::string host, std::uint16_t port) {
    return look_up(channel_, std::move(host), std::to_string(port));
}

task<addresses> resolver::resolve(std::string host, std::string service) {
    return look_up(channel_, std::move(host), std::move(service));
}

task<net::socket> resolver::connect(std::string host, std::uint16_t port) {
    return resolve_and_connect(channel_, std::move(host), port);
}

const std::error_category& category() noexcept {
    static const ares_category instance;
    return instance;
}

} // namespace coil::cares
