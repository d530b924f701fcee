// Random scripts of coil::fs on all backends: each step is one function on names of a small tree,
// some of them with a stop request at any time.

#include "conformance/differential.hpp"
#include "conformance/support.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace conformance {

namespace {

namespace fs = coil::fs;
using std::error_code;

struct tree_step {
    std::uint16_t what;
    std::uint8_t one;
    std::uint8_t two;
    std::uint16_t variant;
};
using tree_script = std::vector<tree_step>;

/// Later than every time that is not set by a step: 2100-01-01.
constexpr std::int64_t far_future = 4'102'444'800;

class tree_stage {
public:
    explicit tree_stage(std::string directory)
        : outside_(std::move(directory)), top_(outside_ + "in/top/") {}

    task<> open() { return begin(); }
    task<> close() { co_return; }
    task<> one(tree_step s, answers& results);
    /// Recreates the tree.
    task<> begin_anew() {
        error_code ec;
        co_await fs::remove_all(outside_ + "in", ec);
        co_await begin();
    }

private:
    /// ".." behind a link leads out of the tree, but not further than "in".
    task<> begin() {
        co_await fs::create_directories(top_ + "d/e");
        for (const char* const file : {"b", "d/a", "d/e/f"}) {
            co_await fs::write_file(top_ + file, std::string(file));
        }
        co_await fs::create_symlink("d", top_ + "l");
    }

    [[nodiscard]] fs::path name(std::uint8_t which) const {
        static constexpr std::array<std::string_view, 8> names{"a",   "b",   "d",     "d/a",
                                                               "d/e", "d/l", "d/e/f", "l"};
        static constexpr std::array<std::string_view, 12> ends{"", "", "",  "",   "",   "",
                                                               "", "", "/", "/.", "//", "/.."};
        return top_ + std::string(names[which % names.size()]) +
               std::string(ends[which / names.size() % ends.size()]);
    }
    [[nodiscard]] static fs::path target(std::uint16_t which) {
        static constexpr std::array<std::string_view, 8> names{"a", "d",    "e", "../top/a",
                                                               ".", "none", "l", "d/"};
        return names[which % names.size()];
    }

    void say(const std::string& text) { results_->push_back(text); }
    void say(std::uintmax_t number) { say(std::to_string(number)); }
    void say(const error_code& ec) { say(ec ? "error " + std::to_string(ec.value()) : "ok"); }
    /// Records only whether there is an error: if there are several in a tree, the first one in
    /// directory order is reported, and that order varies.
    void say_whether(const error_code& ec) { say(ec ? "error" : "ok"); }
    template <class T>
    void say(const T& value, const error_code& ec) {
        say(ec);
        if (!ec) {
            say(value);
        }
    }
    /// Removes machine-specific parts of the path.
    void say_path(std::string text, const error_code& ec) {
        const std::string_view own(outside_.data(), outside_.size() - 1);
        if (!own.empty() && text.starts_with(own)) {
            text.erase(0, own.size());
        }
        say(text.empty() ? "/" : text, ec);
    }
    void say_status(fs::file_status s, const error_code& ec) {
        say(ec);
        say(static_cast<std::uintmax_t>(static_cast<int>(s.type())) * 10'000 +
            static_cast<unsigned>(s.permissions()));
    }

    task<> ask(tree_step s, const fs::path& p, const fs::path& q);
    task<> ask_path(tree_step s, const fs::path& p, const fs::path& q);
    task<> set(tree_step s, const fs::path& p, const fs::path& q);
    task<> make(tree_step s, const fs::path& p, const fs::path& q);
    task<> write(tree_step s, const fs::path& p);
    task<> copy(tree_step s, const fs::path& p, const fs::path& q);
    task<> change(tree_step s, const fs::path& p, const fs::path& q);
    task<> list(tree_step s, const fs::path& p);
    task<> in_file(tree_step s, const fs::path& p);
    task<> stopped(tree_step s);
    task<> describe();
    const std::string outside_;
    const std::string top_;
    answers* results_ = nullptr; // of the step
};

/// Queries of names.
task<> tree_stage::ask(tree_step s, const fs::path& p, const fs::path& q) {
    error_code ec;
    switch (s.variant % 11) {
    case 0: {
        const fs::file_status found = co_await fs::status(p, ec);
        say_status(found, ec);
        break;
    }
    case 1: {
        const fs::file_status found = co_await fs::symlink_status(p, ec);
        say_status(found, ec);
        break;
    }
    case 2: {
        const bool is = co_await fs::exists(p, ec);
        say(std::uintmax_t{is}, ec);
        break;
    }
    case 3: {
        const std::uintmax_t size = co_await fs::file_size(p, ec);
        say(size, ec);
        break;
    }
    case 4: {
        // File systems count the links of directories differently.
        const bool is_directory = co_await fs::is_directory(p, ec);
        const std::uintmax_t count = co_await fs::hard_link_count(p, ec);
        say(is_directory ? 0 : count, ec);
        break;
    }
    case 5: {
        const bool is = co_await fs::is_symlink(p, ec);
        say(std::uintmax_t{is}, ec);
        break;
    }
    case 6: {
        const bool is = co_await fs::is_regular_file(p, ec);
        say(std::uintmax_t{is}, ec);
        break;
    }
    case 7:
        try {
            const std::string text = co_await fs::read_file(p);
            say(text, ec);
        } catch (const std::system_error& e) {
            say(e.code());
        }
        break;
    default:
        co_await ask_path(s, p, q);
    }
}

/// Functions that call the standard library on Linux, and are reimplemented for simulated worlds.
task<> tree_stage::ask_path(tree_step s, const fs::path& p, const fs::path& q) {
    error_code ec;
    fs::path found;
    switch (s.variant / 11 % 8) {
    case 0:
        found = co_await fs::absolute(s.variant % 2 == 0 ? fs::path() : p, ec);
        say_path(found, ec);
        break;
    case 1:
        found = co_await fs::canonical(p, ec);
        say_path(found, ec);
        break;
    case 2:
        found = co_await fs::weakly_canonical(p, ec);
        say_path(found, ec);
        break;
    case 3:
        found =
            s.variant % 2 == 0 ? co_await fs::relative(p, q, ec) : co_await fs::proximate(p, q, ec);
        say(found.native(), ec);
        break;
    case 4: {
        const bool same = co_await fs::equivalent(p, q, ec);
        say(std::uintmax_t{same}, ec);
        break;
    }
    case 5: {
        const bool empty = co_await fs::is_empty(p, ec);
        say(std::uintmax_t{empty}, ec);
        break;
    }
    case 6:
        found = co_await fs::read_symlink(p, ec);
        say(found.native(), ec);
        break;
    default: {
        const fs::space_info room = co_await fs::space(p, ec);
        say(std::uintmax_t{ec || (room.capacity >= room.free && room.free > 0)}, ec);
    }
    }
}

error_code error_of(const coil::uring::sqe& call) {
    return {-std::min(coil::detail::perform(call), 0), std::generic_category()};
}

/// Sets both times of a file to values that describe() shows.
error_code set_times(tree_step s, const fs::path& p) {
    ::timespec times[] = {{far_future + s.two * 1000, s.variant},
                          {far_future + s.variant % 7 * 10'000, s.two}};
    if (s.variant % 5 == 0) {
        times[s.variant / 5 % 2].tv_nsec = UTIME_OMIT;
    } else if (s.variant % 5 == 1) {
        times[s.variant / 5 % 2].tv_nsec = UTIME_NOW;
    }
    const int flags = s.variant % 4 == 0 ? AT_SYMLINK_NOFOLLOW : 0;
    return error_of(coil::uring::prep::utimensat(AT_FDCWD, p.c_str(), times, flags));
}

/// Changes of a file's attributes.
task<> tree_stage::set(tree_step s, const fs::path& p, const fs::path& q) {
    error_code ec;
    switch (s.variant % 6) {
    case 0: {
        constexpr std::array how{fs::perm_options::replace, fs::perm_options::add,
                                 fs::perm_options::remove,
                                 fs::perm_options::add | fs::perm_options::remove};
        // The owner keeps the permissions that the script needs if it does not run as root.
        const bool removes = s.variant / 6 % how.size() == 2;
        co_await fs::permissions(p, static_cast<fs::perms>(removes ? 0055 : 0711),
                                 how[s.variant / 6 % how.size()], ec);
        break;
    }
    case 1:
        co_await fs::resize_file(p, s.two * 50U, ec);
        break;
    case 2: {
        const fs::file_time_type time{std::chrono::seconds(s.two * 1'000'000 - 200'000'000) +
                                      std::chrono::nanoseconds(s.variant)};
        co_await fs::last_write_time(p, time, ec);
        if (!ec) {
            const fs::file_time_type got = co_await fs::last_write_time(p, ec);
            say(std::uintmax_t{got == time}, ec);
        }
        break;
    }
    case 3:
        co_await fs::copy_symlink(p, q, ec);
        break;
    case 4:
        ec = set_times(s, p);
        break;
    default:
        if (::geteuid() == 0) { // as in a world
            ec = error_of(coil::uring::prep::fchownat(AT_FDCWD, p.c_str(), s.two % 3, s.two % 2,
                                                      AT_SYMLINK_NOFOLLOW));
        }
    }
    say(ec);
    const fs::file_status now = co_await fs::symlink_status(p, ec);
    say_status(now, ec);
}

task<> tree_stage::make(tree_step s, const fs::path& p, const fs::path& q) {
    error_code ec;
    bool made = false;
    switch (s.variant % 7) {
    case 0:
        made = co_await fs::create_directory(p, ec);
        break;
    case 1:
        made = co_await fs::create_directory(p, q, ec);
        break;
    case 2:
        made = co_await fs::create_directories(p, ec);
        break;
    case 3:
        co_await fs::create_symlink(target(s.two), p, ec);
        break;
    case 4:
        co_await fs::create_directory_symlink(target(s.two), p, ec);
        break;
    default:
        co_await fs::create_hard_link(p, q, ec);
    }
    say(std::uintmax_t{made}, ec);
}

task<> tree_stage::write(tree_step s, const fs::path& p) {
    error_code ec;
    const std::string data(s.two * 37U, static_cast<char>('a' + s.variant % 26));
    fs::write_options options = s.variant % 2 == 0 ? fs::atomic_replace : fs::write_options{};
    switch (s.variant % 5) {
    case 0:
        options.mode = fs::write_mode::truncate;
        break;
    case 1:
        options.mode = fs::write_mode::append;
        break;
    case 2:
        options.mode = fs::write_mode::create_new;
        break;
    default:
        options = fs::atomic_replace;
    }
    options.permissions = static_cast<fs::perms>(s.variant % 3 == 0 ? 0666 : 0700);
    co_await fs::write_file(p, data, options, ec);
    say(ec);
}

task<> tree_stage::copy(tree_step s, const fs::path& p, const fs::path& q) {
    error_code ec;
    constexpr std::array policies{fs::copy_options::none, fs::copy_options::skip_existing,
                                  fs::copy_options::overwrite_existing};
    const fs::copy_options existing = policies[s.variant / 8 % policies.size()];
    switch (s.variant % 8) {
    case 0:
    case 1:
    case 2: {
        const bool copied = co_await fs::copy_file(p, q, existing, ec);
        say(std::uintmax_t{copied}, ec);
        break;
    }
    case 3:
        co_await fs::copy(p, q, existing, ec);
        say(ec);
        break;
    case 4:
        co_await fs::copy(p, q, existing | fs::copy_options::recursive, ec);
        say_whether(ec);
        break;
    case 5:
        co_await fs::copy(p, q, existing | fs::copy_options::copy_symlinks, ec);
        say(ec);
        break;
    default: {
        fs::copy_tree_options options;
        options.options = options.options | existing;
        options.times = s.variant / 64 % 2 == 1;
        options.owner = s.variant / 128 % 2 == 1;
        const fs::copy_progress done = co_await fs::copy_tree(p, q, options, ec);
        say_whether(ec);
        say(ec ? 0 : done.bytes);
    }
    }
    // After an error in the middle of an operation, the set of processed entries depends on the
    // directory order of the file system.
    if (ec) {
        co_await begin_anew();
    }
}

/// Changes of names: removing and renaming.
task<> tree_stage::change(tree_step s, const fs::path& p, const fs::path& q) {
    error_code ec;
    switch (s.variant % 4) {
    case 0:
    case 1:
        co_await fs::rename(p, q, ec);
        say(ec);
        break;
    case 2: {
        const bool removed = co_await fs::remove(p, ec);
        say(std::uintmax_t{removed}, ec);
        break;
    }
    default: {
        const std::uintmax_t count = co_await fs::remove_all(p, ec);
        say(count, ec);
        if (ec) {
            co_await begin_anew();
        }
    }
    }
}

task<> tree_stage::list(tree_step s, const fs::path& p) {
    error_code ec;
    std::vector<std::string> found;
    auto entries = s.variant % 2 == 0 ? fs::read_directory(p, ec) : fs::walk(p, ec);
    while (auto entry = co_await entries.next()) {
        found.push_back(entry->path().lexically_relative(p).native());
    }
    std::sort(found.begin(), found.end());
    say(ec);
    for (const std::string& one : found) {
        say(one);
    }
}

/// Operations on an open file.
task<> tree_stage::in_file(tree_step s, const fs::path& p) {
    constexpr std::array flags{O_RDWR,           O_RDWR | O_CREAT,
                               O_RDONLY,         O_WRONLY | O_APPEND,
                               O_RDWR | O_TRUNC, O_RDONLY | O_DIRECTORY};
    std::optional<fs::file> f;
    try {
        f.emplace(co_await fs::file::open(p, flags[s.variant % flags.size()], 0640));
    } catch (const std::system_error& e) {
        say(e.code());
        co_return;
    }
    say("ok");
    std::string text(100, '\0');
    const int wrote = co_await f->write_all_at("0123456789", s.two * 10);
    say(std::to_string(wrote));
    const int read = co_await f->read_exact_at(text, s.two);
    say(std::to_string(read));
    struct ::statx st{};
    co_await gives(io::statx(f->native_handle(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st), 0);
    say(S_ISDIR(st.stx_mode) ? 0 : st.stx_size);
    say(std::uintmax_t{st.stx_mode});
}

/// A replacement with a stop request at any time: it takes effect completely or not at all.
task<> tree_stage::stopped(tree_step s) {
    const std::string p = top_ + "stopped";
    const std::string before(1000, 'o');
    const std::string after(20'000, 'n');
    error_code ec;
    co_await fs::write_file(p, before, ec);
    if (ec) {
        say(ec);
        co_return;
    }
    bool done = false;
    try {
        co_await coil::timeout(fs::write_file(p, after, fs::atomic_replace),
                               std::chrono::microseconds(s.variant % 400));
        done = true;
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::timed_out) {
            say("IMPOSSIBLE " + std::to_string(e.code().value()));
        }
    }
    const std::string found = co_await fs::read_file(p);
    if (found != after && (done || found != before)) {
        say("IMPOSSIBLE " + found.substr(0, 20));
    }
    co_await fs::remove(p, ec);
    say(ec);
}

std::string text_of(const ::statx_timestamp& t) {
    return t.tv_sec < far_future
               ? "now"
               : std::to_string(t.tv_sec - far_future) + '.' + std::to_string(t.tv_nsec);
}

/// Records the tree and the attributes of its files, without the access times of directories and
/// links, which depend on the order of reading.
task<> tree_stage::describe() {
    struct ::statx top{};
    co_await gives(io::statx(AT_FDCWD, top_, 0, STATX_BASIC_STATS, &top), 0);
    std::vector<std::string> lines;
    auto entries = fs::walk(top_);
    while (auto entry = co_await entries.next()) {
        struct ::statx st{};
        co_await gives(io::statx(AT_FDCWD, entry->path().native(), AT_SYMLINK_NOFOLLOW,
                                 STATX_BASIC_STATS, &st),
                       0);
        const bool is_directory = S_ISDIR(st.stx_mode);
        std::ostringstream line;
        line << entry->path().native().substr(top_.size()) << ':' << std::oct << st.stx_mode
             << std::dec << ' ' << (st.stx_uid == top.stx_uid ? 0 : st.stx_uid) << ' '
             << (st.stx_gid == top.stx_gid ? 0 : st.stx_gid) << ' '
             << (is_directory ? 0 : st.stx_nlink) << ' ' << (is_directory ? 0 : st.stx_size) << ' '
             << text_of(st.stx_mtime);
        if (S_ISREG(st.stx_mode)) {
            line << ' ' << text_of(st.stx_atime);
        }
        lines.push_back(line.str());
    }
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) {
        say(line);
    }
}

task<> tree_stage::one(tree_step s, answers& results) {
    results_ = &results;
    const fs::path p = name(s.one);
    const fs::path q = name(s.two);
    switch (s.what % 16) {
    case 0:
    case 1:
        co_await ask(s, p, q);
        break;
    case 2:
    case 3:
    case 4:
        co_await make(s, p, q);
        break;
    case 5:
    case 6:
        co_await write(s, p);
        break;
    case 7:
    case 8:
    case 9:
        co_await copy(s, p, q);
        break;
    case 10:
        co_await change(s, p, q);
        break;
    case 11:
        co_await set(s, p, q);
        break;
    case 12:
        co_await list(s, p);
        break;
    case 13:
        co_await ask_path(s, p, q);
        break;
    case 14:
        co_await in_file(s, p);
        break;
    default:
        co_await stopped(s);
        break;
    }
    if (s.what % 16 >= 5 && s.what % 16 <= 11) {
        co_await describe();
    }
}

std::string to_string(const tree_script& script) {
    std::ostringstream text;
    for (const tree_step& s : script) {
        text << "    {" << s.what % 16 << ' ' << unsigned{s.one} << ' ' << unsigned{s.two} << ' '
             << s.variant << "}\n";
    }
    return text.str();
}

tree_script random_tree_script(std::uint64_t seed, std::size_t steps) {
    coil_test::random_source r(seed);
    tree_script s;
    s.reserve(steps);
    for (std::size_t i = 0; i < steps; ++i) {
        s.push_back({static_cast<std::uint16_t>(r.below(16)),
                     static_cast<std::uint8_t>(r.below(96)), static_cast<std::uint8_t>(r.below(96)),
                     static_cast<std::uint16_t>(r.below(10'000))});
    }
    return s;
}

task<> play_tree(const tree_script& script, tree_stage& stage, answers& results) {
    for (std::size_t i = 0; i < script.size(); ++i) {
        const std::size_t before = results.size();
        try {
            co_await stage.one(script[i], results);
        } catch (const std::system_error& e) {
            results.push_back("throws " + std::to_string(e.code().value()));
        }
        std::string line = "step " + std::to_string(i) + ":";
        for (std::size_t k = before; k < results.size(); ++k) {
            line += ' ' + results[k];
        }
        results.resize(before);
        results.push_back(line);
    }
    co_await stage.begin_anew();
}

constexpr game<tree_script, tree_stage> trees{random_tree_script, play_tree, 60, 4};

TEST(Differential, TreesAreTheSameOnAllBackends) {
    const ::mode_t before = ::umask(022); // that of a simulated world
    compare_all(trees, present_backends(),
                static_cast<std::uint64_t>(coil_test::rounds(coil_test::sanitized ? 5 : 25, 1000)));
    ::umask(before);
}

/// Scripts in which every step fails would agree trivially.
TEST(Differential, ScriptsOfTreesDoSomething) {
    std::array<unsigned, 16> worked{};
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const tree_script s = trees.make(seed, trees.steps);
        const answers a = answers_of(trees, *backends().back().boot(), s);
        ASSERT_EQ(a.size(), s.size()) << (a.empty() ? "" : a.back());
        for (std::size_t i = 0; i < s.size(); ++i) {
            worked.at(s[i].what % 16) += a[i].find("ok") != std::string::npos ? 1U : 0U;
        }
    }
    for (std::size_t what = 0; what < worked.size(); ++what) {
        EXPECT_GT(worked[what], 1U) << "steps of kind " << what;
    }
}

} // namespace

} // namespace conformance
