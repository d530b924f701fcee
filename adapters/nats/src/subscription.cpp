#include "client.hpp"

#include <coil/nats/subscription.hpp>

#include <memory>
#include <utility>

namespace coil::nats {

namespace detail {

std::string subscription_state::subscribe_line() const {
    return "SUB " + subject_ + ' ' + (queue_.empty() ? "" : queue_ + ' ') + std::to_string(sid_) +
           "\r\n";
}

void subscription_state::deliver(message m, std::size_t max_pending) {
    if (pending_.size() >= max_pending) {
        ++dropped_;
        return;
    }
    pending_.push_back(std::move(m));
    arrived_.set();
}

void subscription_state::end(std::string why) noexcept {
    client_ = nullptr;
    why_ = std::move(why);
    arrived_.set();
}

void subscription_state::unsubscribe() {
    if (client* const owner = std::exchange(client_, nullptr)) {
        owner->unsubscribe(sid_);
        arrived_.set();
    }
}

task<std::optional<message>> subscription_state::next() {
    while (pending_.empty()) {
        if (client_ == nullptr) {
            arrived_.set(); // for the next call
            if (!why_.empty()) {
                throw error(error::kind::connection, why_);
            }
            co_return std::nullopt;
        }
        co_await arrived_.wait();
    }
    message first = std::move(pending_.front());
    pending_.pop_front();
    co_return first;
}

} // namespace detail

subscription::subscription(std::unique_ptr<detail::subscription_state> state) noexcept
    : state_(std::move(state)) {}
subscription::subscription(subscription&&) noexcept = default;
subscription& subscription::operator=(subscription&&) noexcept = default;
subscription::~subscription() = default;

task<std::optional<message>> subscription::next() { return state_->next(); }
void subscription::unsubscribe() { state_->unsubscribe(); }
std::uint64_t subscription::dropped() const noexcept { return state_->dropped(); }

} // namespace coil::nats
