// net::inet_address: parsing, formatting and comparison.

#include <coil/net/inet_address.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

#include <arpa/inet.h>
#include <sys/un.h>

using coil::net::inet_address;

namespace {

TEST(InetAddress, OfAPortIsAnyLocalAddress) {
    const inet_address v4{std::uint16_t{8080}};
    EXPECT_EQ(v4.family(), AF_INET);
    EXPECT_EQ(v4.port(), 8080);
    EXPECT_EQ(v4.to_string(), "0.0.0.0:8080");
    const inet_address v6{8080, AF_INET6};
    EXPECT_EQ(v6.family(), AF_INET6);
    EXPECT_EQ(v6.to_string(), "[::]:8080");
    EXPECT_EQ(inet_address().to_string(), "0.0.0.0:0");
}

TEST(InetAddress, IsConstructedFromNumericText) {
    const inet_address v4{"127.0.0.1", 80};
    EXPECT_EQ(v4.family(), AF_INET);
    EXPECT_EQ(v4.ip(), "127.0.0.1");
    EXPECT_EQ(v4.to_string(), "127.0.0.1:80");
    EXPECT_EQ(v4.size(), sizeof(::sockaddr_in));
    const inet_address v6{"::1", 443};
    EXPECT_EQ(v6.family(), AF_INET6);
    EXPECT_EQ(v6.ip(), "::1");
    EXPECT_EQ(v6.to_string(), "[::1]:443");
    EXPECT_EQ(v6.size(), sizeof(::sockaddr_in6));
}

TEST(InetAddress, OfOtherTextThrowsAndQuotesIt) {
    for (const char* text :
         {"", "localhost", "256.0.0.1", "1.2.3", "::g", "127.0.0.1:80", "[::1]"}) {
        try {
            const inet_address a{text, 80};
            ADD_FAILURE() << text << " became " << a.to_string();
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::invalid_argument);
            EXPECT_NE(std::string(e.what()).find('"' + std::string(text) + '"'), std::string::npos)
                << e.what();
        }
    }
}

struct good {
    const char* text;
    const char* written;
};

class ParseGood : public testing::TestWithParam<good> {};

TEST_P(ParseGood, RoundTrips) {
    const auto a = inet_address::parse(GetParam().text);
    ASSERT_TRUE(a.has_value());
    EXPECT_EQ(a->to_string(), GetParam().written);
    EXPECT_EQ(inet_address::parse(a->to_string()), a);
}

INSTANTIATE_TEST_SUITE_P(
    Addresses, ParseGood,
    testing::Values(good{"127.0.0.1:80", "127.0.0.1:80"}, good{"0.0.0.0:0", "0.0.0.0:0"},
                    good{"255.255.255.255:65535", "255.255.255.255:65535"},
                    good{"1.2.3.4:080", "1.2.3.4:80"}, good{"[::1]:80", "[::1]:80"},
                    good{"[::]:1", "[::]:1"}, good{"[0:0:0:0:0:0:0:1]:80", "[::1]:80"},
                    good{"[2001:DB8::00ff]:53", "[2001:db8::ff]:53"},
                    good{"[::ffff:1.2.3.4]:9", "[::ffff:1.2.3.4]:9"},
                    good{"[fe80::1%lo]:80", "[fe80::1%lo]:80"},
                    good{"[fe80::1%1]:80", "[fe80::1%lo]:80"},
                    good{"[fe80::1%4000000000]:80", "[fe80::1%4000000000]:80"},
                    good{"[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535",
                         "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"}));

class ParseBad : public testing::TestWithParam<std::string_view> {};

TEST_P(ParseBad, ReturnsNullopt) { EXPECT_FALSE(inet_address::parse(GetParam()).has_value()); }

using namespace std::string_view_literals;

INSTANTIATE_TEST_SUITE_P(
    Texts, ParseBad,
    testing::Values(""sv, ":"sv, ":80"sv, "80"sv, "127.0.0.1"sv, "127.0.0.1:"sv, "127.0.0.1:x"sv,
                    "127.0.0.1:80x"sv, "127.0.0.1:-1"sv, "127.0.0.1:+1"sv, "127.0.0.1: 80"sv,
                    "127.0.0.1:80 "sv, " 127.0.0.1:80"sv, "127.0.0.1:65536"sv,
                    "127.0.0.1:99999999999999999999"sv, "127.0.0.1:0x50"sv, "127.0.0.1:80:80"sv,
                    "127.0.0:80"sv, "127.0.0.1.1:80"sv, "127.0.0.256:80"sv, "0x7f.0.0.1:80"sv,
                    "127.1:80"sv, "01.02.03.04:80"sv, "[127.0.0.1]:80"sv, "::1:80"sv, "[::1]"sv,
                    "[::1]:"sv, "[::1]80"sv, "[::1"sv, "::1]:80"sv, "[]:80"sv, "[:]:80"sv,
                    "[:::]:80"sv, "[1::2::3]:80"sv, "[12345::]:80"sv, "[::1]:80]"sv, "[[::1]]:80"sv,
                    "[1:2:3:4:5:6:7]:80"sv, "[1:2:3:4:5:6:7:8:9]:80"sv, "[fe80::1%]:80"sv,
                    "[fe80::1%nosuchinterface]:80"sv, "[fe80::1%-1]:80"sv,
                    "[fe80::1%99999999999]:80"sv, "[%lo]:80"sv, "[::1%lo%lo]:80"sv,
                    "127.0.0.1%lo:80"sv, "localhost:80"sv, "\0:80"sv, "127.0.0.1\0:80"sv,
                    "127.0.0.1:80\0"sv, "[::1\0]:80"sv, "\xff\xff:80"sv));

TEST(InetAddress, ParseOfRandomTextNeverCrashesAndRoundTrips) {
    std::mt19937 random(1);
    constexpr std::string_view letters = "0123456789abcdef:.[]% lo-+x\0"sv;
    int addresses = 0;
    for (int i = 0; i < 60'000; ++i) {
        std::string text = i % 3 == 0 ? "[::1]:80" : i % 3 == 1 ? "127.0.0.1:80" : "";
        const auto edits = 1 + random() % (text.empty() ? 80 : 3);
        for (std::size_t e = 0; e < edits; ++e) {
            const char c = letters[random() % letters.size()];
            const std::size_t at = random() % (text.size() + 1);
            if (random() % 2 == 0 || at == text.size()) {
                text.insert(at, 1, c);
            } else {
                text[at] = c;
            }
        }
        if (const auto a = inet_address::parse(text)) {
            ++addresses;
            ASSERT_EQ(inet_address::parse(a->to_string()), a) << text;
        }
        (void)inet_address::parse(text, 80);
    }
    EXPECT_GT(addresses, 300);
}

TEST(InetAddress, EqualityComparesAddressPortAndScope) {
    const inet_address a{"10.0.0.1", 80};
    EXPECT_EQ(a, (inet_address{"10.0.0.1", 80}));
    EXPECT_NE(a, (inet_address{"10.0.0.1", 81}));
    EXPECT_NE(a, (inet_address{"10.0.0.2", 80}));
    EXPECT_NE((inet_address{"::", 80}), (inet_address{"0.0.0.0", 80}));
    EXPECT_NE((inet_address{"fe80::1%1", 80}), (inet_address{"fe80::1", 80}));
    EXPECT_EQ((inet_address{"::1", 80}), (inet_address{"0::1", 80}));
}

TEST(InetAddress, RoundTripsThroughASockaddr) {
    const inet_address a{"::1", 1234};
    EXPECT_EQ(inet_address(a.data(), a.size()), a);
    const inet_address b{"1.2.3.4", 5};
    EXPECT_EQ(inet_address(b.data(), b.size()), b);
}

TEST(InetAddress, FromAnotherFamilyOrTooShortThrows) {
    ::sockaddr_un un{};
    un.sun_family = AF_UNIX;
    const auto* const other = reinterpret_cast<const ::sockaddr*>(&un);
    EXPECT_THROW(inet_address(other, sizeof un), std::system_error);
    const inet_address a{"::1", 1};
    EXPECT_THROW(inet_address(a.data(), sizeof(::sockaddr_in)), std::system_error);
    const inet_address b{"1.1.1.1", 1};
    EXPECT_THROW(inet_address(b.data(), 4), std::system_error);
}

} // namespace
