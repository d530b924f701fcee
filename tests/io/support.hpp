#pragma once

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

namespace io_test {

using coil_test::run_on;

template <class Operation>
coil::task<int> await_one(Operation op) {
    co_return co_await std::move(op);
}

/// A context, and the result of one operation on it.
class Calls : public ::testing::Test {
protected:
    /// For SetUp(): skips the tests if the ring lacks the opcode.
    void need(coil::uring::opcode op, const char* what_it_is_for) {
        if (!context_.loop().ring().supports(op)) {
            GTEST_SKIP() << "this kernel's rings lack " << what_it_is_for;
        }
    }

    template <class Operation>
    int result_of(Operation op) {
        return run_on(context_, await_one(std::move(op)));
    }

    coil::io_context context_;
};

/// Converts the result of a system call (-1 and errno) to an io_result.
template <class T>
int outcome(T returned) {
    return returned < 0 ? -errno : static_cast<int>(returned);
}

class temporary_directory {
public:
    temporary_directory() {
        std::string pattern = std::filesystem::temp_directory_path() / "coil-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) {
            coil_test::fail_with_errno("mkdtemp");
        }
        path_ = pattern;
    }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::filesystem::path operator/(const char* name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

} // namespace io_test
