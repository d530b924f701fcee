// Random scripts of calls on files and directories that are cancelled, on all backends. Which calls
// are cancelled in time depends on timing. A script therefore records the results of the other
// calls, and contradictions between a result and the state of the files.

#include "conformance/differential.hpp"
#include "conformance/support.hpp"
#include "support/random.hpp"

#include <sstream>

#include <sys/stat.h>

namespace conformance {

namespace {

struct file_step {
    std::uint8_t what;
    std::uint8_t variant;
    std::uint8_t turns; // before the cancellation
    bool fails;         // even without a cancellation
};
using file_script = std::vector<file_step>;

class file_stage {
public:
    explicit file_stage(std::string directory)
        : top_(std::move(directory)), file_(top_ + "file"), name_(top_ + "name"),
          other_(top_ + "other"), missing_(top_ + "none") {}

    task<> open() {
        fd_ = co_await io::open(file_, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        EXPECT_GE(fd_, 0);
    }
    task<> close() {
        co_await gives(io::close(fd_), 0);
        co_await gives(io::unlink(file_), 0);
    }
    task<> one(file_step s, answers& results);

    static constexpr unsigned kinds = 14;

private:
    /// The outcome of a call: whether it was cancelled, otherwise its result.
    void say(long result) { results_->push_back(std::to_string(result)); }
    void blame(const std::string& what) { results_->push_back("IMPOSSIBLE " + what); }

    template <class Operation>
    task<int> cancelled(file_step s, Operation op) {
        auto running = coil::eager(std::move(op));
        for (unsigned i = 0; i < s.turns; ++i) {
            co_await coil::yield();
        }
        switch (s.variant % 3) {
        case 0: {
            const int told = co_await io::cancel(running);
            const int result = co_await running;
            if (told != 0 && told != -ENOENT && told != -EALREADY) {
                blame("cancel " + std::to_string(told));
            }
            // A read or write that has transferred some of its data returns that number of bytes.
            const bool ended_early = result == -ECANCELED || result > 0;
            if ((told == 0 && !ended_early) || (told == -ENOENT && result == -ECANCELED)) {
                blame("cancel " + std::to_string(told) + " and " + std::to_string(result));
            }
            co_return result;
        }
        case 1: {
            const int told = co_await io::cancel_all();
            if (told < 0 && told != -ENOENT) {
                blame("cancel_all " + std::to_string(told));
            }
            break;
        }
        default:
            running.cancel();
        }
        const int result = co_await running;
        co_return result;
    }

    /// A call that creates or removes a name: it has had its effect if and only if it was not
    /// cancelled. A cancelled call is repeated.
    template <class Make>
    task<> changes_name(file_step s, std::string name, bool creates, Make make) {
        const int result = co_await cancelled(s, make());
        struct ::statx st{};
        const int found =
            co_await io::statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st);
        const bool has_happened = (found == 0) == creates;
        if (!s.fails && has_happened != (result >= 0)) {
            blame(std::to_string(result) + " although the name says " + std::to_string(found));
        }
        if (result != -ECANCELED) {
            say(std::min(result, 0));
            close_if_open(result);
            co_return;
        }
        const int again = co_await make();
        say(std::min(again, 0));
        close_if_open(again);
    }
    /// A call that is repeated if it was cancelled.
    template <class Make>
    task<> repeats(file_step s, Make make) {
        int result = co_await cancelled(s, make());
        if (result == -ECANCELED) {
            result = co_await make();
        }
        say(result);
    }
    void close_if_open(int fd) {
        if (opens_ && fd >= 0) {
            EXPECT_EQ(coil::detail::perform(coil::uring::prep::close(fd)), 0);
        }
    }

    task<> names(file_step s);
    task<> content(file_step s);
    task<> clean() {
        co_await io::rmdir(name_);
        co_await io::unlink(name_);
        co_await io::unlink(other_);
    }

    answers* results_ = nullptr; // of the step
    const std::string top_;
    const std::string file_;
    const std::string name_;
    const std::string other_;
    const std::string missing_;
    int fd_ = -1;
    bool opens_ = false;
    std::string buffer_ = std::string(100, '\0');
    struct ::statx status_{};
};

task<> file_stage::names(file_step s) {
    const std::string in = s.fails ? top_ + "none/" : top_;
    const std::string from = s.fails ? missing_ : other_;
    const std::string to = in + "name";
    opens_ = s.what == 0;
    switch (s.what) {
    case 0:
        co_await changes_name(s, name_, true, [&] {
            return io::open(to, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
        });
        break;
    case 1:
        co_await changes_name(s, name_, true, [&] { return io::mkdir(to, 0700); });
        break;
    case 2:
        co_await changes_name(s, name_, true, [&] { return io::symlink("x", to); });
        break;
    case 3:
        co_await changes_name(s, name_, true, [&] { return io::link(file_, to); });
        break;
    case 4:
        co_await gives(io::link(file_, other_), 0);
        co_await changes_name(s, other_, false, [&] { return io::unlink(from); });
        break;
    case 5:
        co_await gives(io::mkdir(name_, 0700), 0);
        co_await changes_name(s, name_, false, [&] { return io::rmdir(s.fails ? from : name_); });
        break;
    default:
        co_await gives(io::mkdir(other_, 0700), 0);
        co_await changes_name(s, other_, false, [&] { return io::rename(from, name_); });
        co_await io::rmdir(other_);
    }
    co_await clean();
}

task<> file_stage::content(file_step s) {
    const int fd = s.fails ? -1 : fd_;
    const char letter = static_cast<char>('a' + s.variant % 26);
    const std::string text(60, letter);
    switch (s.what) {
    case 7:
        co_await repeats(s, [&] { return io::write(fd, text, 5); });
        break;
    case 8:
        co_await repeats(s, [&] { return io::read(fd, buffer_, 0); });
        break;
    case 9:
        co_await repeats(s, [&] { return io::fsync(fd); });
        break;
    case 10:
        co_await repeats(s, [&] { return io::ftruncate(fd, s.variant); });
        break;
    case 11:
        co_await repeats(s, [&] { return io::fallocate(fd, 0, s.variant, 100); });
        break;
    case 12:
        co_await repeats(s, [&] {
            return io::statx(AT_FDCWD, s.fails ? missing_ : file_, 0, STATX_BASIC_STATS, &status_);
        });
        break;
    default: {
        const ::iovec parts[] = {{buffer_.data(), 10}, {buffer_.data() + 10, 20}};
        co_await repeats(s, [&] { return io::readv(fd, parts, 3); });
    }
    }
    // The content is the same, whichever calls were cancelled.
    const int size = co_await io::read(fd_, buffer_, 0);
    say(size);
    results_->push_back(buffer_.substr(10, 1));
}

task<> file_stage::one(file_step s, answers& results) {
    results_ = &results;
    co_await (s.what < 7 ? names(s) : content(s));
}

std::string to_string(const file_script& script) {
    std::ostringstream text;
    for (const file_step& s : script) {
        text << "    {" << unsigned{s.what} << ' ' << unsigned{s.variant} << ' '
             << unsigned{s.turns} << ' ' << s.fails << "}\n";
    }
    return text.str();
}

file_script random_file_script(std::uint64_t seed, std::size_t steps) {
    coil_test::random_source r(seed);
    file_script s;
    s.reserve(steps);
    for (std::size_t i = 0; i < steps; ++i) {
        s.push_back({static_cast<std::uint8_t>(r.below(file_stage::kinds)),
                     static_cast<std::uint8_t>(r.below(120)), static_cast<std::uint8_t>(r.below(5)),
                     r.below(4) == 0});
    }
    return s;
}

task<> play_files(const file_script& script, file_stage& stage, answers& results) {
    for (const file_step s : script) {
        co_await stage.one(s, results);
    }
    // Restores the initial state.
    co_await stage.close();
    co_await stage.open();
}

/// One lane, because io::cancel_all() would cancel the calls of other lanes.
constexpr game<file_script, file_stage> cancelled_files{random_file_script, play_files, 10, 1};

TEST(Differential, G3_CancelledCallsOnFilesEndTheSameOnAllBackends) {
    compare_all(cancelled_files, present_backends(),
                static_cast<std::uint64_t>(coil_test::rounds(coil_test::sanitized ? 5 : 50, 1000)));
}

} // namespace

} // namespace conformance
