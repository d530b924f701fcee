#include "swapper.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

// The functions on trees, attacked as swapper.hpp describes.

namespace {

using namespace coil;
using namespace fs_test;

INSTANTIATE_TEST_SUITE_P(, FsSwapper, testing::ValuesIn(attacks),
                         testing::PrintToStringParamName());

task<> walk_whole(fs::path p, std::set<std::string>& seen, std::error_code& ec) {
    auto tree = fs::walk(std::move(p), ec);
    while (auto entry = co_await tree.next()) {
        seen.insert(entry->path().lexically_normal());
    }
}

/// Keeps times and owners: root gives the copies to the owners of the originals.
TEST_P(FsSwapper, CopyTreeWithOwners) {
    attacked([&] {
        arena a(GetParam());
        fs::copy_tree_options options;
        options.owner = true;
        options.times = true;
        while_swapped(a, arena::names(), [&](io_context& context) {
            std::error_code ec;
            coil_test::run_on(context, fs::copy_tree(a / "tree", a / "copy", options, ec));
            expect_no_device_opened(a, ec);
            arena::expect_no_secret_in(a / "copy");
            stdfs::remove_all(a / "copy");
        });
    });
}

/// Links, directories, files readable by all and files readable only by the owner, side by side.
std::vector<std::string> make_many_names(const arena& a) {
    std::vector<std::string> names;
    for (int i = 0; i < 40; ++i) {
        const std::string number = std::to_string(i);
        names.push_back("x/" + number);
        const stdfs::path p = a / ("tree/x/" + number);
        switch (i % 4) {
        case 0:
            stdfs::create_directory_symlink(a / "outside", p);
            break;
        case 1:
            stdfs::create_directory(p);
            coil_test::put(p / "file", "harmless");
            break;
        default:
            coil_test::put(p, i % 4 == 2 ? "harmless" : "private");
            ::chmod(p.c_str(), i % 4 == 2 ? 0644 : 0600);
        }
        a.give(p);
    }
    return names;
}

/// Copies a tree without following its links.
using copying = task<> (*)(fs::path, fs::path, std::error_code&);

constexpr copying by_copy_tree = [](fs::path from, fs::path to, std::error_code& ec) -> task<> {
    co_await fs::copy_tree(from, to, ec);
};
constexpr copying by_copy = [](fs::path from, fs::path to, std::error_code& ec) -> task<> {
    co_await fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks, ec);
};

/// Copies `from` once, and expects nothing from outside in the copy.
void expect_harmless(const arena& a, const char* from, io_context& context, copying copy) {
    std::error_code ec;
    coil_test::run_on(context, copy(a / from, a / "copy", ec));
    expect_no_device_opened(a, ec);
    arena::expect_no_secret_in(a / "copy");
    stdfs::remove_all(a / "copy");
}

class FsSwapperOfCopies : public FsSwapper {
protected:
    void copied(copying copy) const {
        attacked([&] {
            arena a(GetParam());
            while_swapped(a, arena::names(),
                          [&](io_context& context) { expect_harmless(a, "tree", context, copy); });
        });
    }
    /// Any two of many names are exchanged.
    void many_names_copied(copying copy) const {
        attacked([&] {
            arena a(GetParam());
            const std::vector<std::string> names = make_many_names(a);
            while_swapped(
                a, names, [&](io_context& context) { expect_harmless(a, "tree/x", context, copy); },
                names);
        });
    }
};
INSTANTIATE_TEST_SUITE_P(, FsSwapperOfCopies, testing::ValuesIn(attacks),
                         testing::PrintToStringParamName());

TEST_P(FsSwapperOfCopies, CopyTree) { copied(by_copy_tree); }
TEST_P(FsSwapperOfCopies, Copy) { copied(by_copy); }
TEST_P(FsSwapperOfCopies, CopyTreeOfManyNames) { many_names_copied(by_copy_tree); }
TEST_P(FsSwapperOfCopies, CopyOfManyNames) { many_names_copied(by_copy); }

/// The opposite case: the target tree belongs to another user.
TEST_P(FsSwapper, CopyTreeIntoATree) {
    attacked([&] {
        arena a(GetParam(), arena::kinds_of_targets());
        stdfs::path deep = a / "from/x/in";
        stdfs::create_directories(deep);
        for (const char* const name :
             {"from/file", "from/x/file", "from/x/in/file", "from/x/in/x"}) {
            coil_test::put(a / name, "new");
        }
        for (int i = 0; i < 10; ++i) {
            deep /= "d";
            stdfs::create_directory(deep);
            coil_test::put(deep / "f", "new");
        }
        fs::copy_tree_options options;
        options.options |= fs::copy_options::overwrite_existing;
        bool keeps = false;
        while_swapped(a, arena::names(), [&](io_context& context) {
            std::error_code ec;
            if (keeps) { // the copy has given the attacker's directories to this user
                coil_test::run_on(context, fs::remove_all(a / "tree", ec));
            }
            a.create_entries();
            options.owner = options.times = keeps = !keeps;
            coil_test::run_on(context, fs::copy_tree(a / "from", a / "tree", options, ec));
            expect_no_device_opened(a, ec);
        });
    });
}

TEST_P(FsSwapper, RemoveAll) {
    attacked([&] {
        arena a(GetParam());
        while_swapped(a, arena::names(), [&](io_context& context) {
            std::error_code ec;
            a.create_entries();
            coil_test::run_on(context, fs::remove_all(a / "tree", ec));
        });
    });
}

TEST_P(FsSwapper, Walk) {
    attacked([&] {
        arena a(GetParam());
        while_swapped(a, arena::names(), [&](io_context& context) {
            std::error_code ec;
            std::set<std::string> seen;
            coil_test::run_on(context, walk_whole(a / "tree", seen, ec));
            for (const std::string& name : seen) { // "only" exists only outside
                ASSERT_FALSE(name.ends_with("/only")) << name;
            }
        });
    });
}

/// copy_file() follows links that exist when it checks the name. Therefore its target is exchanged
/// only with files, directories and FIFOs, and its source may be outside.
TEST_P(FsSwapper, CopyFile) {
    attacked([&] {
        arena a(GetParam(), {"directory", "regular", "fifo", "socket", "device"});
        coil_test::put(a / "source", "new");
        const auto options = fs::copy_options::overwrite_existing;
        while_swapped(a, {"file"}, [&](io_context& context) {
            std::error_code ec;
            coil_test::run_on(context, fs::copy_file(a / "source", a / "tree/file", options, ec));
            expect_no_device_opened(a, ec);
            coil_test::run_on(context, fs::copy_file(a / "tree/file", a / "copy", options, ec));
            expect_no_device_opened(a, ec);
            if (stdfs::exists(a / "copy")) {
                arena::expect_no_secret(a / "copy");
            }
        });
    });
}

} // namespace
