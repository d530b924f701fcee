// The other translation unit of the program, which includes what imports.cpp imports.
#include <coil/coil.hpp>

coil::task<int> answer_from_includer(coil::io_context& expected) {
    co_await coil::yield();
    co_return &coil::this_context() == &expected ? 41 : 0;
}

coil::task<> fail_in_includer() {
    co_await coil::io::nop();
    throw coil::fs::filesystem_error("as it must", std::error_code());
}
