#include <coil/compose/scope.hpp>
#include <coil/compose/time_limit.hpp>
#include <coil/compose/timeout.hpp>
#include <coil/compose/when_any.hpp>
#include <coil/net/connect.hpp>
#include <coil/net/resolve.hpp>
#include <coil/sync/event.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>
#include <variant>

namespace coil::net::detail {

namespace {

constexpr std::int64_t delay_ns =
    std::chrono::duration_cast<std::chrono::nanoseconds>(connection_attempt_delay).count();

/// The state shared by the attempts, which run concurrently on one context.
struct race {
    auto_reset_event ended;
    socket winner;
    std::size_t pending = 0;
    bool latest_failed = false;
    int error = -ENOENT; // the error of the last failure
    std::string failures;

    void fail(const inet_address& address, int result) {
        error = result;
        failures += failures.empty() ? ": " : "; ";
        failures += address.to_string();
        failures += ": ";
        failures += std::generic_category().message(-result);
    }
};

/// Records the end of an attempt, successful or not.
class attempt_end {
public:
    explicit attempt_end(race& of) noexcept : race_(of) {}
    attempt_end(const attempt_end&) = delete;
    attempt_end& operator=(const attempt_end&) = delete;
    ~attempt_end() {
        --race_.pending;
        race_.ended.set();
    }

private:
    race& race_;
};

task<> attempt(race& in, inet_address address, const std::size_t& started, std::size_t number) {
    const attempt_end end(in);
    int result = 0;
    try {
        socket s = socket::create_tcp(address.family());
        result = co_await s.connect(address);
        if (result == 0) {
            if (!in.winner) {
                in.winner = std::move(s);
            }
            co_return;
        }
    } catch (const std::system_error& e) {
        result = -e.code().value(); // from socket(2)
    }
    in.latest_failed = in.latest_failed || started == number;
    in.fail(address, result);
}

[[noreturn]] void throw_failure(const std::error_code& code, const std::string& name,
                                const std::string& failures) {
    throw std::system_error(code, "coil: cannot connect to " + name + failures);
}

std::string name_of(const std::string& host, std::uint16_t port) {
    return host + " port " + std::to_string(port);
}

/// Waits for the end of an attempt or until `until`. Returns whether `until` has been reached.
task<bool> wait_for_end(race& in, std::int64_t until) {
    if (until == no_deadline) {
        co_await in.ended.wait();
        co_return false;
    }
    const sleep_awaitable pause(until, sleep_awaitable::from::epoch);
    const auto first = co_await when_any(in.ended.wait(), pause);
    if (first.index == 0) {
        co_return false;
    }
    const int slept = std::get<1>(first.value);
    if (slept < 0) { // a stop, or no memory for the timer
        throw std::system_error(-slept, std::generic_category());
    }
    co_return true;
}

} // namespace

std::vector<inet_address> interleave(const std::vector<inet_address>& addresses) {
    std::vector<inet_address> six;
    std::vector<inet_address> four;
    for (const inet_address& a : addresses) {
        (a.family() == AF_INET6 ? six : four).push_back(a);
    }
    std::vector<inet_address> mixed;
    mixed.reserve(addresses.size());
    for (std::size_t i = 0; i < std::max(six.size(), four.size()); ++i) {
        if (i < six.size()) {
            mixed.push_back(six[i]);
        }
        if (i < four.size()) {
            mixed.push_back(four[i]);
        }
    }
    return mixed;
}

task<socket> connect_to_any(std::string name, std::vector<inet_address> addresses,
                            std::int64_t deadline_ns) {
    race all;
    std::size_t started = 0;
    scope attempts;
    std::int64_t next_at = 0;
    bool is_due = true;
    bool is_late = false;
    while (!all.winner && !is_late) {
        if (started < addresses.size() && (is_due || all.latest_failed)) {
            all.latest_failed = false;
            ++all.pending;
            ++started;
            attempts.spawn(attempt(all, addresses[started - 1], started, started));
            next_at = coil::detail::required_loop().now_ns() + delay_ns;
        } else if (all.pending == 0) {
            break;
        }
        const std::int64_t pause = started < addresses.size() ? next_at : no_deadline;
        const bool passed = co_await wait_for_end(all, std::min(pause, deadline_ns));
        is_late = passed && deadline_ns <= pause;
        is_due = passed && !is_late;
    }
    if (is_late && !all.winner) {
        // The errors of cancelled attempts are not the cause of the failure.
        const std::string failures = all.failures;
        const std::size_t open = all.pending;
        attempts.cancel();
        co_await attempts.join();
        throw_failure(std::make_error_code(std::errc::timed_out), name,
                      failures + (failures.empty() ? ": " : "; ") + std::to_string(open) + " of " +
                          std::to_string(addresses.size()) + " addresses did not answer");
    }
    attempts.cancel();
    co_await attempts.join();
    if (!all.winner) {
        throw_failure(std::error_code(-all.error, std::generic_category()), name, all.failures);
    }
    co_return std::move(all.winner);
}

task<socket> connect_by(std::string host, std::uint16_t port, std::int64_t deadline_ns) {
    std::vector<inet_address> addresses;
    if (deadline_ns == no_deadline) {
        addresses = co_await resolve(host, port);
    } else {
        bool is_late = false;
        try {
            const std::chrono::steady_clock::time_point deadline{
                std::chrono::nanoseconds(deadline_ns)};
            addresses = co_await timeout_at(resolve(host, port), deadline);
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::timed_out) {
                throw;
            }
            is_late = true;
        }
        if (is_late) {
            throw_failure(std::make_error_code(std::errc::timed_out), name_of(host, port),
                          ": the name was not resolved in time");
        }
    }
    co_return co_await connect_to_any(name_of(host, port), interleave(addresses), deadline_ns);
}

task<socket> connect_within(std::string host, std::uint16_t port, std::int64_t ns) {
    const std::int64_t now = coil::detail::required_loop().now_ns();
    co_return co_await connect_by(std::move(host), port, coil::detail::deadline_after(now, ns));
}

} // namespace coil::net::detail

namespace coil::net {

task<socket> connect(std::string host, std::uint16_t port) {
    return detail::connect_by(std::move(host), port, detail::no_deadline);
}

} // namespace coil::net
