#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace coil::tls {

namespace detail {

struct identity;
class context_state;

} // namespace detail

/// A certificate chain with its private key. Copies share them; immutable.
///
///     auto c = tls::certificate::from_files("/etc/app/cert.pem", "/etc/app/key.pem");
///
/// Threading: any thread. Loading reads the files with blocking calls.
class certificate {
public:
    /// Loads two PEM files: one with the certificate, followed by its intermediate certificates,
    /// and one with its private key, which must not be encrypted. Throws std::system_error whose
    /// message names the file and the reason.
    [[nodiscard]] static certificate from_files(const std::string& certificate_file,
                                                const std::string& key_file);
    /// The same from text in memory.
    [[nodiscard]] static certificate from_pem(std::string_view certificates, std::string_view key);

private:
    friend class detail::context_state;

    explicit certificate(std::shared_ptr<const detail::identity> identity) noexcept
        : identity_(std::move(identity)) {}

    std::shared_ptr<const detail::identity> identity_;
};

} // namespace coil::tls
