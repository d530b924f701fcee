// The types from which a buffer is constructed, and its length.

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using coil::const_buffer;
using coil::mutable_buffer;

namespace {

TEST(MutableBuffer, FromArraysAndContainers) {
    char raw[10];
    EXPECT_EQ(mutable_buffer(raw).data(), raw);
    EXPECT_EQ(mutable_buffer(raw).size(), 10U);

    std::array<std::uint32_t, 4> words{};
    EXPECT_EQ(mutable_buffer(words).size(), 16U);

    std::vector<std::byte> bytes(5);
    EXPECT_EQ(mutable_buffer(bytes).data(), bytes.data());

    std::string text(6, ' ');
    EXPECT_EQ(mutable_buffer(text).size(), 6U);

    std::span<char> part(raw + 2, 3);
    EXPECT_EQ(mutable_buffer(part).data(), raw + 2);
    EXPECT_EQ(mutable_buffer(std::span(raw).subspan(8)).size(), 2U);
}

TEST(MutableBuffer, FromPointerAndAnyInteger) {
    char raw[10];
    EXPECT_EQ(mutable_buffer(raw, 3).size(), 3U);
    EXPECT_EQ(mutable_buffer(raw, std::size_t{4}).size(), 4U);
    EXPECT_EQ(mutable_buffer(raw, std::uint8_t{200}).size(), 200U);
    EXPECT_EQ(mutable_buffer(nullptr, 0).size(), 0U);
}

TEST(MutableBuffer, TheResultOfACallIsALength) {
    char raw[10];
    const coil::io_result received(6);
    const mutable_buffer b{raw, received};
    EXPECT_EQ(b.size(), 6U);
    const const_buffer c{raw, received};
    EXPECT_EQ(c.size(), 6U);
    EXPECT_EQ((const_buffer{raw, coil::io_result(-EIO)}.size()), 0U);
}

TEST(MutableBuffer, ANegativeLengthCountsAsZero) {
    char raw[10];
    EXPECT_EQ(mutable_buffer(raw, -1).size(), 0U);
    EXPECT_EQ(mutable_buffer(raw, std::numeric_limits<long>::min()).size(), 0U);
    EXPECT_EQ(const_buffer(raw, -11).size(), 0U);
}

TEST(MutableBuffer, IsNotConstructibleFromConst) {
    static_assert(!std::is_constructible_v<mutable_buffer, const std::string&>);
    static_assert(!std::is_constructible_v<mutable_buffer, std::string_view>);
    static_assert(!std::is_constructible_v<mutable_buffer, const char(&)[4]>);
    static_assert(!std::is_constructible_v<mutable_buffer, const_buffer>);
    static_assert(!std::is_constructible_v<mutable_buffer, const void*, int>);
}

TEST(Buffer, IsNotConstructibleFromNonContiguousRanges) {
    static_assert(!std::is_constructible_v<const_buffer, std::list<char>&>);
    static_assert(!std::is_constructible_v<const_buffer, std::vector<std::string>&>);
    static_assert(!std::is_constructible_v<mutable_buffer, std::vector<std::string>&>);
    static_assert(!std::is_constructible_v<const_buffer, std::vector<bool>&>);
    static_assert(!std::is_constructible_v<const_buffer, int>);
    static_assert(!std::is_constructible_v<const_buffer, void*, double>);
}

TEST(ConstBuffer, ALiteralExcludesItsTerminatingZero) {
    const const_buffer b = "hello";
    EXPECT_EQ(b.size(), 5U);
    EXPECT_EQ(const_buffer("").size(), 0U);
    EXPECT_EQ(const_buffer("a\0b").size(), 3U);
}

TEST(ConstBuffer, AnArrayOfCharIncludesEveryElement) {
    char raw[8] = "seven..";
    EXPECT_EQ(const_buffer(raw).size(), 8U);
}

TEST(ConstBuffer, FromViewsStringsAndBuffers) {
    const std::string text = "text";
    EXPECT_EQ(const_buffer(text).data(), text.data());
    EXPECT_EQ(const_buffer(std::string_view(text).substr(1)).size(), 3U);
    std::vector<std::int16_t> shorts(3);
    EXPECT_EQ(const_buffer(shorts).size(), 6U);
    const mutable_buffer writable(shorts);
    EXPECT_EQ(const_buffer(writable).data(), shorts.data());
    EXPECT_EQ(const_buffer(const_buffer("abc")).size(), 3U);
}

TEST(Buffer, DropTakesFromTheFrontAndStopsAtTheEnd) {
    char raw[10];
    const mutable_buffer b(raw);
    EXPECT_EQ(b.drop(3).data(), raw + 3);
    EXPECT_EQ(b.drop(3).size(), 7U);
    EXPECT_EQ(b.drop(11).size(), 0U);
    EXPECT_EQ(b.drop(11).data(), raw + 10);
    const const_buffer c = b;
    EXPECT_EQ(c.drop(10).size(), 0U);
    EXPECT_EQ(c.drop(0).data(), raw);
}

TEST(Buffer, ALengthIsLimitedToWhatLinuxTransfers) {
    EXPECT_EQ(coil::detail::transfer_size(0), 0U);
    EXPECT_EQ(coil::detail::transfer_size(0x7ffff000), 0x7ffff000U);
    EXPECT_EQ(coil::detail::transfer_size(0x7ffff001), 0x7ffff000U);
    EXPECT_EQ(coil::detail::transfer_size(std::size_t{1} << 40), 0x7ffff000U);
}

TEST(Buffer, IsConstexpr) {
    static constexpr char raw[3] = {'a', 'b', 'c'};
    static constexpr const_buffer b(raw, 3);
    static_assert(b.size() == 3);
}

} // namespace
