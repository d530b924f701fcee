#pragma once

/// coil::hiredis: Redis and Valkey, with hiredis' formatter and reply parser and coil's sockets.

#include <coil/hiredis/arguments.hpp>
#include <coil/hiredis/connection.hpp>
#include <coil/hiredis/error.hpp>
#include <coil/hiredis/pool.hpp>
#include <coil/hiredis/reply.hpp>
#include <coil/hiredis/subscriber.hpp>
