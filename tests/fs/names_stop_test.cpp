// Functions of coil::fs that are cancelled before and during their work, and coroutines destroyed
// while they await one.

#include "fs/names_support.hpp"
#include "support/descriptors.hpp"

#include <functional>
#include <memory>

using namespace coil;
using namespace names_test;

namespace {

/// Calls every function in a task that has been asked to stop.
class stopped {
public:
    explicit stopped(io_context& context) : context_(context) { source_.request_stop(); }

    template <class T>
    void throwing(const char* what, task<T> work) {
        const said s =
            coil_test::run_on(context_, with_stop_token(say_in_coil(std::move(work)), token()));
        EXPECT_EQ(s.code, std::errc::operation_canceled) << what;
    }
    template <class F>
    void coded(const char* what, F f) {
        std::error_code ec = dirty();
        const said s = coil_test::run_on(context_, with_stop_token(say_in_coil(f(ec)), token()));
        EXPECT_EQ(ec, std::errc::operation_canceled) << what;
        EXPECT_EQ(s.code, std::error_code()) << what << ": it threw as well";
    }

private:
    [[nodiscard]] inplace_stop_token token() const { return source_.get_token(); }

    io_context& context_;
    inplace_stop_source source_;
};

#define COIL_ASK_STOPPED(name, ...)                                                                \
    s.throwing(#name "(" #__VA_ARGS__ ")", fs::name(__VA_ARGS__));                                 \
    s.coded(#name "(" #__VA_ARGS__ ", ec)",                                                        \
            [&](std::error_code& ec) { return fs::name(__VA_ARGS__ __VA_OPT__(, ) ec); })

void everything_is_cancelled(io_context& context) {
    const temporary_tree tree(2);
    const inside here(tree.root());
    stdfs::create_directories("d/e");
    std::ofstream("f") << "content";
    stdfs::create_symlink("f", "l");
    const std::string before = listing(".");
    stopped s(context);
    for (const path p : {"d", "f", "l", "new", "new/er"}) {
        const path q = "q";
        COIL_ASK_STOPPED(status, p);
        COIL_ASK_STOPPED(symlink_status, p);
        COIL_ASK_STOPPED(exists, p);
        COIL_ASK_STOPPED(is_regular_file, p);
        COIL_ASK_STOPPED(is_directory, p);
        COIL_ASK_STOPPED(is_symlink, p);
        COIL_ASK_STOPPED(is_other, p);
        COIL_ASK_STOPPED(is_block_file, p);
        COIL_ASK_STOPPED(is_character_file, p);
        COIL_ASK_STOPPED(is_fifo, p);
        COIL_ASK_STOPPED(is_socket, p);
        COIL_ASK_STOPPED(is_empty, p);
        COIL_ASK_STOPPED(file_size, p);
        COIL_ASK_STOPPED(hard_link_count, p);
        COIL_ASK_STOPPED(last_write_time, p);
        COIL_ASK_STOPPED(last_write_time, p, stdfs::file_time_type());
        COIL_ASK_STOPPED(space, p);
        COIL_ASK_STOPPED(equivalent, p, p);
        COIL_ASK_STOPPED(permissions, p, stdfs::perms::none);
        COIL_ASK_STOPPED(permissions, p, stdfs::perms::none, stdfs::perm_options::add);
        COIL_ASK_STOPPED(resize_file, p, 0);
        COIL_ASK_STOPPED(read_symlink, p);
        COIL_ASK_STOPPED(copy_symlink, p, q);
        COIL_ASK_STOPPED(create_symlink, p, q);
        COIL_ASK_STOPPED(create_directory_symlink, p, q);
        COIL_ASK_STOPPED(create_hard_link, p, q);
        COIL_ASK_STOPPED(create_directory, p);
        COIL_ASK_STOPPED(create_directory, p, "d");
        COIL_ASK_STOPPED(create_directories, p);
        COIL_ASK_STOPPED(rename, p, q);
        COIL_ASK_STOPPED(remove, p);
        COIL_ASK_STOPPED(canonical, p);
        COIL_ASK_STOPPED(weakly_canonical, p);
        COIL_ASK_STOPPED(absolute, p);
        COIL_ASK_STOPPED(relative, p);
        COIL_ASK_STOPPED(relative, p, q);
        COIL_ASK_STOPPED(proximate, p);
        COIL_ASK_STOPPED(proximate, p, q);
        COIL_ASK_STOPPED(current_path);
        COIL_ASK_STOPPED(current_path, p);
        COIL_ASK_STOPPED(temp_directory_path);
    }
    EXPECT_EQ(listing("."), before) << "the call had an effect";
}

#undef COIL_ASK_STOPPED

TEST(NamesStop, G3_ATaskThatWasAskedToStopIsCancelledAndDoesNothing) {
    io_context context;
    everything_is_cancelled(context);
    everything_is_cancelled(*context_of_an_old_kernel());
}

task<> make_path(path p, said& outcome) {
    outcome = co_await say_in_coil(fs::create_directories(p));
}

/// Waits until `p` exists or `outcome` is known.
task<> once_there(path p, const said& outcome, std::function<void()> f) {
    while (!stdfs::exists(p) && outcome == said()) {
        co_await yield();
    }
    f();
}

constexpr const char* deep_path = "a/b/../c/./d/e/f";
/// The directories created, in order; "." exists before.
constexpr const char* steps[] = {".", "a", "a/b", "a/c", "a/c/d", "a/c/d/e", deep_path};

std::unique_ptr<io_context> context_of(bool old_kernel) {
    return old_kernel ? context_of_an_old_kernel() : std::make_unique<io_context>();
}

TEST(NamesStop, G3_StoppedAtAnyMomentItHasMadeAncestorsBeforeDescendants) {
    for (const bool old : {false, true}) {
        int cancelled = 0;
        for (const char* const step : steps) {
            SCOPED_TRACE(step);
            const temporary_tree tree(2);
            const inside here(tree.root());
            const auto context = context_of(old);
            said outcome;
            auto made = context->spawn(make_path(deep_path, outcome));
            context->co_spawn(once_there(step, outcome, [&] { made.cancel(); }));
            context->run();
            if (outcome.code) {
                EXPECT_EQ(outcome.code, std::errc::operation_canceled);
                EXPECT_EQ(outcome.path1, deep_path);
                ++cancelled;
            } else {
                EXPECT_EQ(outcome.value, "1");
                EXPECT_TRUE(stdfs::is_directory(deep_path));
            }
            bool missing = false;
            for (const char* const made_before : steps) {
                const bool there = stdfs::is_directory(made_before);
                EXPECT_FALSE(there && missing) << made_before;
                missing = missing || !there;
            }
        }
        EXPECT_TRUE(cancelled > 0 || old); // a pool may finish before a coroutine suspends
    }
}

TEST(NamesStop, G5_DestroyedAtAnyMomentItLeavesNoDescriptor) {
    for (const bool old : {false, true}) {
        int in_the_middle = 0;
        for (const char* const step : steps) {
            SCOPED_TRACE(step);
            const temporary_tree tree(2);
            const inside here(tree.root());
            const std::set<int> before = coil_test::open_descriptors();
            {
                const auto context = context_of(old);
                said outcome;
                context->co_spawn(make_path(deep_path, outcome));
                context->co_spawn(once_there(step, outcome, [&] { context->stop(); }));
                context->run();
                in_the_middle += outcome == said() && stdfs::exists("a") ? 1 : 0;
            }
            EXPECT_EQ(coil_test::open_descriptors(), before);
        }
        EXPECT_TRUE(in_the_middle > 0 || old); // a pool may finish before a coroutine suspends
    }
}

/// A context whose backend calls `f` when `call` is submitted with `name` for the first time.
std::unique_ptr<io_context> context_with(coil_test::opcode call, std::string name,
                                         std::function<void()> f) {
    auto door = std::make_shared<coil_test::door_backend::guard>();
    door->before_enter = [call, name = std::move(name), f = std::move(f), done = false](
                             auto&, const std::vector<coil_test::sqe>& entries, unsigned) mutable {
        for (const coil_test::sqe& e : entries) {
            if (!done && e.opcode == static_cast<std::uint8_t>(call) &&
                name == reinterpret_cast<const char*>(static_cast<std::uintptr_t>(e.addr))) {
                done = true;
                f();
            }
        }
        return 0;
    };
    return std::make_unique<io_context>(coil_test::with(
        [&](io_context_options& o) { o.make_backend = coil_test::door_backend::factory(door); }));
}

TEST(NamesStop, ASymlinkThatReplacesACreatedDirectoryIsNotFollowed) {
    const temporary_tree tree(2);
    const inside here(tree.root());
    stdfs::create_directories("top");
    stdfs::create_directories("elsewhere");
    int swapped = 0;
    const auto context = context_with(coil_test::opcode::openat2, "a", [&] {
        stdfs::remove("top/a");
        stdfs::create_symlink("../elsewhere", "top/a");
        ++swapped;
    });
    const said s = coil_test::run_on(*context, say_in_coil(fs::create_directories("top/a/b/c")));
    EXPECT_EQ(swapped, 1);
    EXPECT_EQ(s.code, std::errc::not_a_directory);
    EXPECT_TRUE(stdfs::is_empty("elsewhere"));
}

TEST(NamesStop, WorkContinuesInADirectoryThatIsMovedMeanwhile) {
    const temporary_tree tree(2);
    const inside here(tree.root());
    stdfs::create_directories("top");
    const auto context = context_with(coil_test::opcode::mkdirat, "c", [] {
        stdfs::rename("top", "moved");
        stdfs::create_symlink("/nonexistent-coil", "top");
    });
    const said s = coil_test::run_on(*context, say_in_coil(fs::create_directories("top/a/b/c")));
    EXPECT_EQ(s, (said{"1", {}, {}, {}}));
    EXPECT_TRUE(stdfs::is_directory("moved/a/b/c"));
}

/// Requests the stop after the kernel has completed the request, before the loop sees the result.
task<> stop_when(const bool& asked, join_handle<>& work) {
    while (!asked) {
        co_await yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    work.cancel();
}

TEST(NamesStop, G3_StoppedBeforeItHasQueriedTheExistingFileItIsCancelled) {
    const temporary_tree tree(2);
    const inside here(tree.root());
    stdfs::create_directory("d");
    bool asked = false;
    const auto context = context_with(coil_test::opcode::mkdirat, "d", [&asked] { asked = true; });
    said outcome;
    auto made = context->spawn(
        [](said& o) -> task<> { o = co_await say_in_coil(fs::create_directory("d")); }(outcome));
    context->co_spawn(stop_when(asked, made));
    context->run();
    EXPECT_EQ(outcome.code, std::errc::operation_canceled);
}

task<> make_and_count(path p, int& made) { made += co_await fs::create_directories(p) ? 1 : 0; }

TEST(NamesStop, OneOfSeveralCreatorsOfAPathReportsThatItCreatedIt) {
    for (int round = 0; round < coil_test::rounds(20, 1000); ++round) {
        const temporary_tree tree(2);
        const path p = tree.root() / deep_path;
        int made[2][4] = {};
        runtime contexts(2);
        for (auto& of_context : made) {
            for (int& m : of_context) {
                contexts.co_spawn(make_and_count(p, m));
            }
        }
        contexts.run();
        int all = 0;
        for (auto& of_context : made) {
            for (const int m : of_context) {
                all += m;
            }
        }
        EXPECT_EQ(all, 1);
        EXPECT_TRUE(stdfs::is_directory(p));
    }
}

} // namespace
