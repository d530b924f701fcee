#pragma once

#include <gtest/gtest.h>

namespace coil_test {

/// Whether this program's contexts run on a fault_backend: COIL_FAULT_SEED is set.
bool under_faults();

} // namespace coil_test

/// For a test whose counts depend on the absence of injected faults.
#define COIL_SKIP_UNDER_FAULTS(why)                                                                \
    if (coil_test::under_faults()) {                                                               \
        GTEST_SKIP() << "under faults: " << (why);                                                 \
    }                                                                                              \
    static_assert(true)
