#include "protocol.hpp"

#include <coil/compose/scope.hpp>
#include <coil/hiredis/connection.hpp>
#include <coil/hiredis/error.hpp>
#include <coil/sync/event.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <strings.h>
#include <sys/socket.h>

namespace coil::hiredis::detail {

/// The replies that one task awaits. It lives in the task's frame; if that is destroyed first, the
/// replies are discarded when they arrive.
class exchange {
public:
    exchange(wire& on, const std::string& encoded, std::span<reply> replies);
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    ~exchange();

    [[nodiscard]] auto wait() noexcept { return ended_.wait(); }
    /// Throws if the connection broke.
    void check() const;

    void deliver(reply value) noexcept {
        replies_[received_++] = std::move(value);
        if (received_ == replies_.size()) {
            ended_.set();
        }
    }
    void fail() noexcept { ended_.set(); }

private:
    wire& wire_;
    const std::string& encoded_;
    std::span<reply> replies_;
    std::size_t received_ = 0;
    std::uint64_t number_;
    event ended_;
};

/// A connection: commands to send, replies to assign, and the two tasks that move the bytes.
class wire {
public:
    wire(net::socket connected, std::string server)
        : socket_(std::move(connected)), server_(std::move(server)) {
        tasks_.emplace();
        tasks_->spawn(receive(), "hiredis receive");
        tasks_->spawn(send(), "hiredis send");
    }

    std::uint64_t enqueue(exchange& by, const std::string& encoded, std::size_t count) {
        note_state(encoded, count);
        outstanding_.push_back({&by, count});
        try {
            output_ += encoded;
        } catch (...) {
            outstanding_.pop_back();
            throw;
        }
        has_output_.set();
        return first_ + outstanding_.size() - 1;
    }
    void abandon(std::uint64_t number) noexcept {
        if (number >= first_ && number - first_ < outstanding_.size()) {
            outstanding_[number - first_].by = nullptr;
        }
    }
    /// Ends the outstanding commands and refuses later ones.
    void fail(std::string reason) noexcept {
        if (!failure_) {
            failure_ = std::move(reason);
            ::shutdown(socket_.native_handle(), SHUT_RDWR);
        }
        for (const pending& each : std::exchange(outstanding_, {})) {
            if (each.by != nullptr) {
                each.by->fail();
            }
        }
        has_output_.set(); // ends send()
    }
    void close() noexcept {
        fail("the connection was closed");
        if (tasks_) {
            tasks_->cancel();
            tasks_.reset();
        }
    }

    [[nodiscard]] const std::optional<std::string>& failure() const noexcept { return failure_; }
    [[nodiscard]] bool is_clean() const noexcept {
        return !failure_ && outstanding_.empty() && !in_transaction_ && !is_altered_;
    }
    void set_clean() noexcept { is_altered_ = false; }
    [[nodiscard]] const std::string& server() const noexcept { return server_; }

private:
    struct pending {
        exchange* by; // null: abandoned
        std::size_t left;
    };

    void note_state(std::string_view encoded, std::size_t count);
    void dispatch(reply value);
    task<> receive();
    task<> send();

    net::socket socket_;
    std::string server_;
    parser parser_;
    std::array<char, 16384> input_; // NOLINT(*-member-init): a receive buffer
    std::string output_;
    std::string sending_;
    auto_reset_event has_output_;
    std::deque<pending> outstanding_;
    std::uint64_t first_ = 0; // the number of the first outstanding exchange
    std::optional<std::string> failure_;
    bool in_transaction_ = false;
    bool is_altered_ = false;
    std::optional<scope> tasks_; // last: they use the other members
};

exchange::exchange(wire& on, const std::string& encoded, std::span<reply> replies)
    : wire_(on), encoded_(encoded), replies_(replies) {
    if (wire_.failure()) {
        check();
    }
    number_ = wire_.enqueue(*this, encoded, replies.size());
}

exchange::~exchange() {
    if (received_ < replies_.size()) {
        wire_.abandon(number_);
    }
}

void exchange::check() const {
    if (received_ < replies_.size()) {
        std::string_view all = encoded_;
        throw connection_error(describe(wire_.server(), take_verb(all), *wire_.failure()));
    }
}

namespace {

bool is_one_of(std::string_view verb, std::initializer_list<std::string_view> names) noexcept {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
        return verb.size() == name.size() &&
               ::strncasecmp(verb.data(), name.data(), name.size()) == 0;
    });
}

} // namespace

/// Follows the commands that change the session, and refuses those that break the assignment of one
/// reply to each command.
void wire::note_state(std::string_view encoded, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::string_view verb = take_verb(encoded);
        if (verb.size() < 4) {
            continue; // GET, SET, DEL, ...
        }
        if (is_one_of(verb, {"MULTI", "WATCH"})) {
            in_transaction_ = true;
        } else if (is_one_of(verb, {"EXEC", "DISCARD", "UNWATCH"})) {
            in_transaction_ = false;
        } else if (is_one_of(verb, {"SELECT", "AUTH", "HELLO", "CLIENT", "READONLY", "ASKING"})) {
            is_altered_ = true;
        } else if (is_one_of(verb, {"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC"})) {
            throw std::invalid_argument("coil: hiredis: " + std::string(verb) +
                                        " has more than one reply: see hiredis::subscriber");
        }
    }
}

void wire::dispatch(reply value) {
    if (outstanding_.empty()) {
        throw error(value.is_error() ? std::string(value.text())
                                     : "the server sent a reply without a command");
    }
    pending& first = outstanding_.front();
    if (first.by != nullptr) {
        first.by->deliver(std::move(value));
    }
    if (--first.left == 0) {
        outstanding_.pop_front();
        ++first_;
    }
}

task<> wire::receive() {
    try {
        for (;;) {
            const int n = co_await socket_.recv(input_);
            if (n <= 0) {
                fail(n == 0 ? "the server closed the connection"
                            : std::generic_category().message(-n));
                co_return;
            }
            parser_.feed({input_.data(), static_cast<std::size_t>(n)});
            for (reply next; parser_.next(next);) {
                dispatch(std::move(next));
            }
        }
    } catch (const std::exception& e) {
        fail(e.what());
    }
}

task<> wire::send() {
    constexpr std::size_t kept = 65536;
    while (!failure_) {
        if (output_.empty()) {
            co_await has_output_.wait();
            continue;
        }
        std::swap(sending_, output_);
        const int n = co_await socket_.send_all(sending_);
        if (n < 0) {
            fail(std::generic_category().message(-n));
            co_return;
        }
        sending_.clear();
        if (sending_.capacity() > kept) {
            sending_.shrink_to_fit();
        }
    }
}

task<reply> run_command(std::shared_ptr<wire> on, std::string encoded) {
    reply result;
    exchange replies(*on, encoded, {&result, 1});
    co_await replies.wait();
    replies.check();
    if (result.is_error()) {
        std::string_view all = encoded;
        throw command_error(describe(on->server(), take_verb(all), result.text()));
    }
    co_return result;
}

task<std::vector<reply>> run_pipeline(std::shared_ptr<wire> on, std::string encoded,
                                      std::size_t count) {
    std::vector<reply> result(count);
    if (count > 0) {
        exchange replies(*on, encoded, result);
        co_await replies.wait();
        replies.check();
    }
    co_return result;
}

} // namespace coil::hiredis::detail

namespace coil::hiredis {

task<connection> connection::connect(options to) {
    net::socket s = co_await detail::open_socket(to);
    connection c(std::make_shared<detail::wire>(std::move(s), to.name()));
    pipeline setup = c.pipelined();
    if (!to.password.empty()) {
        to.user.empty() ? setup.call("AUTH", to.password)
                        : setup.call("AUTH", to.user, to.password);
    }
    if (to.database != 0) {
        setup.call("SELECT", to.database);
    }
    for (const reply& r : co_await std::move(setup).execute()) {
        if (r.is_error()) {
            throw command_error(detail::describe(to.name(), "connect", r.text()));
        }
    }
    c.wire_->set_clean();
    co_return c;
}

connection::~connection() {
    if (wire_) {
        wire_->close();
    }
}

bool connection::is_open() const noexcept { return wire_ && !wire_->failure(); }

bool connection::is_clean() const noexcept { return wire_ && wire_->is_clean(); }

const std::string& connection::server() const noexcept { return wire_->server(); }

} // namespace coil::hiredis
