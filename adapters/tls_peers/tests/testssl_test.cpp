// testssl.sh, which looks for weaknesses of a server, against examples/tls_echo.

#include "tls_peers/tests/peers.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

using namespace coil;
using namespace tls_peers_test;

namespace {

/// Gives a certificate what testssl.sh expects of every certificate. `root` has issued it.
issued complete(issued made, const issued& root) {
    const auto add = [&](int kind, const char* value) {
        add_extension(*made.certificate, *root.certificate, kind, value);
    };
    add(NID_key_usage, "critical,digitalSignature,keyEncipherment");
    add(NID_ext_key_usage, "serverAuth");
    add(NID_crl_distribution_points, "URI:http://localhost/coil.crl");
    X509_set_pubkey(made.certificate.get(), made.key.get());
    X509_sign(made.certificate.get(), root.key.get(), EVP_sha256());
    return made;
}

/// The text of a member of an object that testssl.sh has written on lines of its own.
std::string member(std::string_view line, std::string_view name) {
    const std::string key = '"' + std::string(name) + '"';
    if (line.find(key) == std::string_view::npos) {
        return {};
    }
    line.remove_prefix(line.find(key) + key.size());
    const std::size_t begin = line.find('"');
    const std::size_t end = line.rfind('"');
    return begin < end ? std::string(line.substr(begin + 1, end - begin - 1)) : std::string();
}

struct report {
    int findings = 0;
    std::vector<std::string> severe; // above "low"
};

report read_report(const std::string& path) {
    std::ifstream in(path);
    report all;
    std::string id;
    std::string severity;
    for (std::string line; std::getline(in, line);) {
        if (std::string text = member(line, "id"); !text.empty()) {
            id = std::move(text);
        } else if (text = member(line, "severity"); !text.empty()) {
            severity = std::move(text);
        } else if (text = member(line, "finding"); !text.empty()) {
            ++all.findings;
            constexpr std::array<std::string_view, 3> levels{"MEDIUM", "HIGH", "CRITICAL"};
            if (std::ranges::find(levels, severity) != levels.end()) {
                all.severe.push_back(severity + ' ' + id + ": " + text);
            }
        }
    }
    return all;
}

/// All checks take about five minutes; without COIL_TEST_LONG, those of the protocols, the ciphers,
/// forward secrecy, the certificate, renegotiation and compression are made.
std::vector<std::string> examine(std::uint16_t port, const pem_files& files) {
    std::vector<std::string> argv{"testssl",
                                  "--quiet",
                                  "--color",
                                  "0",
                                  "--warnings",
                                  "batch",
                                  "--ip",
                                  "127.0.0.1",
                                  "--nodns",
                                  "none",
                                  "--connect-timeout",
                                  "5",
                                  "--openssl-timeout",
                                  "20",
                                  "--add-ca",
                                  files["root.pem"],
                                  "--jsonfile",
                                  files["report.json"]};
    if (!coil_test::long_run()) {
        for (const char* const check : {"--fast", "-p", "-s", "-f", "-S", "-R", "-C"}) {
            argv.emplace_back(check);
        }
    }
    argv.push_back("localhost:" + std::to_string(port));
    return argv;
}

class TestSsl : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Keys, TestSsl, testing::Values("Ec", "Rsa"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(TestSsl, FindsNothingAboveLow) {
    TLS_PEERS_NEED("testssl", "testssl.sh");
    const pem_files files;
    const issued root = issue("coil test authority", "", nullptr, 400);
    issued server = issue("localhost", "DNS:localhost", &root, 180);
    if (std::string(GetParam()) == "Rsa") {
        server.key = key_ptr(EVP_RSA_gen(2048), EVP_PKEY_free);
    }
    server = complete(server, root);
    files.write("root.pem", root.certificate_pem());
    files.write("cert.pem", server.certificate_pem());
    files.write("key.pem", server.key_pem());
    const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
    const std::uint16_t port = free_port();
    const server_process echo(
        {std::string(folder != nullptr ? folder : "../examples") + "/tls_echo",
         std::to_string(port), files["cert.pem"], files["key.pem"]},
        port, files["log"]);
    auto main = [](std::uint16_t port, const pem_files& files) -> task<process_output> {
        auto program = process::spawn(examine(port, files));
        co_await program.stdin().close();
        co_return co_await timeout(program.output(), coil_test::long_run() ? 1500s : 280s);
    };
    const process_output said = coil::run(main(port, files));
    const report found = read_report(files["report.json"]);
    EXPECT_GT(found.findings, 30) << said.status.to_string() << said.out << said.err;
    EXPECT_TRUE(found.severe.empty()) << testing::PrintToString(found.severe);
}

} // namespace
