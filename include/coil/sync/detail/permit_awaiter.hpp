#pragma once

#include <coil/sync/detail/permits.hpp>
#include <coil/sync/detail/waiter.hpp>

namespace coil::detail {

using permits = basic_permits<sync_waiter>;

/// The awaiter of one permit. `Kind` names the primitive in errors and says how an unused permit is
/// returned.
template <class Kind>
class permit_awaiter : public sync_awaiter<permit_awaiter<Kind>> {
public:
    explicit permit_awaiter(permits& source) noexcept : permits_(source) {}
    ~permit_awaiter() { this->end_wait(); }

    [[gnu::always_inline]] void await_resume() { this->throw_if_cancelled(Kind::name); }

private:
    friend class sync_awaiter<permit_awaiter<Kind>>;

    static constexpr waited_object waits_for = Kind::waits_for;
    static constexpr bool gives_back = true;

    [[nodiscard]] bool take_now() noexcept { return permits_.acquire(); }
    [[nodiscard]] permits& queue() noexcept { return permits_; }
    void give_back() noexcept { Kind::give_back(permits_); }

    permits& permits_;
};

} // namespace coil::detail
