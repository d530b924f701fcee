#include "client.hpp"

#include <coil/nats/connection.hpp>

#include <memory>
#include <utility>

namespace coil::nats {

connection::connection(std::unique_ptr<detail::client> state) noexcept
    : client_(std::move(state)) {}
connection::connection(connection&&) noexcept = default;
connection& connection::operator=(connection&&) noexcept = default;
connection::~connection() = default;

task<connection> connection::connect(options how) {
    auto state = std::make_unique<detail::client>(std::move(how));
    co_await state->open();
    co_return connection(std::move(state));
}

task<> connection::publish(std::string subject, std::string payload, std::string reply_to) {
    co_await client_->publish(subject, payload, reply_to);
}

task<subscription> connection::subscribe(std::string subject, std::string queue) {
    detail::check_subject(subject, true);
    if (!queue.empty()) {
        detail::check_subject(queue, false);
    }
    const unsigned long sid = client_->next_sid();
    auto state = std::make_unique<detail::subscription_state>(*client_, sid, std::move(subject),
                                                              std::move(queue));
    client_->subscribe(*state, sid);
    co_return subscription(std::move(state));
}

task<message> connection::request(std::string subject, std::string payload,
                                  std::chrono::milliseconds limit) {
    co_return co_await client_->request(subject, payload, limit);
}

task<> connection::flush() { co_await client_->flush(); }

task<> connection::drain() {
    client_->unsubscribe_all();
    co_await client_->flush();
    client_->end("");
}

void connection::close() noexcept { client_->end(""); }
bool connection::is_connected() const noexcept { return client_->is_connected(); }
std::string connection::server() const { return client_->server(); }
std::uint64_t connection::reconnects() const noexcept { return client_->reconnects(); }

} // namespace coil::nats
