// expect: a oneshot has a value: without one it is a coil::event

#include <coil/coil.hpp>

#if defined(COIL_EXPECT_OK)
coil::event done;
#else
coil::oneshot<void> done;
#endif
