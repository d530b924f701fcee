#pragma once

#include <cstdint>

#include <unwind.h>

namespace coil::detail {

/// A frame of a stack, for a callback of _Unwind_Backtrace(). Safe in a signal handler.
struct unwound {
    explicit unwound(::_Unwind_Context* frame) noexcept {
        int before_instruction = 0;
        const auto ip =
            static_cast<std::uintptr_t>(::_Unwind_GetIPInfo(frame, &before_instruction));
        is_interrupted = before_instruction != 0;
        if (ip != 0) { // a return address may be that of the next function
            position = reinterpret_cast<const void*>(ip - (is_interrupted ? 0U : 1U));
        }
    }

    const void* position = nullptr; ///< in its function; null: unknown
    bool is_interrupted = false;    ///< by a signal, not at a call
};

} // namespace coil::detail
