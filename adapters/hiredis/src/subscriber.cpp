#include "protocol.hpp"

#include <coil/compose/shield.hpp>
#include <coil/hiredis/error.hpp>
#include <coil/hiredis/subscriber.hpp>
#include <coil/sync/mutex.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace coil::hiredis {

/// Tasks take turns in reading from the socket. Each reads one reply and passes it to the task that
/// waits for it, which may be another one.
class subscriber::state {
public:
    state(net::socket connected, std::string server)
        : socket_(std::move(connected)), server_(std::move(server)) {}

    /// Sends a command and awaits `count` confirmations of the server.
    task<> confirmed(std::string encoded, std::size_t count) {
        const auto mine = std::make_shared<confirmation>(confirmation{count, {}});
        {
            const auto guard = co_await sending_.lock_guard();
            if (partly_sent_) {
                throw connection_error(detail::describe(server_, verb_of(encoded),
                                                        "an earlier command was sent in part"));
            }
            partly_sent_ = true;
            awaited_.push_back(mine);
            // A part of a command cannot be taken back, so a stop request does not end sending.
            if (const int n = co_await shield(socket_.send_all(encoded)); n < 0) {
                throw connection_error(detail::describe(server_, verb_of(encoded),
                                                        std::generic_category().message(-n)));
            }
            partly_sent_ = false;
        }
        while (mine->left > 0) {
            const auto guard = co_await reading_.lock_guard();
            if (mine->left > 0) {
                co_await read_one(verb_of(encoded));
            }
        }
        if (mine->refusal) {
            throw command_error(detail::describe(server_, verb_of(encoded), *mine->refusal));
        }
    }

    async_generator<message> messages() {
        for (;;) {
            while (!received_.empty()) {
                message next = std::move(received_.front());
                received_.pop_front();
                co_yield std::move(next);
            }
            // The lock is released after each reply, because that may be the confirmation for which
            // another task waits.
            const auto guard = co_await reading_.lock_guard();
            if (received_.empty()) {
                co_await read_one("messages");
            }
        }
    }

private:
    struct confirmation {
        std::size_t left;
        std::optional<std::string> refusal;
    };

    static std::string_view verb_of(std::string_view encoded) noexcept {
        return detail::take_verb(encoded);
    }

    task<> read_one(std::string_view verb) {
        try {
            reply next;
            while (!parser_.next(next)) {
                const int n = co_await socket_.recv(input_);
                if (n == -ECANCELED) {
                    throw std::system_error(std::make_error_code(std::errc::operation_canceled));
                }
                if (n <= 0) {
                    throw error(n == 0 ? "the server closed the connection"
                                       : std::generic_category().message(-n));
                }
                parser_.feed({input_.data(), static_cast<std::size_t>(n)});
            }
            dispatch(next);
        } catch (const error& e) {
            throw connection_error(detail::describe(server_, verb, e.what()));
        }
    }
    void dispatch(const reply& value);

    net::socket socket_;
    std::string server_;
    detail::parser parser_;
    std::array<char, 16384> input_; // NOLINT(*-member-init): a receive buffer
    std::deque<message> received_;
    std::deque<std::shared_ptr<confirmation>> awaited_;
    mutex sending_;
    mutex reading_;
    bool partly_sent_ = false;
};

void subscriber::state::dispatch(const reply& value) {
    const std::string_view kind = value.size() > 0 ? value[0].text() : std::string_view();
    if (kind == "message" && value.size() == 3) {
        received_.push_back({std::string(value[1].text()), {}, std::string(value[2].text())});
    } else if (kind == "pmessage" && value.size() == 4) {
        received_.push_back({std::string(value[2].text()), std::string(value[1].text()),
                             std::string(value[3].text())});
    } else if (awaited_.empty()) {
        throw error(value.is_error() ? std::string(value.text())
                                     : "the server sent an unexpected reply");
    } else {
        confirmation& first = *awaited_.front();
        if (value.is_error()) {
            first.refusal = value.text();
            first.left = 1;
        }
        if (--first.left == 0) {
            awaited_.pop_front();
        }
    }
}

subscriber::subscriber(std::unique_ptr<state> s) noexcept : state_(std::move(s)) {}
subscriber::subscriber(subscriber&&) noexcept = default;
subscriber& subscriber::operator=(subscriber&&) noexcept = default;
subscriber::~subscriber() = default;

task<subscriber> subscriber::connect(options to) {
    net::socket s = co_await detail::open_socket(to);
    auto connected = std::make_unique<state>(std::move(s), to.name());
    if (!to.password.empty()) {
        co_await connected->confirmed(to.user.empty()
                                          ? detail::encode("AUTH", to.password)
                                          : detail::encode("AUTH", to.user, to.password),
                                      1);
    }
    co_return subscriber(std::move(connected));
}

task<> subscriber::subscribe(const std::vector<std::string>& channels) {
    return state_->confirmed(detail::encode("SUBSCRIBE", channels), channels.size());
}
task<> subscriber::unsubscribe(const std::vector<std::string>& channels) {
    return state_->confirmed(detail::encode("UNSUBSCRIBE", channels), channels.size());
}
task<> subscriber::psubscribe(const std::vector<std::string>& patterns) {
    return state_->confirmed(detail::encode("PSUBSCRIBE", patterns), patterns.size());
}
task<> subscriber::punsubscribe(const std::vector<std::string>& patterns) {
    return state_->confirmed(detail::encode("PUNSUBSCRIBE", patterns), patterns.size());
}

async_generator<message> subscriber::messages() { return state_->messages(); }

} // namespace coil::hiredis
