// expect: a barrier's completion must not throw: declare it noexcept

#include <coil/coil.hpp>

struct completion {
#if defined(COIL_EXPECT_OK)
    void operator()() noexcept {}
#else
    void operator()() {}
#endif
};

coil::barrier<completion> step{2};
