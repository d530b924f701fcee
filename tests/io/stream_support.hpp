#pragma once

#include "io/support.hpp"
#include "support/backends.hpp"
#include "support/random.hpp"

#include <coil/coil.hpp>

#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace io_test {

/// The sets of kernel features with which a stream must work.
enum class kernel_features : std::uint8_t {
    now,                 ///< all features of the running kernel
    without_incremental, ///< before 6.12
    single_reads,        ///< before 6.7: no multishot read
    without_rings,       ///< before 5.19: one request per piece, each with a buffer of its own
};

inline std::ostream& operator<<(std::ostream& out, kernel_features w) {
    constexpr const char* names[] = {"now", "without_incremental", "single_reads", "without_rings"};
    return out << names[static_cast<std::size_t>(w)];
}

inline coil::io_context_options options_of(kernel_features w) {
    using coil::uring::register_op;
    coil::io_context_options options;
    if (w == kernel_features::now) {
        return options;
    }
    auto guard = std::make_shared<coil_test::door_backend::guard>();
    guard->before_control = [w](register_op op, const void* arg) {
        if (op != register_op::pbuf_ring) {
            return 0;
        }
        const auto& reg = *static_cast<const coil::uring::buf_reg*>(arg);
        const bool incremental = (reg.flags & coil::uring::pbuf_ring_flag::inc) != 0;
        return w == kernel_features::without_rings || incremental ? -EINVAL : 0;
    };
    if (w != kernel_features::without_incremental) {
        guard->hidden.push_back(coil::uring::opcode::read_multishot);
    }
    if (w == kernel_features::without_rings) {
        // Hides the features by which multishot accept, poll and timeout are detected.
        guard->hidden.push_back(coil::uring::opcode::send_zc);
        guard->hidden.push_back(coil::uring::opcode::socket);
        guard->hidden.push_back(coil::uring::opcode::waitid);
        guard->hidden_features = coil::uring::feature::rsrc_tags;
    }
    options.make_backend = coil_test::door_backend::factory(guard);
    return options;
}

/// Runs a test with each of these sets of features, on a context.
class EachFeatureSet : public ::testing::Test,
                       public ::testing::WithParamInterface<kernel_features> {
protected:
    [[nodiscard]] static bool has_rings() { return GetParam() != kernel_features::without_rings; }

    template <class T>
    T run(coil::task<T> work) {
        return coil_test::run_on(context_, std::move(work));
    }
    void run(coil::task<> work) { coil_test::run_on(context_, std::move(work)); }

    coil::io_context context_{options_of(GetParam())};
};

#define COIL_ON_EACH_FEATURE_SET(suite)                                                            \
    INSTANTIATE_TEST_SUITE_P(, suite,                                                              \
                             ::testing::Values(io_test::kernel_features::now,                      \
                                               io_test::kernel_features::without_incremental,      \
                                               io_test::kernel_features::single_reads,             \
                                               io_test::kernel_features::without_rings),           \
                             ::testing::PrintToStringParamName())

inline coil::buffer_pool_options pool_of(unsigned buffers, std::size_t size,
                                         bool incremental = true, unsigned most = 0) {
    coil::buffer_pool_options options;
    options.buffers = buffers;
    options.buffer_size = size;
    options.incremental = incremental;
    options.max_buffers = most;
    return options;
}

/// Long enough for a submitted request to complete and the completion to be processed.
inline coil::task<> some_turns(int turns = 4) {
    for (int i = 0; i < turns; ++i) {
        co_await coil::io::nop();
    }
}

/// Byte i of a stream with deterministic content.
inline char nth_byte(std::uint64_t i) { return static_cast<char>((i * 2654435761U) >> 13); }

inline std::string bytes_from(std::uint64_t begin, std::size_t count) {
    std::string text(count, '\0');
    for (std::size_t i = 0; i < count; ++i) {
        text[i] = nth_byte(begin + i);
    }
    return text;
}

/// Whether these are the bytes from `begin` on.
inline bool are_bytes_from(std::uint64_t begin, std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != nth_byte(begin + i)) {
            return false;
        }
    }
    return true;
}

inline void put(int fd, std::string_view text) {
    if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
        coil_test::fail_with_errno("send");
    }
}

} // namespace io_test
