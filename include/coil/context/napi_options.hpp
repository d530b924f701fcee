#pragma once

#include <coil/base/std_chrono.hpp>

#include <cstdint>
#include <vector>

namespace coil {

/// NAPI busy polling (IORING_REGISTER_NAPI, Linux 6.9): a context that sleeps in the kernel first
/// polls the receive queues of the network devices that its sockets use, so that a packet need not
/// wait for an interrupt. This lowers the latency of small messages and costs CPU time.
///
///     io_context_options options;
///     options.idle = idle_policy::park();
///     options.napi.busy_poll = std::chrono::microseconds(50);
///
/// The kernel polls only inside a wait. So combine it with idle_policy::park(): the other policies
/// poll the completion queue first, which does not poll the device.
///
/// It is optional: if the kernel refuses it (before 6.9, built without CONFIG_NET_RX_BUSY_POLL, a
/// ring with setup::iopoll, the epoll backend), the context works without it, and
/// context_metrics::napi_busy_polling stays 0.
struct napi_options {
    /// How long a wait polls before it sleeps, rounded down to microseconds, at most 1 s. 0: NAPI
    /// busy polling is off.
    std::chrono::nanoseconds busy_poll{};
    /// Leaves the device's interrupts masked while the context polls (as SO_PREFER_BUSY_POLL does
    /// for a socket; needs napi_defer_hard_irqs and gro_flush_timeout of the device).
    bool prefer_busy_poll = false;
    /// The NAPI ids to poll (SO_INCOMING_NAPI_ID of a socket; Linux 6.13). Empty: the kernel
    /// collects the ids of the sockets that the context reads from.
    std::vector<std::uint32_t> ids = {};
};

} // namespace coil
