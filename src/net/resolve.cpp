#include <coil/base/service_thread_start.hpp>
#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/sim_driver.hpp>
#include <coil/core/detail/backoff.hpp>
#include <coil/net/resolve.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <coroutine>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <netdb.h>

namespace coil::net {

namespace {

using coil::detail::event_loop;
using coil::detail::queue_node;
using coil::detail::sim_driver;

std::atomic<detail::lookup_function> current_lookup_function{&::getaddrinfo};

struct results_deleter {
    void operator()(::addrinfo* results) const noexcept { ::freeaddrinfo(results); }
};

/// A look-up: a job for a helper thread and, as a node of the context's inbox, the message that
/// delivers its result.
///
/// It has two owners, the awaiter and the helper; `state_` is their only synchronisation. The
/// helper deletes an abandoned look-up. The awaiter deletes a completed one, but not before the
/// helper has reported that it no longer uses the context: the context may be destroyed right after
/// its last coroutine has resumed.
class lookup : public queue_node {
public:
    lookup(const std::string& host, const std::string& service) : host_(host), service_(service) {}

    // Called by the awaiter.

    using delivery = void (*)(queue_node&, event_loop&) noexcept;
    void begin(event_loop& loop, void* waiter, delivery when_answered) noexcept {
        loop_ = &loop;
        waiter_ = waiter;
        deliver = when_answered;
    }
    [[nodiscard]] void* waiter() const noexcept { return waiter_; }

    /// Returns true if the helper now owns the look-up; false if the result is being delivered.
    [[nodiscard]] bool abandon() noexcept {
        state expected = state::wanted;
        return state_.compare_exchange_strong(expected, state::abandoned,
                                              std::memory_order_acq_rel);
    }

    /// Called when the result is delivered. The helper stops using the context within a few
    /// instructions.
    void wait_until_helper_left() const noexcept {
        for (coil::detail::backoff wait; state_.load(std::memory_order_acquire) != state::left;) {
            wait.once_more();
        }
    }

    /// The error of the look-up, if any. Valid after the result has been delivered.
    [[nodiscard]] std::error_code error() const noexcept {
        return error_ == EAI_SYSTEM ? std::error_code(system_error_, std::generic_category())
                                    : std::error_code(error_, resolver_category());
    }
    [[nodiscard]] const std::vector<inet_address>& addresses() const noexcept { return addresses_; }

    // Called by the helper.

    void perform() noexcept {
        if (state_.load(std::memory_order_relaxed) == state::wanted) {
            add_addresses(host_, 0);
        }
        finish();
    }

    /// Called in a simulated world, which resolves names itself.
    void perform(sim_driver& world) noexcept {
        error_ = EAI_NONAME;
        for (const std::string& address : world.addresses_of(host_)) {
            add_addresses(address, AI_NUMERICHOST);
        }
        finish();
    }

    void fail(int system_error) noexcept {
        error_ = EAI_SYSTEM;
        system_error_ = system_error;
        finish();
    }

    lookup* next_job = nullptr;

private:
    enum class state { wanted, answered, left, abandoned };

    void add_addresses(const std::string& host, int flags) noexcept try {
        ::addrinfo hints{};
        hints.ai_flags = flags;
        hints.ai_socktype = SOCK_STREAM; // otherwise every address is returned once per socket type
        ::addrinfo* results = nullptr;
        error_ = current_lookup_function.load(std::memory_order_relaxed)(
            host.c_str(), service_.c_str(), &hints, &results);
        system_error_ = errno;
        const std::unique_ptr<::addrinfo, results_deleter> owner(error_ == 0 ? results : nullptr);
        for (const ::addrinfo* a = owner.get(); a != nullptr; a = a->ai_next) {
            if (a->ai_family == AF_INET || a->ai_family == AF_INET6) {
                addresses_.emplace_back(a->ai_addr, a->ai_addrlen);
            }
        }
    } catch (const std::bad_alloc&) {
        error_ = EAI_MEMORY;
    }

    void finish() noexcept {
        state expected = state::wanted;
        if (!state_.compare_exchange_strong(expected, state::answered, std::memory_order_acq_rel)) {
            delete this;
            return;
        }
        loop_->post(*this);
        state_.store(state::left, std::memory_order_release);
    }

    const std::string host_;
    const std::string service_;
    event_loop* loop_ = nullptr;
    void* waiter_ = nullptr;
    std::atomic<state> state_{state::wanted};
    int error_ = 0;
    int system_error_ = 0;
    std::vector<inet_address> addresses_;
};

/// The helper threads. Each look-up starts one, up to a limit; a thread ends when no job is left.
/// Trivially destructible: a helper may still be in getaddrinfo while the process ends.
class helper_threads {
public:
    void give(lookup& job) noexcept {
        {
            const std::scoped_lock lock(mutex_);
            (first_ == nullptr ? first_ : last_->next_job) = &job;
            last_ = &job;
            if (threads_ == detail::max_lookup_threads) {
                return;
            }
            ++threads_;
        }
        try {
            start_thread();
        } catch (const std::system_error& e) {
            one_fewer(e.code().value());
        }
    }

private:
    void start_thread() {
        const coil::detail::service_thread_start inherited;
        std::thread([this] { work(); }).detach();
    }

    void work() noexcept {
        for (;;) {
            lookup* job = nullptr;
            {
                const std::scoped_lock lock(mutex_);
                if (first_ == nullptr) {
                    --threads_;
                    return;
                }
                job = std::exchange(first_, first_->next_job);
            }
            job->perform();
        }
    }

    /// Called if a thread could not be created: the remaining threads execute the jobs; if there
    /// are none, the jobs fail.
    void one_fewer(int system_error) noexcept {
        lookup* orphans = nullptr;
        {
            const std::scoped_lock lock(mutex_);
            if (--threads_ == 0) {
                orphans = std::exchange(first_, nullptr);
            }
        }
        while (orphans != nullptr) {
            lookup& job = *std::exchange(orphans, orphans->next_job);
            job.fail(system_error);
        }
    }

    std::mutex mutex_;
    lookup* first_ = nullptr;
    lookup* last_ = nullptr; // valid while first_ is set
    unsigned threads_ = 0;
};

constinit helper_threads helpers;

class lookup_awaiter : public coil::detail::awaiter_base {
public:
    lookup_awaiter(const std::string& host, const std::string& service)
        : lookup_(new lookup(host, service)) {}
    lookup_awaiter(const lookup_awaiter&) = delete;
    lookup_awaiter& operator=(const lookup_awaiter&) = delete;
    ~lookup_awaiter() {
        if (pending()) {
            stop_observing();
            cancel();
            while (pending()) {
                loop().deliver_inbox(); // the helper posts the result within a few instructions
            }
        }
        leave_if_under_way();
        delete lookup_;
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        const inplace_stop_token token = coil::detail::stop_token_of(waiter);
        begin(coil::detail::required_loop(), waiter);
        if (token.stop_requested()) {
            delete std::exchange(lookup_, nullptr);
            finish();
            return;
        }
        lookup_->begin(loop(), this, [](queue_node& node, event_loop&) noexcept {
            auto& answered = static_cast<lookup&>(node);
            answered.wait_until_helper_left();
            static_cast<lookup_awaiter*>(answered.waiter())->finish();
        });
        if (sim_driver* const world = coil::detail::current_sim_driver) {
            world->run_later(*lookup_, [](queue_node& node) {
                static_cast<lookup&>(node).perform(*coil::detail::current_sim_driver);
            });
        } else {
            helpers.give(*lookup_);
        }
        observe<lookup_awaiter>(token);
    }

    /// The completed look-up; null if it was cancelled.
    [[nodiscard]] const lookup* await_resume() noexcept {
        resumed();
        return lookup_;
    }

private:
    friend class coil::detail::awaiter_base;

    void cancel() noexcept {
        if (pending() && lookup_->abandon()) {
            sim_driver* const world = coil::detail::current_sim_driver;
            if (world != nullptr && world->take_back(*lookup_)) {
                delete lookup_; // this is the only owner
            }
            lookup_ = nullptr;
            finish();
        }
    }

    lookup* lookup_;
};

std::optional<std::uint16_t> parse_port(const std::string& service) noexcept {
    std::uint16_t port = 0;
    const char* const end = service.data() + service.size();
    const auto [rest, error] = std::from_chars(service.data(), end, port);
    return rest == end && error == std::errc() ? std::optional(port) : std::nullopt;
}

/// Whether getaddrinfo would parse the text as a number with strtoul(3), modulo 65536: blanks and a
/// sign are accepted.
bool is_number(std::string_view text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
    if (text.starts_with('+') || text.starts_with('-')) {
        text.remove_prefix(1);
    }
    return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

class category final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "coil.resolver"; }
    [[nodiscard]] std::string message(int code) const override { return ::gai_strerror(code); }
    [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
        switch (code) {
        case EAI_AGAIN:
            return std::errc::resource_unavailable_try_again;
        case EAI_MEMORY:
            return std::errc::not_enough_memory;
        case EAI_FAMILY:
            return std::errc::address_family_not_supported;
        default:
            return {code, *this};
        }
    }
};

[[noreturn]] void fail(std::error_code error, const std::string& host, const std::string& service) {
    std::string what = "coil: cannot resolve \"" + host + '"';
    if (!parse_port(service)) {
        what += ", service \"" + service + '"';
    }
    throw std::system_error(error, what);
}

} // namespace

task<std::vector<inet_address>> resolve(std::string host, std::string service) {
    const std::optional<std::uint16_t> port = parse_port(service);
    if (host.empty() || host.find('\0') != std::string::npos) {
        fail({EAI_NONAME, resolver_category()}, host, service);
    }
    // A number that is not a valid port is not a service name either.
    if (service.find('\0') != std::string::npos || (!port && is_number(service))) {
        fail({EAI_SERVICE, resolver_category()}, host, service);
    }
    std::vector<inet_address> addresses;
    if (port) {
        if (const auto numeric = inet_address::parse(host, *port)) {
            addresses.push_back(*numeric);
            co_return addresses;
        }
    }
    lookup_awaiter pending(host, service);
    const lookup* const answer = co_await pending;
    if (answer == nullptr) {
        fail(std::make_error_code(std::errc::operation_canceled), host, service);
    }
    if (const std::error_code error = answer->error()) {
        fail(error, host, service);
    }
    addresses = answer->addresses();
    if (addresses.empty()) {
        fail({EAI_NONAME, resolver_category()}, host, service);
    }
    co_return addresses;
}

task<std::vector<inet_address>> resolve(std::string host, std::uint16_t port) {
    return resolve(std::move(host), std::to_string(port));
}

const std::error_category& resolver_category() noexcept {
    static const category instance;
    return instance;
}

detail::lookup_function detail::exchange_lookup_function(lookup_function f) noexcept {
    return current_lookup_function.exchange(f);
}

} // namespace coil::net
