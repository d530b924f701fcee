#pragma once

/// \file
/// Selects the library that the headers of coil::asio adapt: standalone Asio (<asio.hpp>), or
/// Boost.Asio if COIL_ASIO_BOOST is defined as 1. If it is not defined, Boost.Asio is used where
/// standalone Asio is not installed. Different source files of a program may select differently.

#ifndef COIL_ASIO_BOOST
#if __has_include(<asio/version.hpp>)
#define COIL_ASIO_BOOST 0
#else
#define COIL_ASIO_BOOST 1
#endif
#endif

#if COIL_ASIO_BOOST
#include <boost/asio/version.hpp>
#define COIL_ASIO_NAMESPACE boost::asio
#define COIL_ASIO_VERSION BOOST_ASIO_VERSION
#define COIL_ASIO_ABI with_boost_asio
#define COIL_ASIO_HEADER(name) <boost/asio/name>
#else
#include <asio/version.hpp>
#define COIL_ASIO_NAMESPACE asio
#define COIL_ASIO_VERSION ASIO_VERSION
#define COIL_ASIO_ABI with_asio
#define COIL_ASIO_HEADER(name) <asio/name>
#endif

/// Whether single operations can be cancelled (by cancellation slots).
#define COIL_ASIO_HAS_CANCELLATION (COIL_ASIO_VERSION >= 101900)

#if COIL_ASIO_VERSION < 101800
#error "coil::asio needs Asio 1.18 or newer (Boost 1.74)"
#endif

#include COIL_ASIO_HEADER(async_result.hpp)
#include COIL_ASIO_HEADER(error.hpp)
#include COIL_ASIO_HEADER(execution.hpp)
#include COIL_ASIO_HEADER(execution_context.hpp)
#if COIL_ASIO_HAS_CANCELLATION
#include COIL_ASIO_HEADER(cancellation_signal.hpp)
#endif

namespace coil::inline COIL_ASIO_ABI {

namespace detail_asio {

namespace library = ::COIL_ASIO_NAMESPACE;

#if COIL_ASIO_BOOST
using error_code = boost::system::error_code;
#else
using error_code = ::asio::error_code;
#endif

} // namespace detail_asio

} // namespace coil::inline COIL_ASIO_ABI
