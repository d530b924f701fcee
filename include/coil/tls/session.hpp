#pragma once

#include <memory>
#include <string>
#include <utility>

struct ssl_session_st; // OpenSSL's SSL_SESSION

namespace coil::tls {

namespace detail {

class engine;

} // namespace detail

/// A session that a later connection to the same server may resume, which saves most of a
/// handshake: see basic_stream::session() and resume(). Copies share it.
///
/// A session is resumed only under the name that its handshake verified, because a resumed
/// connection sends no certificate.
///
/// Threading: any thread, one at a time.
class session {
public:
    /// An empty session, with which a connection performs a full handshake.
    session() noexcept = default;

    /// Whether there is a session.
    [[nodiscard]] explicit operator bool() const noexcept { return session_ != nullptr; }

private:
    friend class detail::engine;

    session(std::shared_ptr<ssl_session_st> from, std::string name, bool verified) noexcept
        : session_(std::move(from)), name_(std::move(name)), verified_(verified) {}

    std::shared_ptr<ssl_session_st> session_;
    std::string name_;
    bool verified_ = false;
};

} // namespace coil::tls
