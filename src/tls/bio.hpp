#pragma once

#include <coil/tls/detail/engine.hpp>

#include <openssl/bio.h>

namespace coil::tls::detail {

/// Creates the BIO between OpenSSL and an engine, to which it refers. OpenSSL's reads take bytes
/// from the receive buffer; its writes are appended to the pending output. Returns null if there is
/// no memory.
BIO* make_bio(engine& of) noexcept;

} // namespace coil::tls::detail
