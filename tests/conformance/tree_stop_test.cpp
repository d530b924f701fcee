// Random scripts of all functions of coil::fs on names of a small tree, each stopped at a random
// moment. A stopped function has changed nothing, unless its documentation allows partial work. The
// step is then repeated without a stop, so results and the tree are the same on all backends.

#include "conformance/differential.hpp"
#include "conformance/support.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include <sys/stat.h>

namespace conformance {

namespace {

namespace fs = coil::fs;
using std::error_code;

struct stop_step {
    std::uint8_t what;
    std::uint8_t one;
    std::uint8_t two;
    std::uint8_t when; // the moment of the stop
    std::uint16_t variant;
};
using stop_script = std::vector<stop_step>;

/// The changes that a function may have made when it is stopped.
enum class effect : std::uint8_t { none, all_or_nothing, part };

class stop_player {
public:
    stop_player(const std::string& directory, answers& results)
        : own_(directory, 0, directory.size() - 1), top_(directory + "in/top/"),
          in_(directory + "in"), results_(results) {}

    task<> begin();
    task<> one(stop_step s);
    task<> end();
    static constexpr std::size_t kinds = 14;
    /// How many steps of each kind were stopped, and how many succeeded.
    std::array<unsigned, kinds> stops{};
    std::array<unsigned, kinds> successes{};

private:
    /// Descriptions of the entries by path.
    using snapshot = std::map<std::string, std::string>;
    using text_task = task<std::string>;
    struct function {
        effect has;
        text_task (stop_player::*call)(stop_step);
    };
    static const std::array<function, kinds> functions;

    task<> begin_anew() {
        co_await fs::remove_all(in_);
        co_await begin();
    }

    [[nodiscard]] fs::path name(std::uint8_t which) const {
        static constexpr std::array<std::string_view, 10> names{"a",   "b",     "d", "d/a", "d/e",
                                                                "d/l", "d/e/f", "l", "p",   "n/m"};
        static constexpr std::array<std::string_view, 9> ends{"", "",  "",   "",   "",
                                                              "", "/", "/.", "/.."};
        return top_ + std::string(names[which % names.size()]) +
               std::string(ends[which / names.size() % ends.size()]);
    }

    // Results as texts. The parts of a path that depend on the machine are removed.
    [[nodiscard]] static std::string text(bool is) { return is ? "true" : "false"; }
    [[nodiscard]] static std::string text(std::uintmax_t number) { return std::to_string(number); }
    [[nodiscard]] static std::string text(const std::string& content) { return content; }
    [[nodiscard]] std::string text(const fs::path& p) const {
        const std::string& whole = p.native();
        const bool inside = !own_.empty() && whole.starts_with(own_);
        return inside ? whole.substr(own_.size()) : whole;
    }
    [[nodiscard]] static std::string text(fs::file_status s) {
        return std::to_string(static_cast<int>(s.type())) + '/' +
               std::to_string(static_cast<unsigned>(s.permissions()));
    }
    [[nodiscard]] static std::string text(const fs::space_info& room) {
        return text(room.capacity >= room.free && room.free >= room.available);
    }
    /// Times are not recorded: the current time differs.
    [[nodiscard]] static std::string text(fs::file_time_type) { return "a time"; }
    [[nodiscard]] static std::string text(const fs::copy_progress& done) {
        return text(done.entries) + ' ' + text(done.bytes);
    }

    template <class T>
    static T result_of_task(const task<T>&);
    /// Calls f(), which throws, or f(ec). `f` returns a task. A function on a tree reports the
    /// first error in directory order, which varies. Therefore only the presence of an error is
    /// recorded then.
    template <class F>
    text_task call(stop_step s, F f, bool of_tree = false) {
        using result = decltype(result_of_task(f()));
        error_code ec;
        std::string found = "ok";
        std::string paths;
        try {
            auto called = s.variant % 2 == 0 ? f() : f(ec);
            if constexpr (std::is_void_v<result>) {
                co_await std::move(called);
            } else {
                const result r = co_await std::move(called);
                found += ' ' + text(r);
            }
        } catch (const fs::filesystem_error& e) {
            ec = e.code();
            paths = of_tree ? "" : ' ' + text(e.path1()) + ' ' + text(e.path2());
        }
        if (ec == std::errc::operation_canceled) {
            co_return "stopped";
        }
        co_return !ec ? found : of_tree ? "error" : "error " + std::to_string(ec.value());
    }

    text_task ask(stop_step s);
    text_task ask_type(stop_step s);
    text_task ask_path(stop_step s);
    text_task ask_content(stop_step s);
    text_task list(stop_step s);
    text_task create(stop_step s);
    text_task change(stop_step s);
    text_task set(stop_step s);
    text_task replace(stop_step s);
    text_task write(stop_step s);
    text_task in_file(stop_step s);
    text_task copy(stop_step s);
    text_task copy_tree(stop_step s);
    text_task whole(stop_step s);

    task<snapshot> taken() const;
    text_task stopped(stop_step s, const function& f);
    void check(const snapshot& before, const snapshot& got, const snapshot& full);

    const std::string own_;
    const std::string top_;
    const std::string in_;
    answers& results_;
};

task<> stop_player::begin() {
    co_await fs::create_directories(top_ + "d/e");
    for (const char* const file : {"b", "d/a", "d/e/f"}) {
        co_await fs::write_file(top_ + file, std::string(file));
    }
    co_await fs::write_file(top_ + "p", std::string(3000, 'p'),
                            {.permissions = fs::perms::owner_all});
    co_await fs::create_symlink("d", top_ + "l");
}

/// Statuses and attributes.
stop_player::text_task stop_player::ask(stop_step s) {
    const fs::path p = name(s.one);
    switch (s.variant / 2 % 5) {
    case 0:
        co_return co_await call(s, [&](auto&... ec) { return fs::status(p, ec...); });
    case 1:
        co_return co_await call(s, [&](auto&... ec) { return fs::symlink_status(p, ec...); });
    case 2:
        co_return co_await call(s, [&](auto&... ec) { return fs::file_size(p, ec...); });
    case 3:
        co_return co_await call(s, [&](auto&... ec) { return fs::last_write_time(p, ec...); });
    default:
        // File systems count the links of directories differently.
        error_code ignored;
        const bool is_directory = co_await fs::is_directory(p, ignored);
        const std::string count =
            co_await call(s, [&](auto&... ec) { return fs::hard_link_count(p, ec...); });
        co_return is_directory&& count.starts_with("ok") ? "ok" : count;
    }
}

stop_player::text_task stop_player::ask_type(stop_step s) {
    const fs::path p = name(s.one);
    switch (s.variant / 2 % 9) {
    case 0:
        co_return co_await call(s, [&](auto&... ec) { return fs::exists(p, ec...); });
    case 1:
        co_return co_await call(s, [&](auto&... ec) { return fs::is_regular_file(p, ec...); });
    case 2:
        co_return co_await call(s, [&](auto&... ec) { return fs::is_directory(p, ec...); });
    case 3:
        co_return co_await call(s, [&](auto&... ec) { return fs::is_symlink(p, ec...); });
    case 4:
        co_return co_await call(s, [&](auto&... ec) { return fs::is_other(p, ec...); });
    case 5:
        co_return co_await call(s, [&](auto&... ec) { return fs::is_fifo(p, ec...); });
    case 6:
        co_return co_await call(s, [&](auto&... ec) { return fs::is_socket(p, ec...); });
    case 7:
        co_return co_await call(s, [&](auto&... ec) { return fs::is_block_file(p, ec...); });
    default:
        co_return co_await call(s, [&](auto&... ec) { return fs::is_character_file(p, ec...); });
    }
}

/// Makes a path absolute that is relative to the current directory, which differs among machines.
task<fs::path> from_here(task<fs::path> asked) {
    const fs::path found = co_await std::move(asked);
    if (found.empty()) {
        co_return found;
    }
    const fs::path here = co_await fs::current_path();
    co_return (here / found).lexically_normal();
}

stop_player::text_task stop_player::ask_path(stop_step s) {
    const fs::path p = name(s.one);
    const fs::path q = name(s.two);
    switch (s.variant / 2 % 10) {
    case 0:
        co_return co_await call(s, [&](auto&... ec) { return fs::canonical(p, ec...); });
    case 1:
        co_return co_await call(s, [&](auto&... ec) { return fs::weakly_canonical(p, ec...); });
    case 2:
        co_return co_await call(s, [&](auto&... ec) { return fs::absolute(p, ec...); });
    case 3:
        co_return co_await call(s, [&](auto&... ec) { return fs::relative(p, q, ec...); });
    case 4:
        co_return co_await call(s, [&](auto&... ec) { return fs::proximate(p, q, ec...); });
    case 5:
        co_return co_await call(s, [&](auto&... ec) { return from_here(fs::relative(p, ec...)); });
    case 6:
        co_return co_await call(s, [&](auto&... ec) { return from_here(fs::proximate(p, ec...)); });
    case 7:
        co_return co_await call(s, [&](auto&... ec) { return fs::equivalent(p, q, ec...); });
    case 8:
        co_return co_await call(s, [&](auto&... ec) { return fs::read_symlink(p, ec...); });
    default:
        co_return co_await call(s, [&](auto&... ec) { return fs::space(p, ec...); });
    }
}

stop_player::text_task stop_player::ask_content(stop_step s) {
    const fs::path p = name(s.one);
    if (s.variant / 2 % 2 == 0) {
        co_return co_await call(s, [&](auto&... ec) { return fs::read_file(p, ec...); });
    }
    co_return co_await call(s, [&](auto&... ec) { return fs::is_empty(p, ec...); });
}

/// The names and some metadata of a directory's entries, with random options.
stop_player::text_task stop_player::list(stop_step s) {
    const fs::path p = name(s.one);
    fs::walk_options options;
    options.with_metadata = s.two % 2 == 0;
    if (s.two / 2 % 2 == 0) {
        options.directories = fs::directory_options::follow_directory_symlink;
    }
    if (s.two / 4 % 2 == 0) {
        options.descend = [](const fs::directory_entry& entry) { return entry.name() != "e"; };
    }
    std::set<std::string> found;
    error_code ec;
    try {
        auto entries = s.variant / 2 % 3 == 0 ? fs::read_directory(p, options.directories, ec)
                                              : fs::walk(p, options, ec);
        while (const auto entry = co_await entries.next()) {
            std::string line = text(entry->path()) + ' ' + std::to_string(entry->depth()) + ' ' +
                               std::to_string(static_cast<int>(entry->type()));
            if (s.two / 8 % 2 == 0) {
                error_code of_entry;
                const fs::file_status status = co_await entry->status(of_entry);
                line += ' ' + text(status);
                const std::uintmax_t size = co_await entry->file_size(of_entry);
                if (of_entry == std::errc::operation_canceled) {
                    co_return "stopped";
                }
                line += ' ' + (of_entry ? "none" : text(size));
            }
            found.insert(line);
        }
    } catch (const fs::filesystem_error& e) {
        ec = e.code();
    }
    if (ec == std::errc::operation_canceled) {
        co_return "stopped";
    }
    std::string all = ec ? "error " + std::to_string(ec.value()) : "ok";
    for (const std::string& line : found) {
        all += " [" + line + ']';
    }
    co_return all;
}

stop_player::text_task stop_player::create(stop_step s) {
    static constexpr std::array<std::string_view, 8> targets{"a", "d",    "e", "../top/a",
                                                             ".", "none", "l", "d/"};
    const fs::path p = name(s.one);
    const fs::path q = name(s.two);
    const fs::path target = targets[s.two % targets.size()];
    switch (s.variant / 2 % 6) {
    case 0:
        co_return co_await call(s, [&](auto&... ec) { return fs::create_directory(p, ec...); });
    case 1:
        co_return co_await call(s, [&](auto&... ec) { return fs::create_directory(p, q, ec...); });
    case 2:
        co_return co_await call(s,
                                [&](auto&... ec) { return fs::create_symlink(target, p, ec...); });
    case 3:
        co_return co_await call(
            s, [&](auto&... ec) { return fs::create_directory_symlink(target, p, ec...); });
    case 4:
        co_return co_await call(s, [&](auto&... ec) { return fs::create_hard_link(p, q, ec...); });
    default:
        co_return co_await call(s, [&](auto&... ec) { return fs::copy_symlink(p, q, ec...); });
    }
}

stop_player::text_task stop_player::change(stop_step s) {
    const fs::path p = name(s.one);
    const fs::path q = name(s.two);
    if (s.variant / 2 % 2 == 0) {
        co_return co_await call(s, [&](auto&... ec) { return fs::rename(p, q, ec...); });
    }
    co_return co_await call(s, [&](auto&... ec) { return fs::remove(p, ec...); });
}

stop_player::text_task stop_player::set(stop_step s) {
    const fs::path p = name(s.one);
    switch (s.variant / 2 % 3) {
    case 0: {
        constexpr std::array how{fs::perm_options::replace, fs::perm_options::add,
                                 fs::perm_options::remove,
                                 fs::perm_options::add | fs::perm_options::remove};
        const unsigned which = s.two % how.size();
        const fs::perm_options nofollow =
            s.two / 4 % 2 == 0 ? fs::perm_options::nofollow : fs::perm_options{};
        // The owner keeps the permissions that the script needs if it does not run as root.
        const auto to = static_cast<fs::perms>(which == 2 ? 0055 : 0711);
        co_return co_await call(
            s, [&](auto&... ec) { return fs::permissions(p, to, how[which] | nofollow, ec...); });
    }
    case 1:
        co_return co_await call(
            s, [&](auto&... ec) { return fs::resize_file(p, s.two * 50U, ec...); });
    default:
        const fs::file_time_type time{std::chrono::seconds(s.two * 1'000'000 - 200'000'000) +
                                      std::chrono::nanoseconds(s.variant)};
        co_return co_await call(s,
                                [&](auto&... ec) { return fs::last_write_time(p, time, ec...); });
    }
}

stop_player::text_task stop_player::replace(stop_step s) {
    const fs::path p = name(s.one);
    const std::string data(s.two * 37U, static_cast<char>('a' + s.variant % 26));
    co_return co_await call(s, [&](auto&... ec) {
        return fs::write_file(p, coil::const_buffer(data), fs::atomic_replace, ec...);
    });
}

stop_player::text_task stop_player::write(stop_step s) {
    constexpr std::array modes{fs::write_mode::truncate, fs::write_mode::append,
                               fs::write_mode::create_new};
    const fs::path p = name(s.one);
    const std::string data(s.two * 37U, static_cast<char>('a' + s.variant % 26));
    const fs::write_options options{.mode = modes[s.variant / 2 % modes.size()],
                                    .durable = s.variant / 8 % 4 == 0,
                                    .permissions = static_cast<fs::perms>(0740)};
    co_return co_await call(s, [&](auto&... ec) {
        return fs::write_file(p, coil::const_buffer(data), options, ec...);
    });
}

/// For operations whose results must not be ignored ([[nodiscard]]).
template <class Operation>
task<long> number_of(Operation op) {
    const coil::checked_io_result result = co_await std::move(op);
    co_return int{result};
}

/// An open file, with all of its operations.
stop_player::text_task stop_player::in_file(stop_step s) {
    constexpr std::array flags{O_RDWR,           O_RDWR | O_CREAT,
                               O_RDONLY,         O_WRONLY | O_APPEND,
                               O_RDWR | O_TRUNC, O_RDONLY | O_DIRECTORY};
    error_code ec;
    fs::file f = co_await fs::file::open(name(s.one), flags[s.variant % flags.size()], 0640, ec);
    if (ec) {
        co_return ec == std::errc::operation_canceled ? "stopped"
                                                      : "error " + std::to_string(ec.value());
    }
    std::string buffer(100, '\0');
    std::string all = "ok";
    bool stopped = false;
    const auto note = [&](long result) {
        stopped = stopped || result == -ECANCELED;
        all += ' ' + std::to_string(result);
    };
    note(co_await result_of(f.write_all("abcdefghij")));
    note(co_await result_of(f.write_all_at("0123456789", s.two * 10)));
    note(co_await result_of(f.read_exact_at(buffer, s.two)));
    const int read = co_await f.read(buffer);
    note(read);
    note(co_await number_of(f.resize(s.two * 9)));
    note(co_await number_of(f.data_sync()));
    note(co_await number_of(f.sync()));
    const std::uintmax_t size = co_await f.size(ec);
    stopped = stopped || ec == std::errc::operation_canceled;
    // File systems differ in the size of a directory.
    all += ' ' + (read == -EISDIR ? "" : text(size));
    note(co_await number_of(f.close()));
    co_return stopped ? "stopped" : all;
}

stop_player::text_task stop_player::copy(stop_step s) {
    constexpr std::array existing{fs::copy_options::none, fs::copy_options::skip_existing,
                                  fs::copy_options::overwrite_existing,
                                  fs::copy_options::skip_existing |
                                      fs::copy_options::overwrite_existing};
    constexpr std::array links{fs::copy_options::none, fs::copy_options::copy_symlinks,
                               fs::copy_options::skip_symlinks};
    constexpr std::array forms{
        fs::copy_options::none, fs::copy_options::none, fs::copy_options::directories_only,
        fs::copy_options::create_symlinks, fs::copy_options::create_hard_links};
    const fs::path p = name(s.one);
    const fs::path q = name(s.two);
    const unsigned chosen = s.variant / 2U;
    const fs::copy_options options =
        existing[chosen % existing.size()] | links[chosen / 4 % links.size()] |
        forms[chosen / 12 % forms.size()] |
        (chosen / 60 % 2 == 0 ? fs::copy_options::recursive : fs::copy_options::none);
    co_return co_await call(s, [&](auto&... ec) { return fs::copy(p, q, options, ec...); }, true);
}

stop_player::text_task stop_player::copy_tree(stop_step s) {
    const fs::path p = name(s.one);
    const fs::path q = name(s.two);
    fs::copy_tree_options options;
    options.times = s.variant / 2 % 2 == 0;
    options.owner = s.variant / 4 % 2 == 0;
    if (s.variant / 8 % 2 == 0) {
        options.options |= fs::copy_options::overwrite_existing;
    }
    co_return co_await call(
        s, [&](auto&... ec) { return fs::copy_tree(p, q, options, ec...); }, true);
}

/// The other functions that take several steps.
stop_player::text_task stop_player::whole(stop_step s) {
    constexpr std::array existing{fs::copy_options::none, fs::copy_options::skip_existing,
                                  fs::copy_options::overwrite_existing,
                                  fs::copy_options::update_existing};
    const fs::path p = name(s.one);
    const fs::path q = name(s.two);
    switch (s.variant / 2 % 4) {
    case 0:
        co_return co_await call(s, [&](auto&... ec) { return fs::create_directories(p, ec...); });
    case 1:
        co_return co_await call(s, [&](auto&... ec) { return fs::remove_all(p, ec...); }, true);
    default:
        // update_existing compares times.
        error_code ignored;
        const fs::file_time_type time{std::chrono::seconds(1'000'000'000)};
        co_await fs::last_write_time(p, time + std::chrono::seconds(s.variant / 32 % 3), ignored);
        co_await fs::last_write_time(q, time + std::chrono::seconds(1), ignored);
        co_return co_await call(s, [&](auto&... ec) {
            return fs::copy_file(p, q, existing[s.variant / 8 % existing.size()], ec...);
        });
    }
}

const std::array<stop_player::function, stop_player::kinds> stop_player::functions{{
    {effect::none, &stop_player::ask},
    {effect::none, &stop_player::ask_type},
    {effect::none, &stop_player::ask_path},
    {effect::none, &stop_player::ask_content},
    {effect::none, &stop_player::list},
    {effect::all_or_nothing, &stop_player::create},
    {effect::all_or_nothing, &stop_player::change},
    {effect::all_or_nothing, &stop_player::set},
    {effect::all_or_nothing, &stop_player::replace},
    {effect::part, &stop_player::write},
    {effect::part, &stop_player::in_file},
    {effect::part, &stop_player::copy},
    {effect::part, &stop_player::copy_tree},
    {effect::part, &stop_player::whole},
}};

task<stop_player::snapshot> stop_player::taken() const {
    snapshot all;
    auto entries = fs::walk(in_);
    while (const auto entry = co_await entries.next()) {
        const fs::path p = entry->path();
        const struct ::stat st = co_await entry->lstat();
        std::string line = std::to_string(st.st_mode);
        error_code ec;
        if (entry->is_symlink()) {
            const fs::path target = co_await fs::read_symlink(p, ec);
            line += " to " + text(target);
        } else if (entry->is_regular_file()) {
            const std::string content = co_await fs::read_file(p, ec);
            for (const std::uintmax_t number :
                 {std::uintmax_t{st.st_nlink}, static_cast<std::uintmax_t>(st.st_size),
                  std::uintmax_t{std::hash<std::string>()(content)}}) {
                line += ' ' + text(number);
            }
            line += ' ' + content.substr(0, 10);
        }
        all.emplace(text(p), line);
    }
    co_return all;
}

/// The function's result if a stop is requested at the step's moment.
stop_player::text_task stop_player::stopped(stop_step s, const function& f) {
    coil::inplace_stop_source source;
    const auto stop = [](stop_step at, coil::inplace_stop_source& of) -> task<> {
        for (unsigned i = 0; i < at.when % 8U; ++i) {
            co_await coil::yield();
        }
        if (at.when >= 128) {
            co_await coil::sleep_for(std::chrono::microseconds((at.when - 128) * 2));
        }
        of.request_stop();
    };
    if (s.when == 0) {
        source.request_stop();
    }
    auto [result, nothing] = co_await coil::when_all(
        coil::with_stop_token((this->*f.call)(s), source.get_token()), stop(s, source));
    co_return result;
}

/// `got` is the tree after the stop, `full` the tree after the repetition.
void stop_player::check(const snapshot& before, const snapshot& got, const snapshot& full) {
    const auto is_in = [](const auto& entry, const snapshot& all) {
        return all.contains(entry.first);
    };
    for (const auto& entry : got) {
        if (!is_in(entry, before) && !is_in(entry, full)) {
            results_.push_back("IMPOSSIBLE " + entry.first + " was created");
        }
    }
    for (const auto& entry : before) {
        if (is_in(entry, full) && !is_in(entry, got)) {
            results_.push_back("IMPOSSIBLE " + entry.first + " was removed");
        }
    }
}

task<> stop_player::one(stop_step s) {
    const function& f = functions.at(s.what % kinds);
    const bool changes = f.has != effect::none;
    if (f.has == effect::part) {
        co_await begin_anew();
    }
    snapshot before;
    if (changes) {
        before = co_await taken();
    }
    std::string result = co_await stopped(s, f);
    if (result == "stopped") {
        ++stops.at(s.what % kinds);
        snapshot got;
        if (changes) {
            got = co_await taken();
        }
        if (f.has == effect::all_or_nothing && got != before) {
            results_.push_back("IMPOSSIBLE a part was done");
        }
        if (f.has == effect::part) {
            co_await begin_anew();
        }
        result = co_await (this->*f.call)(s);
        if (f.has == effect::part) {
            const snapshot full = co_await taken();
            check(before, got, full);
        }
    }
    successes.at(s.what % kinds) += result.starts_with("ok") ? 1U : 0U;
    results_.push_back(result);
    if (f.has == effect::part && !result.starts_with("ok")) {
        co_await begin_anew(); // how much was done depends on the order of directories
    }
}

task<> stop_player::end() {
    const snapshot all = co_await taken();
    for (const auto& [path, what] : all) {
        results_.push_back(path + ": " + what);
    }
    co_await fs::remove_all(in_);
}

class stop_stage {
public:
    explicit stop_stage(std::string directory) : directory_(std::move(directory)) {}

    task<> open() { co_return; }
    task<> close() { co_return; }
    [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

private:
    const std::string directory_;
};

std::string to_string(const stop_script& script) {
    std::ostringstream text;
    for (const stop_step& s : script) {
        text << "    {" << unsigned{s.what} << ' ' << unsigned{s.one} << ' ' << unsigned{s.two}
             << ' ' << unsigned{s.when} << ' ' << s.variant << "}\n";
    }
    return text.str();
}

stop_script random_stop_script(std::uint64_t seed, std::size_t steps) {
    coil_test::random_source r(seed);
    stop_script s;
    s.reserve(steps);
    for (std::size_t i = 0; i < steps; ++i) {
        s.push_back({static_cast<std::uint8_t>(r.below(stop_player::kinds)),
                     static_cast<std::uint8_t>(r.below(90)), static_cast<std::uint8_t>(r.below(90)),
                     static_cast<std::uint8_t>(r.below(256)),
                     static_cast<std::uint16_t>(r.below(10'000))});
    }
    return s;
}

task<> play_stops(const stop_script& script, stop_stage& stage, answers& results) {
    stop_player p(stage.directory(), results);
    co_await p.begin();
    for (const stop_step s : script) {
        co_await p.one(s);
    }
    co_await p.end();
}

/// Adds up what the steps of a script have done.
task<> count_stops(const stop_script& script, std::string directory,
                   std::array<unsigned, stop_player::kinds>& stops,
                   std::array<unsigned, stop_player::kinds>& successes) {
    answers results;
    stop_player p(directory, results);
    co_await p.begin();
    for (const stop_step s : script) {
        co_await p.one(s);
    }
    for (std::size_t i = 0; i < stop_player::kinds; ++i) {
        stops.at(i) += p.stops.at(i);
        successes.at(i) += p.successes.at(i);
    }
}

constexpr game<stop_script, stop_stage> stops{random_stop_script, play_stops, 30, 1};

TEST(Differential, G3_StoppedFunctionsOfFilesAreTheSameOnAllBackends) {
    const ::mode_t before = ::umask(022); // that of a simulated world
    compare_all(stops, present_backends(),
                static_cast<std::uint64_t>(coil_test::rounds(coil_test::sanitized ? 5 : 25, 1000)));
    ::umask(before);
}

/// Scripts in which nothing is stopped, or every step fails, would agree trivially.
TEST(Differential, ScriptsOfStopsStopSomething) {
    for (const backend& k : present_backends()) {
        std::array<unsigned, stop_player::kinds> stopped{};
        std::array<unsigned, stop_player::kinds> succeeded{};
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            const std::unique_ptr<machine> m = k.boot();
            m->run(count_stops(stops.make(seed, stops.steps), m->directory(), stopped, succeeded));
        }
        for (std::size_t what = 0; what < stopped.size(); ++what) {
            EXPECT_GT(stopped[what], 0U) << k << ": steps of kind " << what;
            EXPECT_GT(succeeded[what], 1U) << k << ": steps of kind " << what;
        }
    }
}

} // namespace

} // namespace conformance
