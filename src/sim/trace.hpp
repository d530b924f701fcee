#pragma once

#include <coil/sim/options.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace coil::sim::detail {

/// The trace of a world: a hash of all events, and the most recent ones in readable form. Events
/// are stored as numbers and formatted on demand.
class tracer {
public:
    tracer(const world_options& options, const std::int64_t& now);

    enum class kind : std::uint8_t { begin, end, direct, part, cancel, fault, event };

    /// A call through a ring or, `direct`, made synchronously by a coroutine.
    void call(kind what, std::uint32_t host, std::uint32_t context, std::uint8_t opcode, int fd,
              std::uint64_t a, std::uint64_t b, std::int64_t result, const char* text = nullptr) {
        add({now_, a, b, result, intern(text), host, context, fd, what, opcode});
    }
    void fault(const char* what) { add({now_, 0, 0, 0, literal(what), 0, 0, -1, kind::fault, 0}); }
    /// Any other event: `what` with two numbers.
    void event(const char* what, std::uint32_t host = no_host, std::int64_t a = 0,
               std::int64_t b = 0) {
        add({now_, static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b), 0, literal(what),
             host, 0, -1, kind::event, 0});
    }
    void note(std::string_view text);
    void name_host(std::uint32_t host, std::string_view name);

    [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
    [[nodiscard]] std::string text() const;

    static constexpr std::uint32_t no_host = ~0U;

private:
    /// A string that lives as long as the tracer, and its hash.
    struct word {
        const char* text = nullptr;
        std::uint64_t hash = 0;
    };
    struct line {
        std::int64_t time;
        std::uint64_t a;
        std::uint64_t b;
        std::int64_t result;
        word text;
        std::uint32_t host;
        std::uint32_t context;
        int fd;
        kind what;
        std::uint8_t opcode;
    };

    word intern(const char* text) { return text == nullptr ? word{} : find(text); }
    word find(std::string_view text);
    /// For a string with static storage duration.
    word literal(const char* text) {
        known& k = known_[(reinterpret_cast<std::uintptr_t>(text) >> 2) % known_.size()];
        if (k.at != text) {
            k = {text, find(text)};
        }
        return k.what;
    }
    void mix(std::uint64_t value) noexcept {
        hash_ = (hash_ ^ value) * 0x9fb21c651e98df25;
        hash_ ^= hash_ >> 32;
    }
    void add(const line& l);
    void print(std::string& out, const line& l) const;

    const std::int64_t& now_;
    const std::size_t most_;
    const bool print_;
    std::uint64_t hash_ = 0x243f6a8885a308d3;
    std::vector<line> lines_; // a ring buffer once it is full
    std::size_t next_ = 0;
    std::vector<std::string> hosts_;
    struct known {
        const char* at = nullptr;
        word what;
    };
    std::array<known, 64> known_{};
    struct words;
    struct words_deleter {
        void operator()(words* w) const noexcept;
    };
    std::unique_ptr<words, words_deleter> words_;
};

} // namespace coil::sim::detail
