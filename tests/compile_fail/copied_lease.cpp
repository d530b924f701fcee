// expect: deleted

#include <coil/coil.hpp>

#include <utility>

void caller(coil::buffer_lease& lease) {
#if defined(COIL_EXPECT_OK)
    const coil::buffer_lease other(std::move(lease));
#else
    const coil::buffer_lease other(lease);
#endif
}
