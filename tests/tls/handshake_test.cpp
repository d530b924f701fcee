// Handshakes: which peers are accepted, names, protocols, certificates, sessions.

#include "support/descriptors.hpp"
#include "tls/support.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

using namespace coil;
using namespace tls_test;

namespace {

void expect_refused(two_ends& both, const std::string& name, const std::string& reason) {
    const auto [client, server] = coil::run(shake(both, name));
    EXPECT_EQ(client, -EKEYREJECTED);
    EXPECT_NE(both.client.last_error().find(reason), std::string::npos) << both.client.last_error();
    EXPECT_EQ(server, -EPROTO); // the server receives the client's alert
    EXPECT_NE(both.server.last_error().find("alert"), std::string::npos)
        << both.server.last_error();
}

TEST(TlsHandshake, Succeeds) {
    auto main = []() -> task<> {
        two_ends both;
        EXPECT_EQ(both.client.version(), "");
        co_await expect_handshake(both);
        EXPECT_EQ(both.client.version(), "TLSv1.3");
        EXPECT_EQ(both.client.cipher(), both.server.cipher());
        EXPECT_EQ(both.server.server_name(), "example.test");
        EXPECT_EQ(both.client.peer_subject(), "CN = example.test");
        EXPECT_EQ(both.server.peer_subject(), "");
        EXPECT_EQ(both.client.alpn(), "");
        EXPECT_FALSE(both.client.resumed());
        EXPECT_EQ(both.client.last_error(), "");
        EXPECT_EQ(co_await both.client.write_some("hello"), 5);
        EXPECT_EQ(co_await read_exactly(both.server, 5), "hello");
    };
    coil::run(main());
}

TEST(TlsHandshake, NamesOfTheCertificateAreAccepted) {
    for (const char* name :
         {"example.test", "EXAMPLE.test", "example.test.", "a.wild.test", "127.0.0.1"}) {
        two_ends both;
        coil::run(expect_handshake(both, name));
        if (std::string(name) == "127.0.0.1") {
            EXPECT_EQ(both.server.server_name(), ""); // SNI does not carry addresses
        }
    }
}

TEST(TlsHandshake, AWrongNameIsRefused) {
    for (const char* name :
         {"other.test", "a.b.wild.test", "wild.test", "example.test.evil.test"}) {
        two_ends both;
        expect_refused(both, name, "hostname mismatch");
    }
    two_ends both;
    expect_refused(both, "127.0.0.2", "IP address mismatch");
}

TEST(TlsHandshake, ASelfSignedCertificateIsRefused) {
    const issued own = issue("example.test", "DNS:example.test", nullptr);
    two_ends both(client_context(), tls::context::server(as_certificate(own)));
    expect_refused(both, "example.test", "self-signed certificate");
}

TEST(TlsHandshake, AnUnknownAuthorityIsRefused) {
    two_ends both(tls::context::client(), server_context()); // the system's trust store
    expect_refused(both, "example.test", "unable to get local issuer certificate");
}

TEST(TlsHandshake, AnExpiredCertificateIsRefused) {
    const issued old = issue("example.test", "DNS:example.test", &certificates().root, -1);
    two_ends both(client_context(), tls::context::server(as_certificate(old)));
    expect_refused(both, "example.test", "certificate has expired");
}

TEST(TlsHandshake, UnverifiedPeersAreAcceptedOnlyOnRequest) {
    const issued own = issue("example.test", "DNS:example.test", nullptr);
    tls::context trusting = tls::context::client();
    trusting.allow_unverified_peers();
    for (const char* name : {"other.test", ""}) {
        two_ends both(trusting, tls::context::server(as_certificate(own)));
        coil::run(expect_handshake(both, name));
        EXPECT_EQ(both.server.server_name(), name);
    }
}

TEST(TlsHandshake, AVerifyingClientNeedsAName) {
    auto main = []() -> task<> {
        two_ends both;
        EXPECT_EQ(co_await both.client.handshake(""), -EINVAL);
        EXPECT_EQ(co_await both.client.handshake("."), -EINVAL);
        EXPECT_EQ(co_await both.client.handshake(std::string("a\0b", 3)), -EINVAL);
        EXPECT_EQ(co_await both.client.accept(), -EINVAL); // a client's context cannot accept
        EXPECT_EQ(co_await both.server.handshake("example.test"), -EINVAL);
        co_await expect_handshake(both);
    };
    coil::run(main());
}

TEST(TlsHandshake, IsRequiredBeforeAnyOtherCall) {
    auto main = []() -> task<> {
        two_ends both;
        char c;
        EXPECT_EQ((co_await both.client.read_some({&c, 1})), -ENOTCONN);
        EXPECT_EQ(co_await both.client.write_some("x"), -ENOTCONN);
        EXPECT_EQ(co_await both.client.shutdown(), -ENOTCONN);
        EXPECT_EQ(co_await both.client.shutdown_write(), -ENOTCONN);
        EXPECT_EQ(co_await both.client.update_keys(), -ENOTCONN);
        EXPECT_FALSE(both.client.session());
    };
    coil::run(main());
}

TEST(TlsHandshake, AlpnChoosesTheServersPreference) {
    tls::context client = client_context();
    client.set_alpn({"http/1.1", "h2"});
    tls::context server = server_context();
    server.set_alpn({"h2", "http/1.1"});
    two_ends both(client, server);
    coil::run(expect_handshake(both));
    EXPECT_EQ(both.client.alpn(), "h2");
    EXPECT_EQ(both.server.alpn(), "h2");
}

TEST(TlsHandshake, AlpnWithoutACommonProtocolIsRefused) {
    tls::context client = client_context();
    client.set_alpn({"h2"});
    tls::context server = server_context();
    server.set_alpn({"http/1.1"});
    two_ends both(client, server);
    const auto [c, s] = coil::run(shake(both));
    EXPECT_EQ(c, -EPROTO);
    EXPECT_EQ(s, -EPROTO);
    EXPECT_NE(both.client.last_error().find("no application protocol"), std::string::npos)
        << both.client.last_error();

    two_ends indifferent(client, server_context());
    coil::run(expect_handshake(indifferent));
    EXPECT_EQ(indifferent.client.alpn(), "");
    EXPECT_THROW(client.set_alpn({""}), std::system_error);
    EXPECT_THROW(client.set_alpn({std::string(256, 'x')}), std::system_error);
}

TEST(TlsHandshake, Versions) {
    tls::context old_client = client_context();
    old_client.set_versions(tls::version::tls_1_2, tls::version::tls_1_2);
    two_ends both(old_client, server_context());
    coil::run(expect_handshake(both));
    EXPECT_EQ(both.client.version(), "TLSv1.2");

    tls::context new_server = server_context();
    new_server.set_versions(tls::version::tls_1_3);
    two_ends apart(old_client, new_server);
    const auto [c, s] = coil::run(shake(apart));
    EXPECT_EQ(c, -EPROTO);
    EXPECT_EQ(s, -EPROTO);
    EXPECT_THROW(new_server.set_versions(tls::version::tls_1_3, tls::version::tls_1_2),
                 std::system_error);

    tls::context ancient = client_context();
    SSL_CTX_set_min_proto_version(ancient.native_handle(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(ancient.native_handle(), TLS1_1_VERSION);
    two_ends refused(ancient, server_context());
    EXPECT_EQ(coil::run(shake(refused)).second, -EPROTO);
}

TEST(TlsHandshake, ClientCertificates) {
    for (const tls::version v : {tls::version::tls_1_2, tls::version::tls_1_3}) {
        tls::context server = server_context();
        server.trust_pem(certificates().root.certificate_pem()).require_client_certificates();
        tls::context client = client_context();
        client.set_versions(v, v);
        {
            two_ends none(client, server);
            auto main = [](two_ends& both) -> task<int> {
                const auto [c, s] = co_await shake(both);
                EXPECT_EQ(s, -EPROTO);
                EXPECT_NE(both.server.last_error().find("peer did not return a certificate"),
                          std::string::npos)
                    << both.server.last_error();
                char buf[1];
                if (c < 0) {
                    co_return c;
                }
                co_return co_await both.client.read_some(buf);
            };
            EXPECT_EQ(coil::run(main(none)), -EPROTO); // with TLS 1.3, at the first read
        }
        const issued stranger = issue("client", "DNS:client.test", nullptr);
        client.use_certificate(as_certificate(stranger));
        two_ends unknown(client, server);
        EXPECT_EQ(coil::run(shake(unknown)).second, -EKEYREJECTED);

        client.use_certificate(as_certificate(certificates().client));
        two_ends both(client, server);
        coil::run(expect_handshake(both));
        EXPECT_EQ(both.server.peer_subject(), "CN = client");
    }
}

/// Makes a connection on which the server sends one message, so that the client gets its session.
tls::session connect_once(const tls::context& client, const tls::context& server,
                          const tls::session& from, bool expect_resumed,
                          const std::string& name = "example.test") {
    auto main = [](two_ends& both, std::string n) -> task<> {
        co_await expect_handshake(both, std::move(n));
        EXPECT_EQ(co_await both.server.write_some("x"), 1);
        EXPECT_EQ(co_await read_exactly(both.client, 1), "x");
    };
    two_ends both(client, server);
    both.client.resume(from);
    coil::run(main(both, name));
    EXPECT_EQ(both.client.resumed(), expect_resumed);
    EXPECT_EQ(both.server.resumed(), expect_resumed);
    return both.client.session(); // it is valid although the connection ends without close_notify
}

TEST(TlsHandshake, SessionsAreResumed) {
    for (const tls::version v : {tls::version::tls_1_2, tls::version::tls_1_3}) {
        tls::context server = server_context();
        tls::context client = client_context();
        client.set_versions(v, v);
        const tls::session first = connect_once(client, server, {}, false);
        EXPECT_TRUE(first);
        const tls::session second = connect_once(client, server, first, true);
        connect_once(client, server, second, true);
        connect_once(client, server_context(), first, false); // another server does not know it
        connect_once(client, server, first, false, "a.wild.test");
    }
}

TEST(TlsHandshake, SessionsOfClientsWithCertificatesAreResumed) {
    tls::context server = server_context();
    server.trust_pem(certificates().root.certificate_pem()).require_client_certificates();
    tls::context client = client_context();
    client.use_certificate(as_certificate(certificates().client));
    const tls::session first = connect_once(client, server, {}, false);
    connect_once(client, server, first, true);
}

TEST(TlsHandshake, AnUnverifiedSessionDoesNotReplaceTheVerification) {
    const issued own = issue("example.test", "DNS:example.test", nullptr);
    const tls::context impostor = tls::context::server(as_certificate(own));
    tls::context trusting = tls::context::client();
    trusting.allow_unverified_peers();
    const tls::session s = connect_once(trusting, impostor, {}, false);
    EXPECT_TRUE(s);
    two_ends both(client_context(), impostor);
    both.client.resume(s);
    expect_refused(both, "example.test", "self-signed");
}

TEST(TlsHandshake, CertificatesAreReloadedWhileRunning) {
    tls::context server = server_context();
    two_ends before(client_context(), server);
    coil::run(expect_handshake(before));
    const issued renewed = issue("renewed", "DNS:example.test", &certificates().root);
    std::thread([&] { server.use_certificate(as_certificate(renewed)); }).join();
    two_ends after(client_context(), server);
    coil::run(expect_handshake(after));
    EXPECT_EQ(before.client.peer_subject(), "CN = example.test");
    EXPECT_EQ(after.client.peer_subject(), "CN = renewed");
}

TEST(TlsHandshake, AReplacedCertificateIsNotUsedBesideOneWithAnotherTypeOfKey) {
    // Clients prefer the type of the first certificate.
    const issued rsa =
        issue("rsa", "DNS:example.test", &certificates().root, 30, EVP_RSA_gen(2048));
    tls::context server = server_context();
    two_ends created(client_context(), server); // its connection is older than the replacement
    server.use_certificate(as_certificate(rsa));
    two_ends after(client_context(), server);
    for (two_ends* const both : {&created, &after}) {
        coil::run(expect_handshake(*both));
        EXPECT_EQ(both->client.peer_subject(), "CN = rsa");
    }
    server.use_certificate(as_certificate(certificates().server));
    two_ends again(client_context(), server);
    coil::run(expect_handshake(again));
    EXPECT_EQ(again.client.peer_subject(), "CN = example.test");
}

TEST(TlsHandshake, CertificatesByName) {
    const authority& all = certificates();
    const issued one = issue("one", "DNS:one.test", &all.root);
    const issued wild = issue("wild", "DNS:*.many.test", &all.root);
    tls::context server = server_context();
    server.use_certificate_for("One.test", as_certificate(one))
        .use_certificate_for("*.many.test", as_certificate(wild));
    for (const auto& [name, subject] :
         std::vector<std::pair<std::string, std::string>>{{"one.test", "CN = one"},
                                                          {"ONE.test", "CN = one"},
                                                          {"a.many.test", "CN = wild"},
                                                          {"example.test", "CN = example.test"}}) {
        two_ends both(client_context(), server);
        coil::run(expect_handshake(both, name));
        EXPECT_EQ(both.client.peer_subject(), subject);
    }
}

TEST(TlsHandshake, AChainWithAnIntermediateCertificate) {
    const issued middle = issue("middle", "", &certificates().root);
    const issued leaf = issue("leaf", "DNS:example.test", &middle);
    const auto chain = tls::certificate::from_pem(leaf.certificate_pem() + middle.certificate_pem(),
                                                  leaf.key_pem());
    two_ends both(client_context(), tls::context::server(chain));
    coil::run(expect_handshake(both));
    two_ends incomplete(client_context(), tls::context::server(as_certificate(leaf)));
    expect_refused(incomplete, "example.test", "unable to get local issuer certificate");
}

std::string failure_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const std::system_error& e) {
        return e.what();
    }
    return "no exception";
}

TEST(TlsContext, FilesAreRead) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("coil-tls-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    const auto write = [&](const char* name, const std::string& text) {
        std::ofstream(folder / name) << text;
        return (folder / name).string();
    };
    const authority& all = certificates();
    const std::string cert = write("cert.pem", all.server.certificate_pem());
    const std::string key = write("key.pem", all.server.key_pem());
    const std::string other = write("other.pem", all.client.key_pem());
    const std::string root = write("root.pem", all.root.certificate_pem());
    tls::context client = tls::context::client();
    client.trust_file(root);
    two_ends both(client, tls::context::server(cert, key));
    coil::run(expect_handshake(both));

    const auto load = [&](const std::string& a, const std::string& b) {
        return failure_of([&] { static_cast<void>(tls::context::server(a, b)); });
    };
    EXPECT_NE(load("/nowhere.pem", key).find("cannot open /nowhere.pem"), std::string::npos);
    EXPECT_NE(load(key, key).find("no valid certificate in " + key), std::string::npos);
    EXPECT_NE(load(cert, cert).find("no unencrypted private key in " + cert), std::string::npos);
    EXPECT_NE(load(cert, other).find("is not that of the certificate"), std::string::npos);
    EXPECT_NE(failure_of([&] { client.trust_file(key); }).find("no valid certificate"),
              std::string::npos);
    EXPECT_EQ(ERR_peek_error(), 0U); // nothing is left for other users of OpenSSL
    std::filesystem::remove_all(folder);
}

TEST(TlsContext, ManyStreamsShareOneBioMethod) {
    auto main = []() -> task<> {
        const tls::context client = client_context();
        const tls::context server = server_context();
        for (int i = 0; i < 300; ++i) {
            two_ends both(client, server);
            if (i % 100 == 0) {
                co_await expect_handshake(both);
            }
        }
    };
    coil::run(main());
}

TEST(TlsContext, SeveralThreadsMakeHandshakesWhileCertificatesAreReplaced) {
    const tls::context client = client_context();
    tls::context server = server_context();
    const tls::certificate own = as_certificate(certificates().server);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
            for (int k = 0; k < 20; ++k) {
                two_ends both(client, server);
                coil::run(expect_handshake(both));
            }
        });
    }
    for (int i = 0; i < 200; ++i) {
        server.use_certificate(own);
    }
    for (std::thread& t : threads) {
        t.join();
    }
}

} // namespace
