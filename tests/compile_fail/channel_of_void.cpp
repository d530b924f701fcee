// expect: a channel has elements

#include <coil/coil.hpp>

#if defined(COIL_EXPECT_OK)
coil::channel<int> ch;
#else
coil::channel<void> ch;
#endif
