// What exceptions of coil::fs say: the qualified name of the function, then the paths.

#include "files.hpp"

#include <fcntl.h>

namespace {

using namespace coil;
using coil_test::scratch;

/// Awaits work that must fail for a missing file.
template <class Work>
task<> expect_failure(Work work, const char* name, std::filesystem::path missing) {
    try {
        co_await work(missing);
        ADD_FAILURE() << name << " succeeded";
    } catch (const fs::filesystem_error& e) {
        const std::string text = e.what();
        EXPECT_NE(text.find(std::string(": ") + name + ": "), std::string::npos) << text;
        EXPECT_EQ(e.path1(), missing) << name;
    }
}

TEST(ErrorText, NamesTheFunctionAndThePath) {
    using std::filesystem::path;
    const scratch dir;
    coil::run([](const scratch& in) -> task<> {
        const path none = in / "none";
        auto copy = [&in](path p) -> task<> { co_await fs::copy(p, in / "to"); };
        co_await expect_failure(copy, "coil::fs::copy", none);
        auto tree = [&in](path p) -> task<> { co_await fs::copy_tree(p, in / "to"); };
        co_await expect_failure(tree, "coil::fs::copy_tree", none);
        auto copy_file = [&in](path p) -> task<> { co_await fs::copy_file(p, in / "to"); };
        co_await expect_failure(copy_file, "coil::fs::copy_file", none);
        auto open = [](path p) -> task<> {
            static_cast<void>(co_await fs::file::open(p, O_RDONLY));
        };
        co_await expect_failure(open, "coil::fs::file::open", none);
        auto read = [](path p) -> task<> { co_await fs::read_file(p); };
        co_await expect_failure(read, "coil::fs::read_file", none);
        auto size = [](path p) -> task<> { co_await fs::file_size(p); };
        co_await expect_failure(size, "coil::fs::file_size", none);
        auto list = [](path p) -> task<> {
            auto entries = fs::read_directory(p);
            while (co_await entries.next()) {
            }
        };
        co_await expect_failure(list, "coil::fs::read_directory", none);
        auto walk = [](path p) -> task<> {
            auto entries = fs::walk(p);
            while (co_await entries.next()) {
            }
        };
        co_await expect_failure(walk, "coil::fs::walk", none);
        auto write = [](path p) -> task<> { co_await fs::write_file(p, "text"); };
        co_await expect_failure(write, "coil::fs::write_file", none / "in");
        auto watch = [](path p) -> task<> {
            static_cast<void>(fs::watch(p, IN_MODIFY));
            co_return;
        };
        co_await expect_failure(watch, "coil::fs::watch", none);
    }(dir));
}

TEST(ErrorText, NamesTheFunctionOfAnEntry) {
    const scratch dir;
    std::filesystem::create_directory(dir / "sub");
    coil::run([](const scratch& in) -> task<> {
        auto entries = fs::read_directory(in.path());
        auto entry = co_await entries.next();
        EXPECT_TRUE(entry.has_value());
        try {
            co_await entry->file_size();
            ADD_FAILURE() << "file_size() of a directory returned";
        } catch (const fs::filesystem_error& e) {
            const std::string text = e.what();
            EXPECT_NE(text.find(": coil::fs::directory_entry::file_size: "), std::string::npos)
                << text;
            EXPECT_EQ(e.path1(), in / "sub");
        }
    }(dir));
}

} // namespace
