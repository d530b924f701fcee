#pragma once

#include <string>

#include <pthread.h>

namespace coil::detail {

/// Linux shows 15 characters.
inline void name_this_thread(const std::string& name) noexcept {
    char shown[16]{};
    name.copy(shown, sizeof shown - 1);
    ::pthread_setname_np(::pthread_self(), shown);
}

} // namespace coil::detail
