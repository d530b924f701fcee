// The corpus of each target of the fuzzer, and inputs derived from it, in every run of the tests.

#include "fuzz/control.hpp"
#include "fuzz/endpoint.hpp"
#include "fuzz/lines.hpp"
#include "support/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using input = std::vector<std::uint8_t>;

struct named_input {
    std::string name;
    input data;
};

/// The files of the corpus, sorted by name.
std::vector<named_input> corpus(const std::string& target) {
    std::vector<named_input> all;
    const std::filesystem::path folder = std::filesystem::path(FUZZ_CORPUS) / target;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream file(entry.path(), std::ios::binary);
        all.push_back(
            {entry.path().filename().string(), input(std::istreambuf_iterator<char>(file), {})});
    }
    std::ranges::sort(all, {}, &named_input::name);
    return all;
}

std::string hex(const input& data) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : data) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

/// Returns whether all promises hold.
bool holds(void (*target)(fuzz::bytes), const input& data, const std::string& what) {
    try {
        target(data);
        return true;
    } catch (const std::exception& e) {
        ADD_FAILURE() << what << ": not true: " << e.what() << "\ninput: " << hex(data);
        return false;
    }
}

/// A copy of one input with parts of another one and with inserted, removed or changed bytes.
input changed(coil_test::random_source& random, const std::vector<named_input>& from) {
    const auto any = [&]() -> const input& {
        return from[random.below(static_cast<unsigned>(from.size()))].data;
    };
    const auto place = [&](const input& in) {
        return random.below(static_cast<unsigned>(in.size()) + 1);
    };
    input data = any();
    for (unsigned steps = random.between(1, 4); steps > 0; --steps) {
        const unsigned at = place(data);
        if (random.one_in(4)) {
            const input& other = any();
            data.insert(data.begin() + at, other.begin() + place(other), other.end());
            data.resize(std::min<std::size_t>(data.size(), 1024));
        } else if (at == data.size() || random.one_in(3)) {
            data.insert(data.begin() + at, static_cast<std::uint8_t>(random()));
        } else if (random.one_in(3)) {
            data.erase(data.begin() + at);
        } else {
            data[at] = static_cast<std::uint8_t>(random());
        }
    }
    return data;
}

void replay(const std::string& name, void (*target)(fuzz::bytes)) {
    const std::vector<named_input> inputs = corpus(name);
    ASSERT_FALSE(inputs.empty());
    for (const named_input& in : inputs) {
        if (!holds(target, in.data, in.name)) {
            return;
        }
    }
    for (unsigned seed = 1; seed <= 2000; ++seed) {
        coil_test::random_source random(seed);
        if (!holds(target, changed(random, inputs), "seed " + std::to_string(seed))) {
            return;
        }
    }
}

/// The context that all inputs of `lines` share exists before the descriptors of a test are
/// counted.
[[maybe_unused]] const bool context_exists = [] {
    fuzz::lines({});
    return true;
}();

TEST(Fuzz, Endpoint) { replay("endpoint", fuzz::endpoint); }
TEST(Fuzz, Control) { replay("control", fuzz::control); }
TEST(Fuzz, Lines) { replay("lines", fuzz::lines); }

} // namespace
