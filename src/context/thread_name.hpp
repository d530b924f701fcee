#pragma once

#include <string>

#include <pthread.h>

namespace coil::detail {

/// Truncates the name to the 15 characters that Linux stores.
inline void name_this_thread(const std::string& name) noexcept {
    char shown[16]{};
    name.copy(shown, sizeof shown - 1);
    ::pthread_setname_np(::pthread_self(), shown);
}

} // namespace coil::detail
