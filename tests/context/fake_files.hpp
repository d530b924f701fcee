#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <stdlib.h>

namespace context_test {

/// A folder that imitates a part of /sys, removed at the end.
class FakeFiles : public ::testing::Test {
protected:
    FakeFiles() {
        char name[] = "/tmp/coil-files-XXXXXX";
        root_ = ::mkdtemp(name);
    }
    ~FakeFiles() override { std::filesystem::remove_all(root_); }

    void put(const std::string& file, const std::string& text) const {
        const std::filesystem::path path = root_ + "/" + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << '\n';
    }

    std::string root_;
};

} // namespace context_test
