#include "client.hpp"

#include <coil/compose/timeout.hpp>
#include <coil/compose/when_any.hpp>
#include <coil/context/sleep.hpp>
#include <coil/net/connect.hpp>

#include <algorithm>
#include <charconv>
#include <random>
#include <system_error>
#include <utility>

namespace coil::nats::detail {

namespace {

constexpr unsigned long inbox_sid = 1;
constexpr std::size_t longest_line = 64 * 1024; // INFO of a large cluster

bool is_cancellation(const std::system_error& e) noexcept {
    return e.code() == std::errc::operation_canceled;
}

std::string random_inbox() {
    std::random_device random;
    std::string name = "_INBOX.";
    for (int i = 0; i < 22; ++i) {
        name += "0123456789abcdefghijklmnopqrstuvwxyz"[random() % 36];
    }
    return name;
}

} // namespace

client::client(options how)
    : how_(std::move(how)), servers_(how_.servers), inbox_(random_inbox()) {}

error client::failure(error::kind why, const std::string& text) const {
    return {why, server_ + ": " + text};
}

void client::check_open() const {
    if (ended_) {
        throw failure(error::kind::connection,
                      why_ended_.empty() ? "the connection is closed" : why_ended_);
    }
}

// ---- connecting

task<> client::open() {
    if (std::string why = co_await dial_any(); !connected_) {
        throw error(error::kind::connection, "no server accepts the connection: " + why);
    }
    background_.emplace();
    background_->spawn(stay_connected(), "nats");
}

/// Tries each server once. Returns why they failed, if no connection was established.
task<std::string> client::dial_any() {
    std::string why;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
        const std::string server = servers_[i];
        try {
            co_await timeout(dial(server), how_.connect_timeout);
            // After a loss of this connection, its server is tried last.
            std::rotate(servers_.begin(), servers_.begin() + std::ptrdiff_t(i) + 1, servers_.end());
            co_return "";
        } catch (const std::system_error& e) {
            if (is_cancellation(e)) {
                throw;
            }
            why += (why.empty() ? "" : "; ") + server + ": " + e.what();
        } catch (const error& e) {
            why += (why.empty() ? "" : "; ") + std::string(e.what());
        }
        in_.reset();
        socket_.reset();
    }
    co_return why.empty() ? "there is no server in the options" : why;
}

task<> client::dial(const std::string& server) {
    const auto [host, port] = parse_server(server);
    server_ = server;
    in_.reset();
    socket_.emplace(co_await net::connect(host, port));
    socket_->set_no_delay(true);
    in_.emplace(*socket_);
    co_await greet();
    connected_ = true;
}

task<> client::greet() {
    const std::string hello = co_await read_line();
    if (!hello.starts_with("INFO ")) {
        throw failure(error::kind::protocol, "does not answer as a NATS server does");
    }
    info_ = parse_info(std::string_view(hello).substr(5));
    for (const std::string& other : info_.cluster) {
        if (std::find(servers_.begin(), servers_.end(), other) == servers_.end()) {
            servers_.push_back(other);
        }
    }
    if (info_.tls_required) {
        throw failure(error::kind::refused, "requires TLS, which is not supported");
    }
    std::string text = connect_line(how_) + "PING\r\n";
    if (has_inbox_) {
        text += "SUB " + inbox_ + ".* " + std::to_string(inbox_sid) + "\r\n";
    }
    for (const auto& [sid, subscription] : subscriptions_) {
        text += subscription->subscribe_line();
    }
    (co_await socket_->send_all(text)).value();
    for (std::string line = co_await read_line(); line != "PONG"; line = co_await read_line()) {
        if (line.starts_with("-ERR")) {
            throw failure(error::kind::refused, line.substr(std::min<std::size_t>(5, line.size())));
        }
    }
}

task<> client::stay_connected() {
    do {
        try {
            co_await when_any(receive(), send(), ping());
        } catch (const std::system_error& e) {
            if (is_cancellation(e)) {
                throw;
            }
            why_ended_ = std::string("the connection was lost: ") + e.what();
        } catch (const error& e) {
            why_ended_ = e.what();
        }
        lose_connection();
    } while (co_await reconnect());
    const std::string why = why_ended_.empty() ? "the connection was lost" : why_ended_;
    ended_ = true;
    why_ended_ = why;
    end_subscriptions(why);
    has_room_.set();
}

task<bool> client::reconnect() {
    for (int round = 0; round < how_.max_reconnects; ++round) {
        if (round > 0) {
            (co_await sleep_for(how_.reconnect_wait)).value();
        }
        const std::string why = co_await dial_any();
        if (connected_) {
            ++reconnects_;
            why_ended_.clear();
            has_output_.set();
            co_return true;
        }
        why_ended_ = "the connection was lost and not restored: " + why;
    }
    co_return false;
}

void client::lose_connection() noexcept {
    connected_ = false;
    sending_.clear(); // a part of it may have been received
    const std::size_t unsent = unsent_pings_;
    const std::size_t lost = pongs_.size() - std::min(pongs_.size(), unsent);
    for (pong* waiter : pongs_) {
        if (waiter != nullptr) {
            waiter->lost = true;
            waiter->arrived.set();
        }
    }
    // The PINGs that are still in out_ will be answered by the next server.
    pongs_.erase(pongs_.begin(), pongs_.begin() + static_cast<std::ptrdiff_t>(lost));
    std::fill(pongs_.begin(), pongs_.end(), nullptr);
}

// ---- a connection

task<std::string> client::read_line() {
    const auto line = co_await in_->read_until('\n', longest_line);
    if (!line || !in_->delimited()) {
        throw failure(error::kind::connection, "the server has closed the connection");
    }
    co_return std::string(line->substr(0, line->size() - (line->ends_with('\r') ? 1 : 0)));
}

task<> client::receive() {
    for (;;) {
        const std::string line = co_await read_line();
        const std::string_view text = line;
        if (text.starts_with("MSG ")) {
            co_await receive_message(text.substr(4), false);
        } else if (text.starts_with("HMSG ")) {
            co_await receive_message(text.substr(5), true);
        } else if (text == "PING") {
            append("PONG\r\n");
        } else if (text == "PONG") {
            if (!pongs_.empty()) {
                if (pongs_.front() != nullptr) {
                    pongs_.front()->arrived.set();
                }
                pongs_.pop_front();
            }
        } else if (text.starts_with("INFO ")) {
            info_ = parse_info(text.substr(5));
        } else if (text.starts_with("-ERR")) {
            // Permission errors do not end the connection.
            if (text.find("Permissions Violation") == std::string_view::npos) {
                throw failure(error::kind::refused,
                              line.substr(std::min<std::size_t>(5, line.size())));
            }
        } else if (text != "+OK") {
            throw failure(error::kind::protocol, "sent \"" + line.substr(0, 40) + "\"");
        }
    }
}

task<> client::receive_message(std::string_view arguments, bool has_headers) {
    const std::optional<delivery> what = parse_delivery(arguments, has_headers);
    if (!what || what->size > (std::size_t{64} << 20)) {
        throw failure(error::kind::protocol, "sent a malformed message");
    }
    message m{std::string(what->subject), std::string(what->reply_to), {}, {}};
    m.headers.resize(what->header_size);
    m.payload.resize(what->size - what->header_size);
    char end[2];
    (co_await in_->read_exact(m.headers)).value();
    (co_await in_->read_exact(m.payload)).value();
    (co_await in_->read_exact(end)).value();
    dispatch(what->sid, std::move(m));
}

void client::dispatch(unsigned long sid, message m) {
    if (sid == inbox_sid) {
        const std::string_view token = std::string_view(m.subject).substr(m.subject.rfind('.') + 1);
        std::uint64_t number = 0;
        std::from_chars(token.data(), token.data() + token.size(), number);
        if (const auto found = requests_.find(number); found != requests_.end()) {
            found->second->send(std::move(m));
            requests_.erase(found);
        }
        return;
    }
    if (const auto found = subscriptions_.find(sid); found != subscriptions_.end()) {
        found->second->deliver(std::move(m), how_.max_pending);
    }
}

task<> client::send() {
    for (;;) {
        while (out_.empty()) {
            co_await has_output_.wait();
        }
        sending_.swap(out_);
        unsent_pings_ = 0;
        has_room_.set();
        (co_await socket_->send_all(sending_)).value();
        sending_.clear();
    }
}

task<> client::ping() {
    for (;;) {
        (co_await sleep_for(how_.ping_interval)).value();
        if (pongs_.size() >= 2) {
            throw failure(error::kind::connection, "two PINGs are unanswered");
        }
        expect_pong(nullptr);
    }
}

void client::append(std::string_view text) {
    out_ += text;
    has_output_.set();
    if (out_.size() > how_.max_unsent) {
        has_room_.reset();
    }
}

void client::expect_pong(pong* waiter) {
    pongs_.push_back(waiter);
    ++unsent_pings_;
    append("PING\r\n");
}

// ---- using the connection

task<> client::publish(const std::string& subject, const std::string& payload,
                       const std::string& reply_to) {
    check_subject(subject, false);
    if (!reply_to.empty()) {
        check_subject(reply_to, false);
    }
    if (payload.size() > info_.max_payload) {
        throw failure(error::kind::invalid, "a message of " + std::to_string(payload.size()) +
                                                " bytes for " + subject + " is larger than " +
                                                std::to_string(info_.max_payload));
    }
    check_open();
    while (!has_room_.is_set()) {
        co_await has_room_.wait();
    }
    check_open();
    std::string head = "PUB " + subject + ' ';
    if (!reply_to.empty()) {
        head += reply_to + ' ';
    }
    head += std::to_string(payload.size()) + "\r\n";
    out_.reserve(out_.size() + head.size() + payload.size() + 2);
    append(head);
    append(payload);
    append("\r\n");
}

task<> client::flush() {
    check_open();
    pong answer;
    struct leave {
        std::deque<pong*>& waiting;
        pong* mine;
        ~leave() {
            std::replace(waiting.begin(), waiting.end(), mine, static_cast<pong*>(nullptr));
        }
    } const guard{pongs_, &answer};
    expect_pong(&answer);
    co_await answer.arrived.wait();
    if (answer.lost) {
        throw failure(error::kind::connection,
                      "the connection was lost before the server had confirmed");
    }
}

task<message> client::request(const std::string& subject, const std::string& payload,
                              std::chrono::milliseconds limit) {
    check_open();
    if (!std::exchange(has_inbox_, true)) {
        append("SUB " + inbox_ + ".* " + std::to_string(inbox_sid) + "\r\n");
    }
    const std::uint64_t number = ++last_request_;
    oneshot<message> answer;
    struct leave {
        std::map<std::uint64_t, oneshot<message>*>& all;
        std::uint64_t number;
        ~leave() { all.erase(number); }
    } const guard{requests_, number};
    requests_.emplace(number, &answer);
    co_await publish(subject, payload, inbox_ + '.' + std::to_string(number));
    std::optional<message> m = co_await timeout(answer.recv(), limit);
    if (!m) {
        throw failure(error::kind::connection,
                      why_ended_.empty() ? "the connection was closed" : why_ended_);
    }
    if (m->headers.starts_with("NATS/1.0 503")) {
        throw failure(error::kind::no_responders, "nothing answers requests to " + subject);
    }
    co_return std::move(*m);
}

void client::subscribe(subscription_state& subscription, unsigned long sid) {
    check_open();
    append(subscription.subscribe_line());
    subscriptions_.emplace(sid, &subscription);
}

void client::unsubscribe(unsigned long sid) {
    if (subscriptions_.erase(sid) > 0 && !ended_) {
        append("UNSUB " + std::to_string(sid) + "\r\n");
    }
}

void client::unsubscribe_all() {
    for (const auto& [sid, subscription] : subscriptions_) {
        append("UNSUB " + std::to_string(sid) + "\r\n");
    }
}

void client::end_subscriptions(const std::string& why) noexcept {
    for (const auto& [sid, subscription] : std::exchange(subscriptions_, {})) {
        subscription->end(why);
    }
    for (const auto& [number, answer] : std::exchange(requests_, {})) {
        answer->close();
    }
}

void client::end(const std::string& why) noexcept {
    if (background_) {
        background_->cancel();
    }
    if (!std::exchange(ended_, true)) {
        why_ended_ = why;
    }
    lose_connection();
    end_subscriptions(why);
    has_room_.set();
}

} // namespace coil::nats::detail
