#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/exchange.hpp>
#include <coil/context/detail/inbox.hpp>

namespace coil::detail {

class sim_driver;

/// The connection of a loop without a thread of its own to its driver, which calls
/// event_loop::turn() instead of run(). Between two turns the loop sleeps; a message wakes it
/// through sim_driver::wake(). Owner thread.
///
///     none ◀──begin(), end()──▶ awake ◀──fall_asleep(), wake_up()──▶ asleep
class driver_link {
public:
    /// Null for a loop with a thread of its own.
    [[nodiscard]] sim_driver* get() const noexcept { return driver_; }
    [[nodiscard]] bool is_asleep() const noexcept { return asleep_; }

    void begin(sim_driver& driver) noexcept {
        COIL_ASSERT(driver_ == nullptr && !asleep_);
        driver_ = &driver;
    }
    void end() noexcept {
        COIL_ASSERT(driver_ != nullptr && !asleep_);
        driver_ = nullptr;
    }

    /// Like parker::announce(). Returns false if a message has arrived: another turn is due.
    [[nodiscard]] bool fall_asleep(inbox& posts) noexcept {
        COIL_ASSERT(driver_ != nullptr && !asleep_);
        asleep_ = posts.try_park();
        return asleep_;
    }
    /// Called before a turn. Returns true if a message has ended the sleep.
    [[nodiscard]] bool wake_up(inbox& posts) noexcept {
        return coil::detail::exchange(asleep_, false) && !posts.unpark();
    }

private:
    sim_driver* driver_ = nullptr;
    bool asleep_ = false;
};

} // namespace coil::detail
