// net::endpoint and net::unix_address: construction, parsing and formatting.

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <system_error>
#include <type_traits>

#include <net/if.h>

using namespace coil;
using net::endpoint;
using net::inet_address;
using net::unix_address;

namespace {

static_assert(std::is_convertible_v<inet_address, endpoint>);
static_assert(std::is_convertible_v<unix_address, endpoint>);
static_assert(std::is_convertible_v<std::uint16_t, endpoint>);
static_assert(std::is_convertible_v<const char*, endpoint>);
static_assert(std::is_convertible_v<std::string, endpoint>);
static_assert(!std::is_convertible_v<endpoint, inet_address>);

TEST(Endpoint, IsConstructedFromEveryKindOfAddress) {
    EXPECT_EQ(endpoint{8080}.to_string(), "0.0.0.0:8080");
    const std::uint16_t port = 80;
    EXPECT_EQ((endpoint{"127.0.0.1", port}.to_string()), "127.0.0.1:80");
    EXPECT_EQ((endpoint{"::1", port}.to_string()), "[::1]:80");
    EXPECT_EQ(endpoint(inet_address("10.0.0.1", 7)).to_string(), "10.0.0.1:7");
    EXPECT_EQ(endpoint(unix_address("/run/x")).to_string(), "unix:/run/x");
    EXPECT_EQ(endpoint(unix_address::abstract("x")).to_string(), "unix:@x");
    EXPECT_EQ(endpoint("[::1]:80").family(), AF_INET6);
    EXPECT_EQ(endpoint(std::string("127.0.0.1:80")).port(), 80);
    EXPECT_EQ(endpoint().family(), AF_UNSPEC);
    EXPECT_EQ(endpoint().to_string(), "");
}

TEST(Endpoint, ParsesWhatItPrints) {
    for (const char* text : {"0.0.0.0:8080", "[::1]:80", "unix:/run/x", "unix:relative", "unix:@x",
                             "255.255.255.255:65535", "[::]:0"}) {
        const std::optional<endpoint> parsed = endpoint::parse(text);
        ASSERT_TRUE(parsed) << text;
        EXPECT_EQ(parsed->to_string(), text);
        EXPECT_EQ(endpoint(parsed->data(), parsed->size()), *parsed) << text;
    }
}

TEST(Endpoint, ParseRefusesEverythingElse) {
    for (const std::string& text : {std::string(),
                                    std::string("127.0.0.1"),
                                    std::string("127.0.0.1:"),
                                    std::string(":80"),
                                    std::string("127.0.0.1:65536"),
                                    std::string("127.0.0.1:-1"),
                                    std::string("127.0.0.1: 80"),
                                    std::string("::1:80"),
                                    std::string("[::1]"),
                                    std::string("[::1]80"),
                                    std::string("[127.0.0.1]:80"),
                                    std::string("[::1"),
                                    std::string("example.org:80"),
                                    std::string("unix:"),
                                    std::string("unix:@"),
                                    std::string("unix"),
                                    std::string("/run/x"),
                                    "unix:" + std::string(unix_address::max_length + 1, 'x'),
                                    "unix:@" + std::string(unix_address::max_length + 1, 'x'),
                                    std::string("unix:a\0b", 8),
                                    std::string("[::1%no-such-interface]:80")}) {
        EXPECT_FALSE(endpoint::parse(text)) << text;
    }
}

TEST(Endpoint, InvalidTextThrowsAndIsQuoted) {
    try {
        const endpoint e("localhost:80");
        FAIL() << "did not throw";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::invalid_argument);
        EXPECT_NE(std::string(error.what()).find("\"localhost:80\""), std::string::npos);
    }
}

TEST(Endpoint, KeepsTheScopeOfAnIPv6Address) {
    const unsigned lo = ::if_nametoindex("lo");
    if (lo == 0) {
        GTEST_SKIP() << "no interface lo";
    }
    const std::optional<endpoint> e = endpoint::parse("[fe80::1%lo]:80");
    ASSERT_TRUE(e);
    EXPECT_EQ(e->as_inet().scope_id(), lo);
    EXPECT_EQ(e->to_string(), "[fe80::1%lo]:80");
    EXPECT_NE(*e, *endpoint::parse("[fe80::1]:80"));
}

TEST(Endpoint, ComparesFamilyAndAddress) {
    EXPECT_EQ(endpoint("127.0.0.1:80"), endpoint("127.0.0.1", 80));
    EXPECT_NE(endpoint("127.0.0.1:80"), endpoint("127.0.0.1:81"));
    EXPECT_NE(endpoint("0.0.0.0:80"), endpoint("[::]:80"));
    EXPECT_NE(endpoint("unix:x"), endpoint("unix:@x"));
    EXPECT_EQ(endpoint(), endpoint());
    EXPECT_NE(endpoint(), endpoint(0));
}

TEST(Endpoint, ConvertingToAnotherFamilyThrows) {
    EXPECT_THROW(static_cast<void>(endpoint("unix:x").as_inet()), std::system_error);
    EXPECT_THROW(static_cast<void>(endpoint(80).as_unix()), std::system_error);
    ::sockaddr_storage other{};
    other.ss_family = AF_PACKET;
    EXPECT_THROW(endpoint(reinterpret_cast<::sockaddr*>(&other), sizeof other), std::system_error);
}

TEST(UnixAddress, LongestPathAndName) {
    const std::string longest(unix_address::max_length, 'x');
    EXPECT_EQ(unix_address(longest).name(), longest);
    EXPECT_EQ(unix_address::abstract(longest).name(), longest);
    const endpoint path{unix_address(longest)};
    EXPECT_EQ(path.as_unix().name(), longest);
    EXPECT_EQ(endpoint(unix_address::abstract(longest)).as_unix().name(), longest);
    EXPECT_THROW(unix_address(longest + "x"), std::system_error);
    EXPECT_THROW(unix_address::abstract(longest + "x"), std::system_error);
    EXPECT_THROW(unix_address(""), std::system_error);
    EXPECT_THROW(unix_address(std::string_view("a\0b", 3)), std::system_error);
}

TEST(UnixAddress, AcceptsAPathWithoutATerminatingNull) {
    // Linux returns such an address for a path that fills sun_path.
    ::sockaddr_un full{};
    full.sun_family = AF_UNIX;
    std::memset(full.sun_path, 'x', sizeof full.sun_path);
    const unix_address a(reinterpret_cast<::sockaddr*>(&full), sizeof full + 1);
    EXPECT_EQ(a.name(), std::string(sizeof full.sun_path, 'x'));
    EXPECT_EQ(a.size(), sizeof full);
}

TEST(UnixAddress, AbstractNamesAreAnyBytes) {
    const std::string name("a\0\xff@", 4);
    const unix_address a = unix_address::abstract(name);
    EXPECT_TRUE(a.is_abstract());
    EXPECT_EQ(a.name(), name);
    EXPECT_EQ(endpoint::parse("unix:@" + name)->as_unix(), a);
    EXPECT_NE(a, unix_address::abstract("a"));
}

TEST(UnixAddress, UnnamedIsNeitherPathNorAbstract) {
    const unix_address none;
    EXPECT_TRUE(none.is_unnamed());
    EXPECT_FALSE(none.is_abstract());
    EXPECT_EQ(none.to_string(), "unix:");
    EXPECT_EQ(unix_address(none.data(), none.size()), none);
}

TEST(UnixAddress, APathThatBeginsLikeAnAbstractNameIsPrintedAsAPath) {
    EXPECT_EQ(unix_address("@x").to_string(), "unix:./@x");
}

} // namespace
