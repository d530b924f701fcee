#pragma once

#include <coil/sync/detail/baton.hpp>
#include <coil/sync/detail/waiter.hpp>

namespace coil::detail {

using gate = basic_gate<sync_waiter>;

/// The awaiter of a gate. `Kind` names the primitive in errors and says whether a stop that arrives
/// before the coroutine resumes cancels the wait.
template <class Kind>
class gate_awaiter : public sync_awaiter<gate_awaiter<Kind>> {
public:
    explicit gate_awaiter(gate& source) noexcept : gate_(source) {}
    ~gate_awaiter() { this->end_wait(); }

    void await_resume() {
        if (!this->succeeded()) [[unlikely]] {
            throw_wait_cancelled(Kind::name);
        }
    }

private:
    friend class sync_awaiter<gate_awaiter<Kind>>;

    static constexpr bool gives_back = Kind::gives_back;

    [[nodiscard]] bool take_now() noexcept { return gate_.passes(); }
    [[nodiscard]] gate& room() noexcept { return gate_; }
    void give_back() noexcept {}

    gate& gate_;
};

struct event_kind {
    static constexpr const char* name = "event";
    static constexpr bool gives_back = false;
};
struct latch_kind {
    static constexpr const char* name = "latch";
    static constexpr bool gives_back = false;
};

} // namespace coil::detail
