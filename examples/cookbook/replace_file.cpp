// Read a file, and replace it so that a crash leaves the old content or the new one.
#include <coil/coil.hpp>

#include <cstdio>
#include <string>

using namespace coil;

task<> co_main() {
    const fs::path file = co_await fs::temp_directory_path() / "coil-cookbook.txt";
    co_await fs::write_file(file, "one\n");

    std::string text = co_await fs::read_file(file);
    text += "two\n";
    co_await fs::write_file(file, text, fs::atomic_replace);

    std::printf("%s", (co_await fs::read_file(file)).c_str());
    co_await fs::remove(file);
}

int main() { coil::run(co_main()); }
