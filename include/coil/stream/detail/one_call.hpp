#pragma once

#include <coil/base/assert.hpp>

#include <atomic>

namespace coil::detail {

[[noreturn]] void end_with_misuse(const char* sentence) noexcept; // NOLINT(*-redundant-*)

/// Whether a call is in progress on an object that allows one call at a time. Maintained only by
/// code that is compiled with assertions.
class call_in_progress {
public:
    call_in_progress() noexcept = default;
    // Not moved: a call in progress refers to the old object.
    call_in_progress(call_in_progress&&) noexcept {}
    call_in_progress& operator=(call_in_progress&&) noexcept { return *this; }
    ~call_in_progress() = default;

    /// Ends the program if a call is in progress.
    void check([[maybe_unused]] const char* sentence) const noexcept {
#if COIL_ASSERTIONS
        if (active_.load(std::memory_order_relaxed)) [[unlikely]] {
            end_with_misuse(sentence);
        }
#endif
    }

private:
    friend class exclusive_call;

    std::atomic<bool> active_{false};
};

/// Marks a call as in progress while it exists. Ends the program if another call is in progress.
class exclusive_call {
public:
    exclusive_call(const exclusive_call&) = delete;
    exclusive_call& operator=(const exclusive_call&) = delete;
#if COIL_ASSERTIONS
    exclusive_call(call_in_progress& of, const char* sentence) noexcept : of_(of) {
        if (of_.active_.exchange(true, std::memory_order_relaxed)) [[unlikely]] {
            end_with_misuse(sentence);
        }
    }
    ~exclusive_call() { of_.active_.store(false, std::memory_order_relaxed); }

private:
    call_in_progress& of_;
#else
    exclusive_call(call_in_progress&, const char*) noexcept {}
    ~exclusive_call() = default;
#endif
};

} // namespace coil::detail
