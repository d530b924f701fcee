#pragma once

// coil::nats: a NATS client (target coil::nats).

#include <coil/nats/connection.hpp>
#include <coil/nats/error.hpp>
#include <coil/nats/message.hpp>
#include <coil/nats/options.hpp>
#include <coil/nats/subscription.hpp>
