#pragma once

#include "support/descriptors.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace compose_test {

/// Files that show which operations of a chain were executed.
class with_files : public ::testing::Test {
protected:
    static coil_test::descriptor temporary_file() {
        return coil_test::descriptor{::open(std::filesystem::temp_directory_path().c_str(),
                                            O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
    }
    static std::string contents(int fd) {
        std::string text(100, '\0');
        text.resize(static_cast<std::size_t>(::pread(fd, text.data(), text.size(), 0)));
        return text;
    }
};

} // namespace compose_test
