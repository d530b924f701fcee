// expect: will be destroyed at the end of the full-expression
// only: clang

#include <coil/coil.hpp>

coil::task<> caller(const std::string& name) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::rename(name, std::filesystem::path(name) / "x");
    auto opens = coil::io::open(name, 0); // lives as long as the operation
    const coil::io_result fd = co_await opens;
    co_await coil::timeout(coil::io::open(name + "x", 0), std::chrono::seconds(1));
    const int linked = co_await (coil::io::unlink(name + "y") && coil::io::close(fd));
    static_cast<void>(linked);
#else
    auto renames = coil::io::rename(name, std::filesystem::path(name) / "x");
    co_await renames;
#endif
}
