#pragma once

/// TLS over byte streams. Link the target coil::tls, which needs OpenSSL 3. <coil/coil.hpp> does
/// not include this header.

#include <coil/tls/certificate.hpp>
#include <coil/tls/context.hpp>
#include <coil/tls/sendfile.hpp>
#include <coil/tls/session.hpp>
#include <coil/tls/stream.hpp>
