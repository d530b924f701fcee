// Verifies that every test of these programs, including its fixture, ends with the descriptors with
// which it began (guarantee G4).

#include "support/descriptors.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

namespace coil_test {

namespace {

class descriptor_count final : public testing::EmptyTestEventListener {
    void OnTestStart(const testing::TestInfo&) override { before_ = open_descriptors(); }
    void OnTestEnd(const testing::TestInfo&) override {
        for (const int fd : open_descriptors()) {
            if (!before_.contains(fd)) {
                std::error_code gone;
                ADD_FAILURE() << "descriptor " << fd << " leaked: "
                              << std::filesystem::read_symlink(
                                     "/proc/self/fd/" + std::to_string(fd), gone);
            }
        }
    }

    std::set<int> before_;
};

// gtest_main defines main(), so this is installed by a static initializer.
[[maybe_unused]] const bool descriptors_are_watched = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new descriptor_count);
    return true;
}();

} // namespace

} // namespace coil_test
