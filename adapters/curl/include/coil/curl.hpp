#pragma once

/// coil::curl: HTTP and HTTPS requests with libcurl's multi interface.

#include <coil/curl/client.hpp>
#include <coil/curl/error.hpp>
#include <coil/curl/request.hpp>
#include <coil/curl/transfer.hpp>
