#pragma once

#include <coil/context/detail/executor_state.hpp>
#include <coil/context/detail/yield_awaiter.hpp>
#include <coil/core/detail/debug_reports.hpp>
#include <coil/core/detail/frame_tree.hpp>
#include <coil/core/detail/transfer.hpp>

#include <coroutine>
#include <cstdint>
#include <utility>

#include <cxxabi.h>

namespace coil::detail {

/// Exists on one stack of a thread while another one runs. Sets aside what the thread's variables
/// hold on behalf of the calls on this stack, and restores it: the others neither use what lies on
/// this stack, which may return before they continue, nor change these variables.
class set_aside {
public:
    set_aside() noexcept : exceptions_(exceptions(), nothing) {
        if (exchange_executor_state != nullptr) {
            exchange_executor_state(executors_);
        }
    }
    set_aside(const set_aside&) = delete;
    set_aside& operator=(const set_aside&) = delete;
    ~set_aside() {
        if (exchange_executor_state != nullptr) {
            exchange_executor_state(executors_);
        }
    }

private:
    /// What the C++ ABI specifies for __cxa_eh_globals: the exceptions that are being handled, and
    /// the number of those that are propagating.
    struct exception_state {
        void* caught;
        unsigned int uncaught;
    };
    static constexpr exception_state nothing{};

    template <class T>
    class exchanged {
    public:
        exchanged(T& variable, const T& meanwhile) noexcept
            : variable_(variable), value_(std::exchange(variable, meanwhile)) {}
        exchanged(const exchanged&) = delete;
        exchanged& operator=(const exchanged&) = delete;
        ~exchanged() { variable_ = value_; }

    private:
        T& variable_;
        const T value_;
    };

    static exception_state& exceptions() noexcept {
        return *reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
    }

    const exchanged<exception_state> exceptions_;
    const exchanged<std::uintptr_t> floor_{destroying_floor, UINTPTR_MAX};
    const exchanged<frames_put_off*> put_off_{outermost_destruction, nullptr};
    const exchanged<unsigned> destructions_{destructions_of_frames, 0};
    const exchanged<turn_taking*> turns_{turn_taking::innermost, nullptr};
#if !COIL_SYMMETRIC_TRANSFER
    const exchanged<std::coroutine_handle<>> next_{next_to_resume, nullptr};
    const exchanged<void*> driven_{driven, nullptr};
#endif
    executor_state executors_;
};

} // namespace coil::detail
