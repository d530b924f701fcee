// Add up the sizes of all files in a directory tree.
#include <coil/coil.hpp>

#include <cstdint>
#include <cstdio>

using namespace coil;

task<std::uintmax_t> bytes_below(fs::path top) {
    std::uintmax_t sum = 0;
    auto tree = fs::walk(top);
    while (auto entry = co_await tree.next()) {
        if (entry->is_regular_file()) {
            sum += co_await entry->file_size();
        }
    }
    co_return sum;
}

task<> co_main() {
    const fs::path top = co_await fs::temp_directory_path() / "coil-cookbook-tree";
    co_await fs::create_directories(top / "deep");
    co_await fs::write_file(top / "a", "12345");
    co_await fs::write_file(top / "deep" / "b", "678");
    std::printf("%ju bytes\n", co_await bytes_below(top));
    co_await fs::remove_all(top);
}

int main() { coil::run(co_main()); }
