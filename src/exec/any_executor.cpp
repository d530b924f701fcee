#include <coil/exec/any_executor.hpp>

#include <stdexcept>

namespace coil {

void any_executor::throw_empty() {
    throw std::logic_error("coil: this any_executor is empty: it has no executor to run work on");
}

} // namespace coil
