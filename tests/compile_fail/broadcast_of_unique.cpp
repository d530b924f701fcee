// expect: each receiver gets a copy

#include <coil/coil.hpp>

#include <memory>

#if defined(COIL_EXPECT_OK)
coil::broadcast<std::shared_ptr<int>> news{4};
#else
coil::broadcast<std::unique_ptr<int>> news{4};
#endif
