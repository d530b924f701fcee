// The buffers that the text of a dump goes through.

#include "../../src/context/task_writing.hpp"
#include "support.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

using namespace coil;

namespace {

/// Pieces of any size, around that of the buffer, arrive complete and in order.
TEST(TextOutput, PiecesOfAnySize) {
    std::minstd_rand random(22);
    std::string expected = "before";
    std::string text = expected;
    {
        detail::text_output out(text);
        for (int i = 0; i < 2000; ++i) {
            const char c = static_cast<char>('a' + i % 26);
            out += std::string_view(); // null
            switch (random() % 4) {
            case 0:
                out += c;
                expected += c;
                break;
            case 1:
                out.append(i % 7, c);
                expected.append(i % 7, c);
                break;
            default: {
                const std::string piece(random() % (i % 50 == 0 ? 10'000 : 100), c);
                out += piece;
                expected += piece;
            }
            }
        }
    }
    EXPECT_EQ(text, expected);
}

TEST(TextOutput, ExactlyFullBuffers) {
    for (const std::size_t size : {4095, 4096, 4097, 8192}) {
        std::string text;
        detail::text_output out(text);
        out += std::string(size, 'x');
        out += 'y';
        out += std::string(4095, 'z');
        out.flush();
        EXPECT_EQ(text, std::string(size, 'x') + 'y' + std::string(4095, 'z'));
    }
}

TEST(TextOutput, Addresses) {
    const auto hex = [](std::uintptr_t address) {
        std::string text;
        detail::append_hex(text, reinterpret_cast<const void*>(address));
        return text;
    };
    EXPECT_EQ(hex(0), "0x0");
    EXPECT_EQ(hex(0xf), "0xf");
    EXPECT_EQ(hex(0x7f0c11f80b80), "0x7f0c11f80b80");
    EXPECT_EQ(hex(UINTPTR_MAX), "0xffffffffffffffff");
}

} // namespace
