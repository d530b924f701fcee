#include "support/run.hpp"
#include "trees.hpp"

#include <filesystem>
#include <system_error>

#include <sys/resource.h>

namespace {

using namespace coil;
using namespace fs_test;

TEST(fs_remove_all, counts_as_the_standard_does) {
    const temporary_directory tmp;
    for (unsigned seed = 1; seed < 6; ++seed) {
        random_tree(tmp / "ours", seed);
        random_tree(tmp / "theirs", seed);
        const std::uintmax_t theirs = stdfs::remove_all(tmp / "theirs");
        EXPECT_EQ(coil::run(fs::remove_all(tmp / "ours")), theirs);
        EXPECT_FALSE(stdfs::exists(tmp / "ours"));
    }
}

} // namespace
