#pragma once

#include <coil/core/detail/atomics.hpp>

#include <atomic>

namespace coil::detail {

/// Decides the ownership of an entry in a queue from which nothing can be removed, between the
/// receiver that reaches it and the submitter that withdraws it. The first side that claims the
/// entry acts on it; the second one owns the entry and deletes it.
template <class Atomics = std_atomics>
class basic_claim_once {
public:
    /// Called once by each side. Returns true for the first.
    [[nodiscard]] bool claim() noexcept {
        for (;; Atomics::yield()) {
            unsigned expected = open;
            if (word_.compare_exchange_strong(expected, claimed, std::memory_order_acq_rel)) {
                return true;
            }
            if (expected == claimed) {
                return false;
            }
        }
    }

    /// Called by the receiver before claim(). If true, the submitter exists until unpin(): it
    /// cannot withdraw the entry until then, and waits if it tries to. If false, it has already
    /// withdrawn the entry.
    [[nodiscard]] bool pin() noexcept {
        unsigned expected = open;
        return word_.compare_exchange_strong(expected, pinned, std::memory_order_acq_rel);
    }
    void unpin() noexcept { word_.store(open, std::memory_order_release); }

    /// Called by the submitter before it submits the entry again.
    void renew() noexcept { word_.store(open, std::memory_order_relaxed); }

private:
    enum state : unsigned { open, pinned, claimed };
    typename Atomics::template atomic<unsigned> word_{open};
};

using claim_once = basic_claim_once<>;

} // namespace coil::detail
