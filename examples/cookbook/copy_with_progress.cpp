// Copy a file and report progress.
#include <coil/coil.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

using namespace coil;

void show(std::uintmax_t done, std::uintmax_t total) {
    std::printf("%ju of %ju bytes\n", done, total);
}

task<> co_main() {
    const fs::path folder = co_await fs::temp_directory_path();
    const fs::path from = folder / "coil-cookbook-a", to = folder / "coil-cookbook-b";
    co_await fs::write_file(from, std::string(100'000, 'x'));
    co_await fs::copy_file(from, to, fs::copy_options::overwrite_existing, show);
    co_await fs::remove(from);
    co_await fs::remove(to);
}

int main() { coil::run(co_main()); }
