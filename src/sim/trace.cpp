#include "trace.hpp"

#include "opcode_names.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace coil::sim::detail {

/// Interned strings. A literal is looked up by its address first (known_), and only then, like all
/// other strings, by its content.
struct tracer::words {
    std::unordered_set<std::string> texts;
};

void tracer::words_deleter::operator()(words* w) const noexcept { delete w; }

namespace {

std::uint64_t hash_of(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash;
}

std::string error_name(std::int64_t result) {
    if (result >= 0 || result < -4095) {
        return std::to_string(result);
    }
    const char* const name = ::strerrorname_np(static_cast<int>(-result));
    return name != nullptr ? std::string("-") + name : std::to_string(result);
}

} // namespace

tracer::tracer(const world_options& options, const std::int64_t& now)
    : now_(now), most_(std::max<std::size_t>(options.trace_lines, 1)),
      print_(options.print_trace || std::getenv("COIL_SIM_TRACE") != nullptr), words_(new words) {}

tracer::word tracer::find(std::string_view text) {
    const auto found = words_->texts.emplace(text).first;
    return {found->c_str(), hash_of(text)};
}

void tracer::note(std::string_view text) {
    line l{};
    l.time = now_;
    l.text = find(text);
    l.host = no_host;
    l.fd = -1;
    l.what = kind::event;
    add(l);
}

void tracer::name_host(std::uint32_t host, std::string_view name) {
    if (hosts_.size() <= host) {
        hosts_.resize(host + 1);
    }
    hosts_[host] = name;
}

void tracer::add(const line& l) {
    mix(static_cast<std::uint64_t>(l.time));
    mix(l.a);
    mix(l.b);
    mix(static_cast<std::uint64_t>(l.result));
    mix(l.text.hash);
    mix(std::uint64_t{l.host} << 32 | l.context);
    mix(std::uint64_t{static_cast<std::uint32_t>(l.fd)} << 16 |
        static_cast<std::uint64_t>(l.what) << 8 | l.opcode);
    if (lines_.size() < most_) {
        lines_.push_back(l);
    } else {
        lines_[next_] = l;
        next_ = (next_ + 1) % most_;
    }
    if (print_) {
        std::string text;
        print(text, l);
        std::fputs(text.c_str(), stderr);
    }
}

void tracer::print(std::string& out, const line& l) const {
    char buf[160];
    std::snprintf(buf, sizeof buf, "%11.6f ms  ",
                  static_cast<double>(l.time - 1'000'000'000) / 1e6);
    out += buf;
    if (l.what == kind::fault) {
        out += "  fault: ";
        out += l.text.text;
        out += '\n';
        return;
    }
    std::string origin = l.host < hosts_.size() ? hosts_[l.host] : "world";
    if (l.what != kind::event) {
        origin += '.' + std::to_string(l.context);
    }
    std::snprintf(buf, sizeof buf, "%-12s ", origin.c_str());
    out += buf;
    if (l.what == kind::event) {
        out += l.text.text;
        if (l.a != 0 || l.b != 0) {
            std::snprintf(buf, sizeof buf, " %lld %lld", static_cast<long long>(l.a),
                          static_cast<long long>(l.b));
            out += buf;
        }
        out += '\n';
        return;
    }
    static constexpr const char* marks[] = {"-> ", "<- ", "!! ", "<+ ", "xx "};
    out += marks[static_cast<unsigned>(l.what)];
    out += opcode_name(l.opcode);
    out += '(';
    if (l.text.text != nullptr) {
        out += '"';
        out += l.text.text;
        out += '"';
    } else {
        out += l.fd >= first_descriptor ? '#' + std::to_string(l.fd - first_descriptor)
                                        : std::to_string(l.fd);
    }
    if (l.a != 0 || l.b != 0) {
        std::snprintf(buf, sizeof buf, ", %lld, %lld", static_cast<long long>(l.a),
                      static_cast<long long>(l.b));
        out += buf;
    }
    out += ')';
    if (l.what != kind::begin && l.what != kind::cancel) {
        out += " = " + error_name(l.result);
    }
    out += '\n';
}

std::string tracer::text() const {
    std::string out;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        print(out, lines_[(next_ + i) % lines_.size()]);
    }
    return out;
}

} // namespace coil::sim::detail
