#include "protocol.hpp"

#include <coil/hiredis/error.hpp>
#include <coil/net/connect.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdarg>
#include <new>
#include <stdexcept>
#include <system_error>

namespace coil::hiredis {

std::string_view reply_view::text() const {
    if (reply_ == nullptr || reply_->str == nullptr) {
        throw error("coil: hiredis: the reply is not a string but of type " +
                    std::to_string(reply_ == nullptr ? REDIS_REPLY_NIL : reply_->type));
    }
    return {reply_->str, static_cast<std::size_t>(reply_->len)};
}

long long reply_view::integer() const {
    if (reply_ == nullptr || reply_->type != REDIS_REPLY_INTEGER) {
        throw error("coil: hiredis: the reply is not an integer but of type " +
                    std::to_string(reply_ == nullptr ? REDIS_REPLY_NIL : reply_->type));
    }
    return reply_->integer;
}

reply_view reply_view::operator[](std::size_t index) const {
    if (index >= size()) {
        throw std::out_of_range("coil: hiredis: the reply has " + std::to_string(size()) +
                                " elements");
    }
    return reply_view(reply_->element[index]);
}

std::string options::name() const {
    const std::string at = host.starts_with("unix:") ? host : host + ':' + std::to_string(port);
    return at + '/' + std::to_string(database);
}

namespace detail {

std::string format_command(const char* format, ...) {
    char* text = nullptr;
    std::va_list args;
    va_start(args, format);
    const int size = ::redisvFormatCommand(&text, format, args);
    va_end(args);
    if (size == -1) {
        throw std::bad_alloc();
    }
    if (size < 0) {
        throw std::invalid_argument("coil: hiredis: malformed format \"" + std::string(format) +
                                    '"');
    }
    const std::unique_ptr<char, coil::detail::freed_by<&::redisFreeCommand>> owner(text);
    return {text, static_cast<std::size_t>(size)};
}

void append_size(std::string& out, char mark, std::size_t value) {
    std::array<char, 24> text; // NOLINT(*-member-init): filled by to_chars
    text[0] = mark;
    char* const end = std::to_chars(text.data() + 1, text.data() + text.size(), value).ptr;
    out.append(text.data(), end).append("\r\n");
}

void append_text(std::string& out, std::string_view text) {
    append_size(out, '$', text.size());
    out.append(text).append("\r\n");
}

bool parser::next(reply& out) {
    void* raw = nullptr;
    if (::redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
        throw error(reader_->errstr);
    }
    out = reply(static_cast<::redisReply*>(raw));
    return raw != nullptr;
}

task<net::socket> open_socket(const options& to) {
    std::string why;
    try {
        if (!to.host.starts_with("unix:")) {
            net::socket s = co_await net::connect(to.host, to.port);
            s.set_no_delay(true);
            co_return s;
        }
        net::socket s = net::socket::create_unix();
        (co_await s.connect(net::endpoint(to.host))).value();
        co_return s;
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::operation_canceled) {
            throw;
        }
        why = e.what();
    }
    throw connection_error(describe(to.name(), "connect", why));
}

namespace {

/// Removes a length such as "$12\r\n" from the beginning of `from`, and returns it. A single loop,
/// because this runs for each argument of each command: for a few digits it is faster than a search
/// for the end followed by std::from_chars.
std::size_t take_size(std::string_view& from) noexcept {
    std::size_t value = 0;
    std::size_t i = 1;
    for (; i < from.size() && from[i] != '\r'; ++i) {
        value = value * 10 + static_cast<std::size_t>(from[i] - '0');
    }
    from.remove_prefix(std::min(i + 2, from.size()));
    return value;
}

} // namespace

std::string_view take_verb(std::string_view& encoded) noexcept {
    std::string_view verb;
    const std::size_t count = take_size(encoded);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t size = take_size(encoded);
        if (i == 0) {
            verb = encoded.substr(0, size);
        }
        encoded.remove_prefix(size + 2);
    }
    return verb;
}

std::string describe(const std::string& server, std::string_view verb, std::string_view what) {
    std::string text = "coil: hiredis: " + server + ": ";
    text.append(verb).append(": ").append(what);
    return text;
}

} // namespace detail

} // namespace coil::hiredis
