// The entry point of libFuzzer: run.bash starts the program of each target, and CMakeLists.txt
// defines COIL_FUZZ_TARGET as its name.

#include "fuzz/control.hpp"
#include "fuzz/endpoint.hpp"
#include "fuzz/lines.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::COIL_FUZZ_TARGET({data, size});
    return 0;
}
