#pragma once

#include "support/running_backend.hpp"

#include <coil/uring/prep.hpp>
#include <coil/uring/probe.hpp>
#include <coil/uring/ring.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uring_test {

using namespace coil::uring;
using coil::uring::timespec; // not the global one

/// coil::uring::ring, on the epoll backend if COIL_BACKEND says so.
class ring : public coil::uring::ring {
public:
    explicit ring(unsigned entries = 256) : ring(options_for(entries)) {}
    explicit ring(const ring_options& options,
                  std::unique_ptr<backend> k = coil_test::make_running_backend())
        : coil::uring::ring(options, std::move(k)) {}
    ring(unsigned entries, const params& p,
         std::unique_ptr<backend> k = coil_test::make_running_backend())
        : coil::uring::ring(entries, p, std::move(k)) {}

private:
    static ring_options options_for(unsigned entries) {
        ring_options options;
        options.entries = entries;
        return options;
    }
};

/// Tests that need io_uring, or the backend that replaces it, derive from this.
class with_io_uring : public ::testing::Test {
protected:
    void SetUp() override {
        if (coil_test::on_epoll()) {
            return;
        }
        static const availability here = available();
        if (!here) {
            GTEST_SKIP() << here.reason;
        }
    }
};

#define COIL_NEEDS(r, op)                                                                          \
    if (!(r).supports(coil::uring::opcode::op))                                                    \
    GTEST_SKIP() << "this kernel has no " #op

inline void queue(ring& r, const sqe& entry, std::uint64_t user_data, std::uint8_t flags = 0) {
    sqe* s = r.acquire();
    ASSERT_NE(s, nullptr);
    *s = entry;
    s->user_data = user_data;
    s->flags = static_cast<std::uint8_t>(s->flags | flags);
    r.commit(s);
}

/// Waits for the next completion and consumes it.
inline cqe next(ring& r) {
    using namespace std::chrono_literals;
    int error = 0;
    while (!r.has_completions()) {
        error = r.wait(10s);
        if (error != 0 && error != -EINTR) {
            throw std::system_error(-error, std::generic_category(), "no completion");
        }
    }
    const cqe c = *r.peek();
    r.advance();
    return c;
}

/// Submits one entry and waits for its completion, on an otherwise idle ring.
inline cqe complete(ring& r, const sqe& entry, std::uint8_t flags = 0) {
    static std::uint64_t tag = 1000;
    queue(r, entry, ++tag, flags);
    const cqe c = next(r);
    EXPECT_EQ(c.user_data, tag);
    return c;
}

inline int run(ring& r, const sqe& entry, std::uint8_t flags = 0) {
    return complete(r, entry, flags).res;
}

/// Converts the result of a system call (-1 and errno) to that of a completion.
template <class T>
int outcome(T returned) {
    return returned < 0 ? -errno : static_cast<int>(returned);
}

class descriptor {
public:
    explicit descriptor(int fd = -1) noexcept : fd_(fd) {}
    descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~descriptor() { reset(); }
    void reset() noexcept {
        if (fd_ >= 0) {
            ::close(fd_);
        }
        fd_ = -1;
    }
    operator int() const noexcept { return fd_; }

private:
    int fd_;
};

struct pipe_pair {
    pipe_pair() {
        int fds[2];
        if (::pipe2(fds, O_CLOEXEC) != 0) {
            throw std::system_error(errno, std::generic_category(), "pipe2");
        }
        in = descriptor{fds[0]};
        out = descriptor{fds[1]};
    }
    descriptor in;
    descriptor out;
};

class temporary_directory {
public:
    temporary_directory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "coil-uring-XXXXXX");
        if (::mkdtemp(pattern.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), pattern);
        }
        path_ = pattern;
    }
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string operator/(const char* name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

/// Runs `f` in a child process, where it may change limits and identity permanently. `f` returns a
/// description of its failure; the empty string is success.
inline std::string in_child(const std::function<std::string()>& f) {
    pipe_pair channel;
    const pid_t child = ::fork();
    if (child < 0) {
        return "fork failed";
    }
    if (child == 0) {
        std::string complaint;
        try {
            complaint = f();
        } catch (const std::exception& e) {
            complaint = std::string("exception: ") + e.what();
        }
        const auto written = ::write(channel.out, complaint.data(), complaint.size());
        ::_exit(written == static_cast<ssize_t>(complaint.size()) ? 0 : 1);
    }
    channel.out.reset();
    std::string complaint;
    char buf[512];
    for (ssize_t n; (n = ::read(channel.in, buf, sizeof buf)) > 0;) {
        complaint.append(buf, static_cast<std::size_t>(n));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        complaint += " (the child died)";
    }
    return complaint;
}

/// Makes one system call fail with `error`, or return 0 without effect if `error` is 0. For
/// children.
inline std::string forbid(unsigned call, unsigned error) {
    ::sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const ::sock_fprog program{4, code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        return std::string("seccomp: ") + std::strerror(errno);
    }
    return "";
}

/// A backend that forwards calls to another one, and can refuse them or modify their results.
class filter_backend final : public backend {
public:
    explicit filter_backend(std::unique_ptr<backend> behind = coil_test::make_running_backend())
        : behind_(std::move(behind)) {}

    /// Called before each setup. A non-zero result (-errno) is returned without calling the other
    /// backend.
    std::function<int(unsigned entries, const params&)> refuse_setup;
    /// Called after a successful setup.
    std::function<void(params&)> after_setup;
    std::function<int(unsigned flags, const void* arg, std::size_t size)> refuse_enter;
    std::function<int(register_op)> refuse_control;
    /// Answers register_op::query in place of the other backend.
    std::function<int(query_hdr&, unsigned count)> answer_query;

    int setup(unsigned entries, params& p, mapping& m) noexcept override {
        if (refuse_setup) {
            if (const int error = refuse_setup(entries, p); error != 0) {
                return error;
            }
        }
        const int r = behind_->setup(entries, p, m);
        if (r == 0 && after_setup) {
            after_setup(p);
        }
        return r;
    }
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t size) noexcept override {
        if (refuse_enter) {
            if (const int error = refuse_enter(flags, arg, size); error != 0) {
                return error;
            }
        }
        return behind_->enter(to_submit, min_complete, flags, arg, size);
    }
    int do_register(register_op op, void* arg, unsigned count) noexcept override {
        if (refuse_control) {
            if (const int error = refuse_control(op); error != 0) {
                return error;
            }
        }
        if (answer_query && op == register_op::query) {
            return answer_query(*static_cast<query_hdr*>(arg), count);
        }
        return behind_->do_register(op, arg, count);
    }
    std::chrono::steady_clock::time_point now() noexcept override { return behind_->now(); }
    int native_handle() const noexcept override { return behind_->native_handle(); }
    bool posts_asynchronously() const noexcept override { return behind_->posts_asynchronously(); }
    std::string_view name() const noexcept override { return "filter"; }

private:
    std::unique_ptr<backend> behind_;
};

/// An in-memory backend: every entry completes with its `len` as result, in virtual time and
/// without a system call. The test chooses the initial values of the cursors.
class memory_backend final : public backend {
public:
    explicit memory_backend(std::uint32_t first = 0) : first_(first) {}

    unsigned most_per_enter = ~0U;    // the maximum number of entries consumed per enter()
    std::vector<int> results_to_come; // results of the next calls of enter(), which have no other
                                      // effect
    unsigned enters = 0;
    std::chrono::nanoseconds elapsed{0}; // virtual time
    std::vector<std::uint64_t> consumed; // user_data, in order of consumption

    int setup(unsigned entries, params& p, mapping& m) noexcept override {
        sq_count_ = 1;
        while (sq_count_ < entries) {
            sq_count_ *= 2;
        }
        cq_count_ = p.cq_entries != 0 ? p.cq_entries : 2 * sq_count_;
        words_.assign(words + sq_count_, 0);
        cq_.assign(words * 4 + cq_count_ * sizeof(cqe), 0);
        sqes_.assign(sq_count_, sqe{});
        words_[head] = words_[tail] = first_;
        words_[mask] = sq_count_ - 1;
        cq_word(head) = cq_word(tail) = first_;
        cq_word(mask) = cq_count_ - 1;
        p.sq_entries = sq_count_;
        p.cq_entries = cq_count_;
        p.features = feature::nodrop | feature::submit_stable | feature::ext_arg |
                     feature::single_mmap | feature::min_timeout;
        p.sq_off = {head * 4, tail * 4, mask * 4, 0, flags * 4, dropped * 4, words * 4, 0, 0};
        p.cq_off = {head * 4, tail * 4, mask * 4, 0, dropped * 4, words * 4, flags * 4, 0, 0};
        m = {words_.data(), cq_.data(), sqes_.data()};
        return 0;
    }

    int enter(unsigned to_submit, unsigned min_complete, unsigned enter_flags, const void* arg,
              std::size_t) noexcept override {
        ++enters;
        if (!results_to_come.empty()) {
            const int r = results_to_come.front();
            results_to_come.erase(results_to_come.begin());
            return r;
        }
        unsigned n = 0;
        for (; n < to_submit && n < most_per_enter; ++n) {
            const std::uint32_t index = words_[words + (words_[head] & words_[mask])];
            if (index >= sq_count_) {
                ++words_[dropped];
            } else {
                consumed.push_back(sqes_[index].user_data);
                post({sqes_[index].user_data, static_cast<std::int32_t>(sqes_[index].len), 0});
                // The application may reuse consumed entries immediately.
                sqes_[index].user_data = ~0ULL;
            }
            ++words_[head];
        }
        if ((enter_flags & enter_flag::getevents) == 0) {
            return static_cast<int>(n);
        }
        flush();
        if (cq_word(tail) - cq_word(head) >= min_complete || n != 0) {
            return static_cast<int>(n);
        }
        if ((enter_flags & enter_flag::ext_arg) != 0) {
            const auto& a = *static_cast<const getevents_arg*>(arg);
            const auto* ts = reinterpret_cast<const coil::uring::timespec*>(a.ts);
            elapsed += std::chrono::seconds{ts->tv_sec} + std::chrono::nanoseconds{ts->tv_nsec};
            return cq_word(tail) == cq_word(head) ? -ETIME : 0;
        }
        return -EDEADLK; // nothing would ever end this wait
    }

    int do_register(register_op, void*, unsigned) noexcept override { return -EINVAL; }
    std::chrono::steady_clock::time_point now() noexcept override {
        return std::chrono::steady_clock::time_point{} + elapsed;
    }
    int native_handle() const noexcept override { return -1; }
    std::string_view name() const noexcept override { return "memory"; }

private:
    enum : std::uint32_t { head, tail, mask, flags, dropped, pad1, pad2, pad3, words };

    std::uint32_t& cq_word(std::uint32_t i) {
        return reinterpret_cast<std::uint32_t*>(cq_.data())[i];
    }

    void post(const cqe& c) {
        if (!overflow_.empty() || cq_word(tail) - cq_word(head) == cq_count_) {
            overflow_.push_back(c);
            words_[flags] |= sq_flag::cq_overflow;
            return;
        }
        std::memcpy(cq_.data() + words * 4 + (cq_word(tail) & cq_word(mask)) * sizeof c, &c,
                    sizeof c);
        ++cq_word(tail);
    }

    void flush() {
        std::vector<cqe> waiting;
        waiting.swap(overflow_);
        words_[flags] &= ~sq_flag::cq_overflow;
        for (const cqe& c : waiting) {
            post(c);
        }
    }

    std::uint32_t first_;
    std::uint32_t sq_count_ = 0;
    std::uint32_t cq_count_ = 0;
    std::vector<std::uint32_t> words_;
    std::vector<std::uint8_t> cq_;
    std::vector<sqe> sqes_;
    std::vector<cqe> overflow_;
};

} // namespace uring_test
