#pragma once

#include <coil/base/assert.hpp>

#include <cstdint>
#include <utility>

namespace coil::detail {

/// The destructors on a loop's thread that wait for something elsewhere. They nest: while one
/// waits, no coroutine of the loop runs, but destructors do. Owner thread.
class destructor_waits {
public:
    /// One of them. Derived classes say what it does for others meanwhile.
    class wait {
    public:
        wait(const wait&) = delete;
        wait& operator=(const wait&) = delete;
        /// Ends what it can of what others wait for on this loop, without waiting.
        virtual void serve() noexcept = 0;

    protected:
        explicit wait(destructor_waits& all) noexcept
            : all_(all), outer_(std::exchange(all.innermost_, this)) {
            ++all.epoch_;
        }
        ~wait() {
            COIL_ASSERT(all_.innermost_ == this);
            ++all_.epoch_;
            all_.innermost_ = outer_;
        }

    private:
        destructor_waits& all_;
        wait* const outer_;
    };

    destructor_waits() noexcept = default;
    destructor_waits(const destructor_waits&) = delete;
    destructor_waits& operator=(const destructor_waits&) = delete;

    /// Counts beginnings and ends: a task that has arrived in this epoch has not run.
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    [[nodiscard]] wait* innermost() const noexcept { return innermost_; }

private:
    std::uint64_t epoch_ = 0;
    wait* innermost_ = nullptr;
};

} // namespace coil::detail
