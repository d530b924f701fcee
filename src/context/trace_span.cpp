#include "trace_recorder.hpp"

#include <coil/context/detail/probes.hpp>
#include <coil/context/trace.hpp>

#include <array>
#include <charconv>
#include <cstdio>
#include <mutex>
#include <random>
#include <shared_mutex>

namespace coil {

namespace {

constinit std::shared_mutex exporter_mutex;
constinit span_exporter* exporter = nullptr;
constinit std::atomic<bool> has_exporter = false;

/// A random number other than 0, which is not a valid id.
std::uint64_t random_id() {
    thread_local std::mt19937_64 random = [] {
        std::random_device source;
        std::seed_seq seed{source(), source(), source(), source()};
        return std::mt19937_64(seed);
    }();
    return random() | 1U;
}

/// Accepts lower case only, as the format requires.
bool parse_hex(std::string_view text, std::uint64_t& to) noexcept {
    to = 0;
    for (const char c : text) {
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) {
            return false;
        }
        to = to << 4U | static_cast<std::uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
    }
    return true;
}

} // namespace

std::optional<trace_context> trace_context::parse(std::string_view text) noexcept {
    constexpr std::size_t size = 55; // 00-TRACE-SPAN-FLAGS; later versions may append fields
    if (text.size() < size || text[2] != '-' || text[35] != '-' || text[52] != '-') {
        return std::nullopt;
    }
    std::uint64_t version = 0;
    std::uint64_t flags = 0;
    trace_context context;
    if (!parse_hex(text.substr(0, 2), version) || version == 0xff ||
        !parse_hex(text.substr(3, 16), context.trace_high) ||
        !parse_hex(text.substr(19, 16), context.trace_low) ||
        !parse_hex(text.substr(36, 16), context.span) || !parse_hex(text.substr(53, 2), flags) ||
        (context.trace_high == 0 && context.trace_low == 0) || context.span == 0) {
        return std::nullopt;
    }
    if (text.size() > size && (version == 0 || text[size] != '-')) {
        return std::nullopt;
    }
    context.sampled = (flags & 1U) != 0;
    return context;
}

std::string trace_context::to_string() const {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "00-%016llx%016llx-%016llx-%02x",
                  static_cast<unsigned long long>(trace_high),
                  static_cast<unsigned long long>(trace_low), static_cast<unsigned long long>(span),
                  sampled ? 1U : 0U);
    return text.data();
}

void set_span_exporter(span_exporter* wanted) noexcept {
    const std::unique_lock lock(exporter_mutex);
    exporter = wanted;
    has_exporter = wanted != nullptr;
}

trace_span::trace_span(std::string name) : trace_span(std::move(name), std::nullopt) {}

trace_span::trace_span(std::string name, const std::optional<trace_context>& parent) {
    span_.name = std::move(name);
    if (parent) {
        span_.context = *parent;
        span_.parent = parent->span;
    } else {
        span_.context.trace_high = random_id();
        span_.context.trace_low = random_id();
    }
    span_.context.span = random_id();
    span_.begin = std::chrono::steady_clock::now();
}

trace_span& trace_span::operator=(trace_span&& other) noexcept {
    if (this != &other) {
        end();
        span_ = std::move(other.span_);
        is_open_ = std::exchange(other.is_open_, false);
    }
    return *this;
}

void trace_span::set_attribute(std::string key, std::string value) {
    span_.attributes.emplace_back(std::move(key), std::move(value));
}

void trace_span::end() noexcept {
    if (!std::exchange(is_open_, false)) {
        return;
    }
    if (detail::is_tracing()) {
        const auto begin =
            std::chrono::duration_cast<std::chrono::nanoseconds>(span_.begin.time_since_epoch());
        detail::record_span({span_.name, begin.count(), span_.context.trace_high,
                             span_.context.trace_low, span_.context.span, span_.parent,
                             span_.context.sampled});
    }
    if (has_exporter.load(std::memory_order_relaxed)) {
        span_.end = std::chrono::steady_clock::now();
        const std::shared_lock lock(exporter_mutex);
        if (exporter != nullptr) {
            exporter->on_end(span_);
        }
    }
}

} // namespace coil
