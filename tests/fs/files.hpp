#pragma once

#include "support/run.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <stdlib.h>

namespace coil_test {

/// A directory for one test, removed with its content.
class scratch {
public:
    scratch() {
        std::string name = std::filesystem::temp_directory_path() / "coil-fs-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("mkdtemp");
        }
        path_ = name;
    }
    explicit scratch(const std::filesystem::path& p) : path_(p) {
        std::filesystem::create_directories(p);
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    ~scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    [[nodiscard]] std::set<std::string> names() const {
        std::set<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(path_)) {
            found.insert(entry.path().filename());
        }
        return found;
    }

private:
    std::filesystem::path path_;
};

inline std::string content_of(const std::filesystem::path& p) {
    std::ifstream in(p, std::ios::binary);
    std::string all;
    char part[65536];
    while (in.read(part, sizeof part), in.gcount() > 0) {
        all.append(part, static_cast<std::size_t>(in.gcount()));
    }
    return all;
}

inline void put(const std::filesystem::path& p, std::string_view content) {
    std::ofstream(p, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
}

/// Data whose every part identifies its position.
inline std::string pattern(std::size_t size, unsigned seed = 1) {
    std::string made(size, '\0');
    std::uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
    for (std::size_t i = 0; i < size; i += sizeof state) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        std::memcpy(&made[i], &state, std::min(sizeof state, size - i));
    }
    return made;
}

} // namespace coil_test
