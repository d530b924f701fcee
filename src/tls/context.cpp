#include "context_state.hpp"
#include "error_queue.hpp"

#include <coil/tls/context.hpp>

#include <memory>
#include <system_error>
#include <utility>

namespace coil::tls {

context::context(std::shared_ptr<detail::context_state> state) noexcept
    : state_(std::move(state)) {}

context context::client() {
    const detail::error_scope errors;
    return context(std::make_shared<detail::context_state>(false));
}

context context::server(const certificate& own) {
    const detail::error_scope errors;
    context result(std::make_shared<detail::context_state>(true));
    result.state_->use_from_the_start(own);
    return result;
}

context context::server(const std::string& certificate_file, const std::string& key_file) {
    return server(certificate::from_files(certificate_file, key_file));
}

context& context::set_alpn(std::initializer_list<std::string_view> protocols) {
    std::string wire_format;
    for (const std::string_view protocol : protocols) {
        if (protocol.empty() || protocol.size() > 255) {
            throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                    "coil: TLS: a protocol of ALPN has 1 to 255 bytes");
        }
        wire_format += static_cast<char>(protocol.size());
        wire_format += protocol;
    }
    const detail::error_scope errors;
    state_->set_alpn(std::move(wire_format));
    return *this;
}

context& context::set_versions(version oldest, version newest) {
    const auto number = [](version v) {
        return v == version::tls_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION;
    };
    if (oldest > newest) {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                "coil: TLS: the oldest version is newer than the newest");
    }
    SSL_CTX_set_min_proto_version(native_handle(), number(oldest));
    SSL_CTX_set_max_proto_version(native_handle(), number(newest));
    return *this;
}

context& context::use_certificate(const certificate& own) {
    state_->use("", own);
    return *this;
}

context& context::use_certificate(const std::string& certificate_file,
                                  const std::string& key_file) {
    return use_certificate(certificate::from_files(certificate_file, key_file));
}

context& context::use_certificate_for(std::string_view name, const certificate& own) {
    state_->use(name, own);
    return *this;
}

context& context::trust_file(const std::string& authorities_file) {
    const detail::error_scope errors;
    const detail::owned_bio file = detail::open_file(authorities_file);
    state_->trust(*file, authorities_file);
    return *this;
}

context& context::trust_pem(std::string_view authorities) {
    const detail::error_scope errors;
    const detail::owned_bio text = detail::open_text(authorities);
    state_->trust(*text, "a PEM text");
    return *this;
}

context& context::require_client_certificates() {
    state_->require_client_certificates();
    return *this;
}

context& context::allow_unverified_peers() {
    SSL_CTX_set_verify(native_handle(), SSL_VERIFY_NONE, nullptr);
    return *this;
}

context& context::prefer_kernel_sending() {
    state_->prefer_kernel_sending();
    return *this;
}

ssl_ctx_st* context::native_handle() const noexcept { return state_->ssl_context(); }

} // namespace coil::tls
