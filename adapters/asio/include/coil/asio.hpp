#pragma once

/// \file
/// Asio on coil: the completion token use_coil, executors that run handlers on a coil context, and
/// threads that run an asio::io_context. Standalone Asio 1.18 or newer, or Boost.Asio 1.74 or
/// newer, which COIL_ASIO_BOOST selects. See docs/guide/adapters.md.

#include <coil/asio/asio_context.hpp>
#include <coil/asio/asio_executor.hpp>
#include <coil/asio/asio_thread.hpp>
#include <coil/asio/use_coil.hpp>
