#pragma once

#include <gtest/gtest.h>

namespace coil_test {

/// Whether this program's contexts run on a fault_kernel: COIL_FAULT_SEED is set.
bool under_faults();

} // namespace coil_test

/// For a test that counts what a kernel on a bad day does more or less often.
#define COIL_SKIP_UNDER_FAULTS(why)                                                                \
    if (coil_test::under_faults()) {                                                               \
        GTEST_SKIP() << "under faults: " << (why);                                                 \
    }                                                                                              \
    static_assert(true)
