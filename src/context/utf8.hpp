#pragma once

#include <cstddef>
#include <string_view>

namespace coil::detail {

/// The size of the UTF-8 sequence at the beginning of a text; 0 if there is none.
[[nodiscard]] constexpr std::size_t utf8_sequence(std::string_view text) noexcept {
    const unsigned lead = text.empty() ? 0 : static_cast<unsigned char>(text[0]);
    const std::size_t size = lead < 0x80                   ? 1
                             : lead < 0xc2 || lead >= 0xf5 ? 0
                             : lead < 0xe0                 ? 2
                             : lead < 0xf0                 ? 3
                                                           : 4;
    if (size > text.size()) {
        return 0;
    }
    // The second byte reveals overlong sequences, surrogates and code points above U+10FFFF.
    unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (std::size_t i = 1; i < size; ++i) {
        const unsigned byte = static_cast<unsigned char>(text[i]);
        if (byte < least || byte > most) {
            return 0;
        }
        least = 0x80;
        most = 0xbf;
    }
    return size;
}

/// The size of a text that was cut, without the part of a sequence at its end.
[[nodiscard]] constexpr std::size_t size_of_whole_sequences(std::string_view text) noexcept {
    for (std::size_t n = 1; n <= 3 && n <= text.size(); ++n) {
        const unsigned byte = static_cast<unsigned char>(text[text.size() - n]);
        if (byte >= 0xc0) {
            return utf8_sequence(text.substr(text.size() - n)) == n ? text.size() : text.size() - n;
        }
        if (byte < 0x80) {
            break;
        }
    }
    return text.size();
}

} // namespace coil::detail
