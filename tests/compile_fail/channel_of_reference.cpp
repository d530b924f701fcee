// expect: a channel keeps its elements

#include <coil/coil.hpp>

#if defined(COIL_EXPECT_OK)
coil::channel<int*> ch;
#else
coil::channel<int&> ch;
#endif
