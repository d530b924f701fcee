// expect: a channel moves its elements between threads: that must not throw

#include <coil/coil.hpp>

struct element {
    element() = default;
#if defined(COIL_EXPECT_OK)
    element(element&&) noexcept {}
#else
    element(element&&) {}
#endif
};

coil::channel<element> elements;
