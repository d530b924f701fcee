#pragma once

#include <coil/core/detail/queue.hpp>
#include <coil/core/detail/stop_state.hpp>

namespace coil {

class inplace_stop_source;
class inplace_stop_token;

namespace detail {

/// A registered callback: a node in its source's list. It leaves the list before it is called; its
/// owner may then put the node into another queue (an inbox).
class stop_callback_base : public queue_node {
public:
    stop_callback_base(const stop_callback_base&) = delete;
    stop_callback_base& operator=(const stop_callback_base&) = delete;

protected:
    using callback = void (*)(queue_node&) noexcept;

    stop_callback_base() noexcept {} // NOLINT(*-member-init)
    ~stop_callback_base() = default;

    /// Registers with the token's source. If a stop was requested already, calls `f` immediately on
    /// this thread.
    void attach(inplace_stop_token token, callback f) noexcept;

    /// When this returns, the callback is not running and will not run. Exception: the callback
    /// itself may call this.
    void detach() noexcept;

    [[nodiscard]] bool attached() const noexcept { return source_ != nullptr; }

private:
    template <class, class>
    friend class basic_stop_state;

    /// If the node is a stop_relay, the state of the source to which it relays a request; otherwise
    /// null.
    static basic_stop_state<stop_callback_base>* relayed_to(stop_callback_base& node) noexcept;
    /// Called when the callbacks of that source have run. May destroy the node.
    static void relay_done(stop_callback_base& node) noexcept;

    queue_node** link_; // while attached: the pointer that points here, null once taken out
    inplace_stop_source* source_ = nullptr;
};

} // namespace detail
} // namespace coil
