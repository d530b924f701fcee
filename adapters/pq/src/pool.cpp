#include <coil/compose/time_limit.hpp>
#include <coil/pq/pool.hpp>

#include <optional>
#include <system_error>

namespace coil::pq {

pool::pool(std::string conninfo, pool_options options)
    : conninfo_(std::move(conninfo)), options_(std::move(options)),
      permits_(static_cast<std::ptrdiff_t>(options_.size)) {
    idle_.reserve(options_.size);
}

task<pool::lease> pool::acquire() {
    auto permit = co_await permits_.acquire_guard();
    for (;;) {
        std::optional<idle_connection> candidate;
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                candidate.emplace(std::move(idle_.back()));
                idle_.pop_back();
            }
        }
        if (!candidate) {
            break;
        }
        if (co_await check(*candidate)) {
            co_return lease(*this, std::move(permit), std::move(candidate->c));
        }
    }
    connection c = co_await connection::connect(conninfo_, options_.connection);
    if (options_.on_connect) {
        co_await options_.on_connect(c);
    }
    co_return lease(*this, std::move(permit), std::move(c));
}

task<bool> pool::check(idle_connection& candidate) {
    if (!candidate.c.is_reusable()) {
        co_return false;
    }
    if (std::chrono::steady_clock::now() - candidate.since < options_.check_after) {
        co_return true;
    }
    try {
        co_await timeout(candidate.c.session_->probe(), options_.check_limit);
        co_return true;
    } catch (const error&) { // NOLINT(bugprone-empty-catch): it is not usable
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::timed_out) {
            throw;
        }
    }
    co_return false;
}

task<result> pool::run(std::string sql, parameters values) {
    lease c = co_await acquire();
    co_return co_await c->query(std::move(sql), std::move(values));
}

void pool::give_back(connection c) noexcept {
    if (c.is_reusable()) {
        const std::lock_guard lock(mutex_);
        idle_.push_back({std::move(c), std::chrono::steady_clock::now()}); // reserved
    }
}

std::size_t pool::idle() const {
    const std::lock_guard lock(mutex_);
    return idle_.size();
}

void pool::close_idle() {
    std::vector<idle_connection> closing;
    closing.reserve(options_.size);
    const std::lock_guard lock(mutex_);
    idle_.swap(closing);
}

} // namespace coil::pq
