#pragma once

#include "uring/support.hpp"

#include <coil/uring/epoll_backend.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string_view>

#include <sys/socket.h>

// Tests of the behaviour that io_uring and the epoll backend must have in common.

namespace uring_test {

using namespace std::chrono_literals;

struct BothBackends : ::testing::TestWithParam<const char*> {
    std::unique_ptr<backend> make() const {
        return std::string_view(GetParam()) == "epoll" ? make_epoll_backend()
                                                       : make_linux_backend();
    }
    ring_options small(unsigned entries = 16) const {
        ring_options options;
        options.entries = entries;
        return options;
    }
    bool emulated() const { return std::string_view(GetParam()) == "epoll"; }
    void SetUp() override {
        static const availability here = available();
        if (!emulated() && !here) {
            GTEST_SKIP() << here.reason;
        }
    }
};

#define COIL_ON_BOTH_BACKENDS(suite)                                                               \
    INSTANTIATE_TEST_SUITE_P(Backends, suite, ::testing::Values("io_uring", "epoll"),              \
                             [](const auto& one) { return std::string(one.param); })

/// The results of `n` entries, by user_data.
inline std::map<std::uint64_t, int> results(ring& r, unsigned n) {
    std::map<std::uint64_t, int> found;
    while (found.size() < n) {
        const cqe c = next(r);
        found[c.user_data] = c.res;
    }
    return found;
}

/// Whether no completion arrives within `time`. (A wait may be interrupted without a signal, by
/// work that io_uring still does for a closed ring.)
inline bool is_quiet(ring& r, std::chrono::milliseconds time) {
    int error = r.wait(time);
    while (error == -EINTR) {
        error = r.wait(time);
    }
    return error == -ETIME;
}

/// An entry that uses a buffer of a group.
inline sqe selecting(sqe s, unsigned group = 1) {
    s.flags |= sqe_flag::buffer_select;
    s.buf_group = static_cast<std::uint16_t>(group);
    return s;
}

struct stream_pair {
    explicit stream_pair(int type = SOCK_STREAM) {
        int fds[2];
        if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) != 0) {
            throw std::system_error(errno, std::generic_category(), "socketpair");
        }
        a = descriptor{fds[0]};
        b = descriptor{fds[1]};
    }
    descriptor a;
    descriptor b;
};

} // namespace uring_test
