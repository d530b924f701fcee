#pragma once

#include "fs/names_support.hpp"

#include <chrono>
#include <climits>
#include <cstdint>

#include <unistd.h>

// Compares the functions of coil::fs with those of <filesystem> on the same trees: the same values,
// the same errors, and for changes the same resulting tree.

namespace names_test {

/// Calls both libraries with the same arguments, in each form of the function.
class both {
public:
    explicit both(coil::io_context& context) : context_(context) {}

    template <class S, class C>
    void throwing(const char* what, S standard, C of_coil) {
        compare(what, say(standard), coil_test::run_on(context_, say_in_coil(of_coil())));
    }
    template <class S, class C>
    void coded(const char* what, S standard, C of_coil) {
        compare(what, say_code(standard), say_code_in_coil(context_, of_coil));
    }

    [[nodiscard]] int errors() const noexcept { return errors_; }
    [[nodiscard]] int successes() const noexcept { return successes_; }

private:
    void compare(const char* what, const said& standard, const said& of_coil) {
        EXPECT_EQ(standard, of_coil) << what;
        // operator== of error_code compares category and value; the message also verifies the
        // category's name.
        EXPECT_EQ(standard.code.message(), of_coil.code.message()) << what;
        ++(standard.code ? errors_ : successes_);
    }

    coil::io_context& context_;
    int errors_ = 0;
    int successes_ = 0;
};

// Calls both forms of a function with these arguments.
#define COIL_ASK_BOTH(name, ...)                                                                   \
    b.throwing(                                                                                    \
        #name "(" #__VA_ARGS__ ")", [&] { return stdfs::name(__VA_ARGS__); },                      \
        [&] { return coil::fs::name(__VA_ARGS__); });                                              \
    b.coded(                                                                                       \
        #name "(" #__VA_ARGS__ ", ec)",                                                            \
        [&](std::error_code& ec) { return stdfs::name(__VA_ARGS__, ec); },                         \
        [&](std::error_code& ec) { return coil::fs::name(__VA_ARGS__, ec); })

inline void ask_everything(both& b, const path& p, const path& q) {
    SCOPED_TRACE(testing::Message() << "p = " << p << ", q = " << q);
    COIL_ASK_BOTH(status, p);
    COIL_ASK_BOTH(symlink_status, p);
    COIL_ASK_BOTH(exists, p);
    COIL_ASK_BOTH(is_regular_file, p);
    COIL_ASK_BOTH(is_directory, p);
    COIL_ASK_BOTH(is_symlink, p);
    COIL_ASK_BOTH(is_other, p);
    COIL_ASK_BOTH(is_block_file, p);
    COIL_ASK_BOTH(is_character_file, p);
    COIL_ASK_BOTH(is_fifo, p);
    COIL_ASK_BOTH(is_socket, p);
    COIL_ASK_BOTH(is_empty, p);
    COIL_ASK_BOTH(file_size, p);
    COIL_ASK_BOTH(hard_link_count, p);
    COIL_ASK_BOTH(last_write_time, p);
    COIL_ASK_BOTH(space, p);
    COIL_ASK_BOTH(equivalent, p, q);
    COIL_ASK_BOTH(read_symlink, p);
    COIL_ASK_BOTH(canonical, p);
    COIL_ASK_BOTH(weakly_canonical, p);
    COIL_ASK_BOTH(absolute, p);
    COIL_ASK_BOTH(relative, p);
    COIL_ASK_BOTH(relative, p, q);
    COIL_ASK_BOTH(proximate, p);
    COIL_ASK_BOTH(proximate, p, q);
}

inline void ask_of_random_trees(coil::io_context& context, int trees, std::uint64_t first_seed) {
    both b(context);
    for (int i = 0; i < trees && !testing::Test::HasFailure(); ++i) {
        const std::uint64_t seed = coil_test::mixed(first_seed, static_cast<std::uint64_t>(i));
        SCOPED_TRACE(testing::Message() << "tree " << seed);
        const temporary_tree tree(2); // not deep: a query that leaves the tree changes nothing
        make_random_tree(tree.root(), seed);
        const inside here(tree.root());
        random_source r(seed);
        for (int k = 0; k < 20 && !testing::Test::HasFailure(); ++k) {
            const path p = random_path(r);
            const path q = r.one_in(3) ? p : path(random_path(r));
            const bool from_root = r.one_in(4) && !p.empty();
            ask_everything(b, from_root ? path(tree.root() / p) : p, q);
        }
    }
    EXPECT_GT(b.errors(), 10);
    EXPECT_GT(b.successes(), 10);
}

#undef COIL_ASK_BOTH

/// Applies each change to two trees: with the standard's function to one, with coil's to the other.
class two_trees {
public:
    two_trees(coil::io_context& context, path theirs, path ours)
        : context_(context), theirs_(std::move(theirs)), ours_(std::move(ours)) {}

    template <class S, class Sc, class C, class Cc>
    void change(bool throwing, S standard, Sc standard_code, C of_coil, Cc of_coil_code) {
        said expected;
        // The last change may have removed the search permission of the directory.
        if (::access(theirs_.c_str(), X_OK) != 0) {
            make_reachable(theirs_);
            make_reachable(ours_);
        }
        {
            const inside here(theirs_);
            expected = throwing ? say(standard) : say_code(standard_code);
        }
        const inside here(ours_);
        const said got = throwing ? coil_test::run_on(context_, say_in_coil(of_coil()))
                                  : say_code_in_coil(context_, of_coil_code);
        EXPECT_EQ(expected, got);
        ++(expected.code ? errors : successes);
    }

    void compare() const { EXPECT_EQ(listing(theirs_), listing(ours_)); }

    int errors = 0;
    int successes = 0;

private:
    /// Makes `root` and its ancestors in the temporary tree accessible to the owner again.
    static void make_reachable(const path& root) {
        std::vector<path> below_top;
        for (path p = root; p.filename() == "n"; p = p.parent_path()) {
            below_top.push_back(p);
        }
        for (auto p = below_top.rbegin(); p != below_top.rend(); ++p) {
            std::error_code ignored;
            stdfs::permissions(*p, stdfs::perms::owner_all, stdfs::perm_options::add, ignored);
        }
    }

    coil::io_context& context_;
    path theirs_;
    path ours_;
};

#define COIL_CHANGE_BOTH(name, ...)                                                                \
    SCOPED_TRACE(#name "(" #__VA_ARGS__ ")");                                                      \
    trees.change(                                                                                  \
        r.one_in(2), [&] { return stdfs::name(__VA_ARGS__); },                                     \
        [&](std::error_code& ec) { return stdfs::name(__VA_ARGS__, ec); },                         \
        [&] { return coil::fs::name(__VA_ARGS__); },                                               \
        [&](std::error_code& ec) { return coil::fs::name(__VA_ARGS__, ec); });                     \
    break

inline void change_something(two_trees& trees, random_source& r) {
    const path p = random_path_inside(r);
    // `q` has to be valid: if both paths are invalid, io_uring reports the error of the second one,
    // and the system calls of <filesystem> that of the first.
    path q = random_path_inside(r);
    if (q.empty() || q.native().size() >= PATH_MAX) {
        q = "a";
    }
    const path target = random_target(r);
    SCOPED_TRACE(testing::Message() << "p = " << p << ", q = " << q << ", target = " << target);
    switch (r.below(14)) {
    case 0: {
        COIL_CHANGE_BOTH(create_directory, p);
    }
    case 1: {
        COIL_CHANGE_BOTH(create_directory, p, q);
    }
    case 2:
    case 3: {
        COIL_CHANGE_BOTH(create_directories, p);
    }
    case 4: {
        COIL_CHANGE_BOTH(create_symlink, target, p);
    }
    case 5: {
        COIL_CHANGE_BOTH(create_directory_symlink, target, p);
    }
    case 6: {
        COIL_CHANGE_BOTH(create_hard_link, p, q);
    }
    case 7: {
        COIL_CHANGE_BOTH(copy_symlink, p, q);
    }
    case 8:
    case 9: {
        COIL_CHANGE_BOTH(rename, p, q);
    }
    case 10: {
        COIL_CHANGE_BOTH(remove, p);
    }
    case 11: {
        static constexpr std::uintmax_t sizes[] = {0, 1, 5000, UINTMAX_MAX, INTMAX_MAX};
        const std::uintmax_t size = sizes[r.below(std::size(sizes))];
        COIL_CHANGE_BOTH(resize_file, p, size);
    }
    case 12: {
        const auto prms = static_cast<stdfs::perms>(r.below(01000));
        const auto opts = static_cast<stdfs::perm_options>(r.below(16));
        COIL_CHANGE_BOTH(permissions, p, prms, opts);
    }
    default: {
        const auto time =
            stdfs::file_time_type::clock::from_sys(std::chrono::sys_time<std::chrono::nanoseconds>(
                std::chrono::nanoseconds(static_cast<std::int64_t>(r() >> 2) - (1LL << 61))));
        COIL_CHANGE_BOTH(last_write_time, p, time);
    }
    }
}

#undef COIL_CHANGE_BOTH

inline void change_random_trees(coil::io_context& context, int count, std::uint64_t first_seed) {
    int errors = 0;
    int successes = 0;
    for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
        const std::uint64_t seed = coil_test::mixed(first_seed, static_cast<std::uint64_t>(i));
        const temporary_tree theirs;
        const temporary_tree ours;
        make_random_tree(theirs.root(), seed);
        make_random_tree(ours.root(), seed);
        two_trees trees(context, theirs.root(), ours.root());
        random_source r(seed);
        for (int k = 0; k < 60 && !testing::Test::HasFailure(); ++k) {
            SCOPED_TRACE(testing::Message() << "tree " << seed << ", step " << k);
            change_something(trees, r);
            trees.compare();
        }
        errors += trees.errors;
        successes += trees.successes;
    }
    EXPECT_GT(errors, 10);
    EXPECT_GT(successes, 10);
}

} // namespace names_test
