#pragma once

#include "needs_fork.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs_test {

namespace stdfs = std::filesystem;

/// A temporary directory, removed at the end.
class temporary_directory {
public:
    temporary_directory() {
        std::string name = (stdfs::temp_directory_path() / "coil-trees-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory() {
        std::error_code ignored;
        stdfs::remove_all(path_, ignored);
    }

    [[nodiscard]] const stdfs::path& path() const noexcept { return path_; }
    friend stdfs::path operator/(const temporary_directory& d, const stdfs::path& p) {
        return d.path_ / p;
    }

private:
    stdfs::path path_;
};

inline void make_file(const stdfs::path& p, std::string_view content = {}) {
    std::ofstream(p, std::ios::binary) << content;
}

/// Creates `depth` nested directories "d", each with another directory beside it: deeper than the
/// maximum path length.
inline void make_deep(const stdfs::path& top, int depth) {
    int at = ::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < depth; ++i) {
        ::mkdirat(at, "d", 0700);
        if (i > 0) {
            ::mkdirat(at, "beside", 0700);
        }
        const int below = ::openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ::close(at);
        at = below;
    }
    ::mkdirat(at, "last", 0700);
    ::close(at);
}

/// Directories, files of all sizes, links to files and directories, dangling links; deterministic
/// for a seed.
inline void random_tree(const stdfs::path& top, unsigned seed, int directories = 30,
                        int files = 200) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<stdfs::path> all{top};
    stdfs::create_directory(top);
    for (int i = 0; i < directories; ++i) {
        const stdfs::path made = all[below(all.size())] / ("d" + std::to_string(i));
        stdfs::create_directory(made);
        all.push_back(made);
    }
    std::string content;
    for (int i = 0; i < files; ++i) {
        const stdfs::path made = all[below(all.size())] / ("f" + std::to_string(i));
        switch (below(12)) {
        case 0:
            stdfs::create_symlink("nowhere", made);
            break;
        case 1:
            stdfs::create_symlink("..", made);
            break;
        case 2:
            stdfs::create_symlink("f" + std::to_string(below(200)), made);
            break;
        default:
            content.assign(below(8) == 0 ? below(70'000) : below(3000),
                           static_cast<char>('a' + below(26)));
            make_file(made, content);
            stdfs::permissions(made, static_cast<stdfs::perms>(0400 | below(0400)));
        }
    }
}

} // namespace fs_test
