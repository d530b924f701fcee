#pragma once

#include <cstdint>

namespace coil::detail {

/// Counts the destructors on a loop's thread that wait for something elsewhere. While one waits, no
/// coroutine of the loop runs, but destructors do. Owner thread.
class destructor_waits {
public:
    /// Exists while a destructor waits.
    class scope {
    public:
        explicit scope(destructor_waits& all) noexcept : all_(all) { ++all_.epoch_; }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;
        ~scope() { ++all_.epoch_; }

    private:
        destructor_waits& all_;
    };

    destructor_waits() noexcept = default;
    destructor_waits(const destructor_waits&) = delete;
    destructor_waits& operator=(const destructor_waits&) = delete;

    /// Counts beginnings and ends: a task that has arrived in this epoch has not run.
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

private:
    std::uint64_t epoch_ = 0;
};

} // namespace coil::detail
