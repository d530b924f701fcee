#include <coil/base/assert.hpp>
#include <coil/base/failure_hook.hpp>

#include <cstdio>
#include <cstdlib>

namespace coil::detail {

void assertion_failed(const char* expression, const char* file, unsigned line,
                      const char* function) noexcept {
    std::fprintf(stderr, "coil: assertion failed: %s (%s:%u, %s)\n", expression, file, line,
                 function);
    if (const auto print_more = failure_hook.load()) {
        print_more();
    }
    std::abort();
}

} // namespace coil::detail
