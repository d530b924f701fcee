#pragma once

#include <coil/tls/detail/engine.hpp>

#include <openssl/bio.h>

namespace coil::tls::detail {

/// The BIO between OpenSSL and an engine: reads come out of the receive buffer, writes are appended
/// to the pending output. It refers to the engine. Returns null if there is no memory.
BIO* make_bio(engine& of) noexcept;

} // namespace coil::tls::detail
