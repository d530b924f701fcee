#include "support/run.hpp"
#include "trees.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace {

using namespace coil;
using namespace fs_test;
using coil_test::in_child;

/// A description of a tree: type, mode, and content or target of each entry.
using picture = std::map<std::string, std::tuple<stdfs::file_type, stdfs::perms, std::string>>;

picture picture_of(const stdfs::path& top) {
    picture all;
    std::error_code ec;
    const auto add = [&](const stdfs::path& p) {
        const stdfs::file_status status = stdfs::symlink_status(p);
        std::string content;
        if (status.type() == stdfs::file_type::symlink) {
            content = stdfs::read_symlink(p);
        } else if (status.type() == stdfs::file_type::regular) {
            content.resize(stdfs::file_size(p));
            std::ifstream(p, std::ios::binary)
                .read(content.data(), static_cast<std::streamsize>(content.size()));
        }
        all[p.lexically_relative(top)] = {status.type(), status.permissions(), content};
    };
    if (stdfs::exists(stdfs::symlink_status(top, ec))) {
        add(top);
    }
    for (stdfs::recursive_directory_iterator i(top, ec), end; i != end; ++i) {
        add(i->path());
    }
    return all;
}

task<> copy_with_error(fs::path from, fs::path to, fs::copy_options options, std::error_code& ec) {
    co_await fs::copy(from, to, options, ec);
}

/// Creates an entry of each kind, as the sources and the targets of copies.
void make_scene(const stdfs::path& top) {
    stdfs::create_directories(top / "tree/a/b");
    make_file(top / "tree/one", "one");
    make_file(top / "tree/a/two", "two");
    make_file(top / "tree/a/b/three", std::string(100'000, '3'));
    stdfs::create_directory(top / "tree/empty");
    stdfs::permissions(top / "tree/empty", static_cast<stdfs::perms>(0711));
    stdfs::permissions(top / "tree/a/two", static_cast<stdfs::perms>(04751));
    make_file(top / "file", "file");
    make_file(top / "old", "old");
    stdfs::last_write_time(top / "old",
                           stdfs::last_write_time(top / "file") - std::chrono::hours(1));
    stdfs::create_symlink("file", top / "link");
    stdfs::create_symlink("nowhere", top / "dangling");
    stdfs::create_directory_symlink("tree", top / "tree_link");
    stdfs::create_directories(top / "there/a");
    make_file(top / "there/one", "there already");
    stdfs::create_directory(top / "hollow");
    stdfs::create_symlink("loop", top / "loop");
    ::mkfifo((top / "fifo").c_str(), 0600);
}

TEST(FsCopy, DoesWhatTheStandardDoesWithAllOptions) {
    const std::vector<fs::copy_options> existing{
        fs::copy_options::none, fs::copy_options::skip_existing,
        fs::copy_options::overwrite_existing, fs::copy_options::update_existing};
    const std::vector<fs::copy_options> links{
        fs::copy_options::none, fs::copy_options::copy_symlinks, fs::copy_options::skip_symlinks};
    const std::vector<fs::copy_options> forms{
        fs::copy_options::none, fs::copy_options::directories_only,
        fs::copy_options::create_symlinks, fs::copy_options::create_hard_links};
    const std::vector<std::string> sources{"tree",     "file",      "old",     "link",
                                           "dangling", "tree_link", "missing", "loop",
                                           "fifo",     "file/x",    ""};
    const std::vector<std::string> targets{"new",    "there",     "file",   "old",
                                           "link",   "dangling",  "fifo",   "tree",
                                           "hollow", "missing/x", "file/y", ""};
    // Both functions run in the same directory, so that the targets of links are the same.
    const temporary_directory tmp;
    int compared = 0;
    for (const auto e : existing) {
        for (const auto l : links) {
            for (const auto f : forms) {
                for (const auto r : {fs::copy_options::none, fs::copy_options::recursive}) {
                    const fs::copy_options options = e | l | f | r;
                    for (const std::string& source : sources) {
                        for (const std::string& target : targets) {
                            // All combinations would take a minute.
                            if (++compared % coil_test::rounds(151, 19) != 0) {
                                continue;
                            }
                            const stdfs::path from = source.empty() ? "" : tmp / "s" / source;
                            const stdfs::path to = target.empty() ? "" : tmp / "s" / target;
                            std::error_code results[2];
                            picture pictures[2];
                            for (int i = 0; i < 2; ++i) {
                                make_scene(tmp / "s");
                                if (i == 0) {
                                    stdfs::copy(from, to, options, results[i]);
                                } else {
                                    coil::run(copy_with_error(from, to, options, results[i]));
                                }
                                pictures[i] = picture_of(tmp / "s");
                                stdfs::remove_all(tmp / "s");
                            }
                            const auto what = ::testing::Message()
                                              << source << " to " << target << " with "
                                              << static_cast<int>(options);
                            EXPECT_EQ(results[1], results[0]) << what;
                            if (!results[0]) { // an error leaves a partial copy
                                EXPECT_EQ(pictures[1], pictures[0]) << what;
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST(FsCopy, CopiesRandomTreesAsTheStandardDoes) {
    const temporary_directory tmp;
    for (unsigned seed = 1; seed < 4; ++seed) {
        const stdfs::path from = tmp / ("from" + std::to_string(seed));
        random_tree(from, seed, 60, 500);
        const auto options = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
        stdfs::copy(from, tmp / "theirs", options);
        coil::run(fs::copy(from, tmp / "ours", options));
        EXPECT_EQ(picture_of(tmp / "ours"), picture_of(tmp / "theirs"));
        EXPECT_EQ(picture_of(tmp / "ours"), picture_of(from));
        stdfs::remove_all(tmp / "theirs");
        stdfs::remove_all(tmp / "ours");
    }
}

TEST(FsCopy, ALargeFileIsCopiedInPieces) {
    const temporary_directory tmp;
    stdfs::create_directory(tmp / "from");
    std::string content(static_cast<std::size_t>(9'000'000), 'x');
    content[5'000'000] = 'y';
    make_file(tmp / "from/large", content);
    const auto copy_it = [](fs::path from, fs::path to) -> task<int> {
        int calls = 0;
        fs::copy_progress last;
        fs::copy_tree_options options;
        options.progress = [&](const fs::copy_progress& p) {
            EXPECT_GE(p.bytes, last.bytes);
            EXPECT_GE(p.entries, last.entries);
            last = p;
            ++calls;
        };
        const fs::copy_progress done = co_await fs::copy_tree(from, to, options);
        EXPECT_EQ(done.bytes, 9'000'000U);
        EXPECT_EQ(done.entries, 2U);
        EXPECT_EQ(last.bytes, done.bytes);
        co_return calls;
    };
    EXPECT_GT(coil::run(copy_it(tmp / "from", tmp / "to")), 0);
    EXPECT_EQ(picture_of(tmp / "to"), picture_of(tmp / "from"));
}

TEST(FsCopy, DoesNotCopyIntoItself) {
    const temporary_directory tmp;
    stdfs::create_directories(tmp / "a/b");
    make_file(tmp / "a/file");
    std::error_code ec;
    coil::run(copy_with_error(tmp / "a", tmp / "a/b/c", fs::copy_options::recursive, ec));
    EXPECT_EQ(ec, std::errc::invalid_argument);
    stdfs::create_directory_symlink(".", tmp / "a/up");
    coil::run(copy_with_error(tmp / "a", tmp / "d", fs::copy_options::recursive, ec));
    EXPECT_EQ(ec, std::errc::too_many_symbolic_link_levels);
}

TEST(FsCopyTree, KeepsTimesAndCopiesWhatIsReadOnly) {
    const temporary_directory tmp;
    random_tree(tmp / "from", 4);
    stdfs::create_directories(tmp / "from/shut/in");
    make_file(tmp / "from/shut/in/file", "x");
    const auto long_ago = stdfs::last_write_time(tmp / "from") - std::chrono::hours(1000);
    for (const auto& e : stdfs::recursive_directory_iterator(tmp / "from")) {
        const ::timespec times[2] = {{1'000'000, 1}, {2'000'000, 2}};
        ::utimensat(AT_FDCWD, e.path().c_str(), times, AT_SYMLINK_NOFOLLOW);
    }
    stdfs::last_write_time(tmp / "from", long_ago);
    stdfs::permissions(tmp / "from/shut", static_cast<stdfs::perms>(0555));
    fs::copy_tree_options options;
    options.times = true;
    options.owner = true;
    coil::run(fs::copy_tree(tmp / "from", tmp / "to", options));
    EXPECT_EQ(picture_of(tmp / "to"), picture_of(tmp / "from"));
    EXPECT_EQ(stdfs::last_write_time(tmp / "to"), long_ago);
    for (const auto& e : stdfs::recursive_directory_iterator(tmp / "to")) {
        struct ::stat status{};
        ::lstat(e.path().c_str(), &status);
        EXPECT_EQ(status.st_mtim.tv_sec, 2'000'000) << e.path();
        EXPECT_EQ(status.st_mtim.tv_nsec, 2) << e.path();
    }
}

TEST(FsCopyTree, NamesWhatCouldNotBeCopied) {
    const temporary_directory tmp;
    stdfs::create_directories(tmp / "from/a");
    ::mkfifo((tmp / "from/a/fifo").c_str(), 0600);
    try {
        coil::run(fs::copy_tree(tmp / "from", tmp / "to"));
        ADD_FAILURE();
    } catch (const fs::filesystem_error& e) {
        EXPECT_EQ(e.code(), std::errc::invalid_argument);
        EXPECT_EQ(e.path1(), tmp / "from/a/fifo");
        EXPECT_EQ(e.path2(), tmp / "to/a/fifo");
    }
    try {
        coil::run(fs::copy(tmp / "from", tmp / "to2", fs::copy_options::recursive));
        ADD_FAILURE();
    } catch (const fs::filesystem_error& e) {
        EXPECT_EQ(e.path1(), tmp / "from");
        EXPECT_EQ(e.path2(), tmp / "to2");
    }
}

task<> after_some_turns(int turns, std::function<void()> f) {
    for (int i = 0; i < turns; ++i) {
        co_await yield();
    }
    f();
}

TEST(G3_fs_copy, AStopEndsIt) {
    const temporary_directory tmp;
    random_tree(tmp / "from", 5, 30, 300);
    int cancelled = 0;
    for (int turns = 0; turns < 30; ++turns) {
        inplace_stop_source source;
        io_context ctx;
        std::error_code ec;
        auto copying = ctx.spawn(with_stop_token(
            fs::copy(tmp / "from", tmp / "to",
                     fs::copy_options::recursive | fs::copy_options::copy_symlinks, ec),
            source.get_token()));
        ctx.co_spawn(after_some_turns(turns, [&] { source.request_stop(); }));
        ctx.run();
        copying.get();
        if (ec) {
            EXPECT_EQ(ec, std::errc::operation_canceled);
            ++cancelled;
        } else {
            EXPECT_EQ(picture_of(tmp / "to"), picture_of(tmp / "from"));
        }
        stdfs::remove_all(tmp / "to");
    }
    EXPECT_GT(cancelled, 0);
}

TEST(G5_fs_copy, MayBeStoppedInTheMiddle) {
    const temporary_directory tmp;
    random_tree(tmp / "from", 5, 30, 300);
    for (int turns = 0; turns < 24; ++turns) {
        io_context ctx;
        ctx.co_spawn([](fs::path from, fs::path to) -> task<> {
            co_await fs::copy_tree(from, to);
        }(tmp / "from", tmp / "to"));
        ctx.co_spawn(after_some_turns(turns, [&] { ctx.stop(); }));
        ctx.run();
        stdfs::remove_all(tmp / "to");
    }
}

TEST(FsCopy, FailsWhereTheStandardFails) {
    FS_TEST_NEEDS_FORK();
    EXPECT_EQ(in_child([]() -> std::string {
                  const temporary_directory tmp;
                  stdfs::permissions(tmp.path(), stdfs::perms::all);
                  stdfs::create_directories(tmp / "from/secret");
                  make_file(tmp / "from/file", "x");
                  stdfs::create_directory(tmp / "locked");
                  stdfs::create_directory(tmp / "work");
                  stdfs::permissions(tmp / "work", stdfs::perms::all);
                  stdfs::permissions(tmp / "from/secret", stdfs::perms::none);
                  stdfs::permissions(tmp / "locked", static_cast<stdfs::perms>(0555));
                  const bool was_root = ::geteuid() == 0;
                  if (was_root && ::seteuid(65534) != 0) {
                      return "seteuid";
                  }
                  std::string complaint;
                  const auto compare = [&](const stdfs::path& from, const stdfs::path& to) {
                      std::error_code theirs;
                      stdfs::copy(from, to, stdfs::copy_options::recursive, theirs);
                      std::error_code ours;
                      const stdfs::path other = to.native() + "2";
                      coil::run(copy_with_error(from, was_root ? other : to,
                                                fs::copy_options::recursive, ours));
                      if (ours != theirs || !theirs) {
                          complaint += from.native() + ": " + ours.message() + "; ";
                      }
                  };
                  compare(tmp / "from", tmp / "work/new");
                  compare(tmp / "from", tmp / "locked/new");
                  compare(tmp / "from/file", tmp / "locked/new");
                  compare(tmp / "from/secret/x", tmp / "work/x");
                  if (was_root && ::seteuid(0) != 0) {
                      return "seteuid";
                  }
                  stdfs::permissions(tmp / "from/secret", stdfs::perms::all);
                  return complaint;
              }),
              "");
}

TEST(FsCopy, AFullFileSystemIsAnError) {
    FS_TEST_NEEDS_FORK();
    const std::string said = in_child([]() -> std::string {
        const temporary_directory tmp;
        if (::unshare(CLONE_NEWNS) != 0 ||
            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mkdir((tmp / "small").c_str(), 0700) != 0 ||
            ::mount("tmpfs", (tmp / "small").c_str(), "tmpfs", 0, "size=1m") != 0) {
            return "may not mount";
        }
        stdfs::create_directory(tmp / "from");
        for (int i = 0; i < 30; ++i) {
            make_file(tmp / ("from/" + std::to_string(i)), std::string(100'000, 'x'));
        }
        std::error_code ec;
        coil::run(copy_with_error(tmp / "from", tmp / "small/to", fs::copy_options::recursive, ec));
        ::umount2((tmp / "small").c_str(), MNT_DETACH);
        return ec == std::errc::no_space_on_device ? "" : "not full: " + ec.message();
    });
    if (said == "may not mount") {
        GTEST_SKIP() << "no permission to mount a small tmpfs";
    }
    EXPECT_EQ(said, "");
}

TEST(G6_fs_copy, CopiesDeepTreesWithFewDescriptors) {
    FS_TEST_NEEDS_FORK();
    EXPECT_EQ(in_child([]() -> std::string {
                  const temporary_directory tmp;
                  const int depth = coil_test::sanitized ? 300 : coil_test::rounds(800, 5000);
                  stdfs::create_directory(tmp / "from");
                  make_deep(tmp / "from", depth);
                  const ::rlimit few{64, 64};
                  ::setrlimit(RLIMIT_NOFILE, &few);
                  const fs::copy_progress done = coil::run(fs::copy_tree(tmp / "from", tmp / "to"));
                  coil::run(fs::remove_all(tmp / "from"));
                  const std::uintmax_t removed = coil::run(fs::remove_all(tmp / "to"));
                  const auto count = static_cast<std::uintmax_t>(2 * depth + 1);
                  return done.entries == count && removed == count
                             ? ""
                             : std::to_string(done.entries) + " " + std::to_string(removed);
              }),
              "");
}

} // namespace
