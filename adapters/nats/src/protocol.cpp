#include "protocol.hpp"

#include <coil/nats/error.hpp>

#include <array>
#include <charconv>
#include <cstdio>

namespace coil::nats::detail {

namespace {

/// The text after `"name":` in a flat JSON object written by the server; empty if it is not there.
std::string_view member(std::string_view json, std::string_view name) {
    const std::string key = "\"" + std::string(name) + "\":";
    const std::size_t at = json.find(key);
    return at == std::string_view::npos ? std::string_view{} : json.substr(at + key.size());
}

template <class Number>
bool read_number(std::string_view text, Number& value) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
}

std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::array<char, 8> code{};
            std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(c));
            out += code.data();
        } else {
            out += c;
        }
    }
    return out + '"';
}

} // namespace

server_info parse_info(std::string_view json) {
    server_info info;
    std::string_view size = member(json, "max_payload");
    size = size.substr(0, size.find_first_not_of("0123456789"));
    if (std::size_t value = 0; read_number(size, value)) {
        info.max_payload = value;
    }
    info.tls_required = member(json, "tls_required").starts_with("true");
    std::string_view urls = member(json, "connect_urls"); // ["a:1","b:2"]
    while (urls.starts_with('[') || urls.starts_with(',')) {
        urls.remove_prefix(1);
        const std::size_t end = urls.find('"', 1);
        if (!urls.starts_with('"') || end == std::string_view::npos) {
            break;
        }
        info.cluster.emplace_back(urls.substr(1, end - 1));
        urls.remove_prefix(end + 1);
    }
    return info;
}

std::optional<delivery> parse_delivery(std::string_view arguments, bool has_headers) noexcept {
    std::array<std::string_view, 5> word;
    std::size_t words = 0;
    while (!arguments.empty()) {
        const std::size_t end = arguments.find_first_of(" \t");
        if (end != 0) {
            if (words == word.size()) {
                return std::nullopt;
            }
            word[words++] = arguments.substr(0, end);
        }
        arguments.remove_prefix(end == std::string_view::npos ? arguments.size() : end + 1);
    }
    const std::size_t sizes = has_headers ? 2 : 1;
    delivery found;
    if (words != 2 + sizes && words != 3 + sizes) {
        return std::nullopt;
    }
    found.subject = word[0];
    if (words == 3 + sizes) {
        found.reply_to = word[2];
    }
    if (!read_number(word[1], found.sid) || !read_number(word[words - 1], found.size) ||
        (has_headers && !read_number(word[words - 2], found.header_size)) ||
        found.header_size > found.size) {
        return std::nullopt;
    }
    return found;
}

host_port parse_server(std::string_view server) {
    std::string_view text = server;
    if (text.starts_with("nats://")) {
        text.remove_prefix(7);
    }
    const std::size_t colon = text.rfind(':');
    std::string_view host = text.substr(0, colon);
    unsigned short port = 4222;
    const bool has_port = colon != std::string_view::npos && !text.ends_with(']');
    if (!has_port) {
        host = text;
    }
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    if (host.empty() || (has_port && !read_number(text.substr(colon + 1), port))) {
        throw error(error::kind::invalid,
                    "\"" + std::string(server) + "\" is not the address of a server: host:port");
    }
    return {std::string(host), port};
}

std::string connect_line(const options& how) {
    std::string line = R"(CONNECT {"verbose":false,"pedantic":false,"tls_required":false,)"
                       R"("lang":"c++","version":"0.1","protocol":1,"headers":true,)"
                       R"("no_responders":true)";
    const auto add = [&line](const char* name, const std::string& value) {
        if (!value.empty()) {
            line += std::string(",\"") + name + "\":" + json_string(value);
        }
    };
    add("name", how.name);
    add("user", how.user);
    add("pass", how.password);
    add("auth_token", how.token);
    return line + "}\r\n";
}

void check_subject(std::string_view subject, bool wildcards) {
    bool valid = !subject.empty();
    for (std::size_t begin = 0; valid && begin <= subject.size();) {
        std::size_t end = subject.find('.', begin);
        end = end == std::string_view::npos ? subject.size() : end;
        const std::string_view token = subject.substr(begin, end - begin);
        for (const char c : token) {
            valid = valid && static_cast<unsigned char>(c) > ' ' && c != 127;
        }
        const bool wild = token == "*" || token == ">";
        valid = valid && !token.empty() && (!wild || wildcards) &&
                (token != ">" || end == subject.size());
        begin = end + 1;
    }
    if (!valid) {
        throw error(error::kind::invalid, "\"" + std::string(subject) + "\" is not a subject" +
                                              (wildcards ? "" : " to publish to"));
    }
}

} // namespace coil::nats::detail
