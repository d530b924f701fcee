#pragma once

#include <coil/sync/detail/baton.hpp>
#include <coil/sync/detail/waiter.hpp>

namespace coil::detail {

using baton = basic_baton<sync_waiter>;

/// The awaiter of a baton. `Kind` names the primitive in errors and says whether a stop that
/// arrives before the coroutine resumes cancels the wait.
template <class Kind>
class baton_awaiter : public sync_awaiter<baton_awaiter<Kind>> {
public:
    explicit baton_awaiter(baton& source) noexcept : baton_(source) {}
    ~baton_awaiter() { this->end_wait(); }

    [[gnu::always_inline]] void await_resume() { this->throw_if_cancelled(Kind::name); }

private:
    friend class sync_awaiter<baton_awaiter<Kind>>;

    static constexpr waited_object waits_for = Kind::waits_for;
    static constexpr bool gives_back = Kind::gives_back;

    [[nodiscard]] bool take_now() noexcept { return baton_.passes(); }
    [[nodiscard]] baton& queue() noexcept { return baton_; }
    void give_back() noexcept {}

    baton& baton_;
};

struct event_kind {
    static constexpr const char* name = "event";
    static constexpr waited_object waits_for = waited_object::event;
    static constexpr bool gives_back = false;
};
struct latch_kind {
    static constexpr const char* name = "latch";
    static constexpr waited_object waits_for = waited_object::latch;
    static constexpr bool gives_back = false;
};

} // namespace coil::detail
