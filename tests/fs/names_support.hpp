#pragma once

#include "support/backends.hpp"
#include "support/random.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// Shared by the tests of file names: random trees, and functions that record the outcome of a call
// of std::filesystem or of coil::fs.

namespace names_test {

namespace stdfs = std::filesystem;
using coil_test::random_source;
using stdfs::path;

/// A directory so deep below the temporary directory that no relative path of a test leads out of
/// the tree: a path has at most five `..`, a symlink two, and the kernel follows at most 40
/// symlinks.
class temporary_tree {
public:
    explicit temporary_tree(int depth = 100, const path& where = stdfs::temp_directory_path()) {
        std::string pattern = (stdfs::is_directory(where) ? where : stdfs::temp_directory_path()) /
                              "coil-names-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), "mkdtemp");
        }
        top_ = pattern;
        root_ = top_;
        for (int i = 0; i < depth; ++i) {
            root_ /= "n";
        }
        stdfs::create_directories(root_);
    }
    temporary_tree(const temporary_tree&) = delete;
    temporary_tree& operator=(const temporary_tree&) = delete;
    ~temporary_tree() {
        open_all(top_);
        std::error_code ignored;
        stdfs::remove_all(top_, ignored);
    }

    [[nodiscard]] const path& root() const noexcept { return root_; }
    [[nodiscard]] const path& top() const noexcept { return top_; }

private:
    /// remove_all needs read permission if it does not run as root.
    static void open_all(const path& p) {
        std::error_code ignored;
        stdfs::permissions(p, stdfs::perms::owner_all, stdfs::perm_options::add, ignored);
        for (const auto& entry : stdfs::directory_iterator(p, ignored)) {
            if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) {
                open_all(entry.path());
            }
        }
    }

    path top_;
    path root_;
};

/// Changes the current directory for a scope.
class inside {
public:
    explicit inside(const path& p) : before_(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) {
        if (before_ < 0 || ::chdir(p.c_str()) != 0) {
            throw std::system_error(errno, std::generic_category(), p);
        }
    }
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    ~inside() {
        if (::fchdir(before_) != 0) {
            std::abort();
        }
        ::close(before_);
    }

private:
    int before_;
};

inline const std::vector<std::string>& short_names() {
    static const std::vector<std::string> names = {"a", "b", "c", "d", "e", "link", "file"};
    return names;
}
inline std::string longest_name() { return std::string(255, 'l'); }

template <class T>
const T& any_of(random_source& r, const std::vector<T>& from) {
    return from[r.below(static_cast<unsigned>(from.size()))];
}

/// Existing and missing names, `.`, `..`, empty and too long ones, misplaced slashes.
inline std::string random_path(random_source& r) {
    if (r.one_in(40)) {
        return any_of<std::string>(r, {"", "/", "//", ".", "..", "./", "/nonexistent-coil/x",
                                       std::string(5000, 'x'), "/dev/null", "/dev/null/x"});
    }
    std::string text;
    const unsigned parts = r.between(1, r.one_in(3) ? 5 : 2);
    for (unsigned i = 0; i < parts; ++i) {
        text += i == 0 ? "" : r.one_in(10) ? "//" : "/";
        if (r.one_in(6)) {
            text += r.one_in(2) ? "." : "..";
        } else if (r.one_in(30)) {
            text += r.one_in(2) ? longest_name() : longest_name() + "x";
        } else {
            text += any_of(r, short_names());
        }
    }
    return r.one_in(6) ? text + "/" : text;
}

/// A path that does not lead out of the tree, for tests that change files.
inline std::string random_path_inside(random_source& r) {
    for (;;) {
        std::string text = random_path(r);
        if (!text.starts_with('/')) {
            return text;
        }
    }
}

/// The target of a symlink: see temporary_tree for why it goes up at most twice.
inline std::string random_target(random_source& r) {
    if (r.one_in(12)) {
        return any_of<std::string>(r, {"/nonexistent-coil", "", std::string(300, 't')});
    }
    const std::string name = any_of(r, short_names());
    return any_of<std::string>(r, {name, "../" + name, "../../" + name, "./" + name, name + "/",
                                   name + "/" + any_of(r, short_names()), ".", ".."});
}

/// Creates a file of a random type at `p`, if possible.
inline void make_something(random_source& r, const path& p) {
    static constexpr ::mode_t modes[] = {0777, 0755, 0700, 0500, 0300, 0111, 0, 04755, 01777};
    const ::mode_t mode = modes[r.below(std::size(modes))];
    std::error_code ignored;
    switch (r.below(10)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (::mkdir(p.c_str(), 0777) == 0 && r.one_in(3)) {
            ::chmod(p.c_str(), mode);
        }
        break;
    case 4:
    case 5:
        if (const int fd = ::open(p.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
            fd >= 0) {
            if (::ftruncate(fd, r.below(3) * 1000) != 0 || ::fchmod(fd, mode) != 0) {
                std::abort();
            }
            ::close(fd);
        }
        break;
    case 6:
    case 7:
        stdfs::create_symlink(random_target(r), p, ignored);
        break;
    case 8:
        if (r.one_in(2)) {
            ::mkfifo(p.c_str(), 0666);
        } else if (p.native().size() < sizeof(::sockaddr_un::sun_path)) {
            ::mknod(p.c_str(), S_IFSOCK | 0666, 0);
        } else {
            ::mknod(p.c_str(), S_IFCHR | 0666, 0x0103); // only as root; otherwise nothing is
                                                        // created
        }
        break;
    default:
        stdfs::create_hard_link(p.parent_path() / any_of(r, short_names()), p, ignored);
        break;
    }
}

/// Deterministic for a seed.
inline void make_random_tree(const path& root, std::uint64_t seed, int things = 60) {
    const inside here(root);
    random_source r(seed);
    ::mkdir("a", 0777);
    ::mkdir("b", 0777);
    ::mkdir("a/c", 0777);
    stdfs::create_symlink("../b", "a/link");
    stdfs::create_symlink("link", "link"); // a loop
    std::ofstream("file") << "content";
    for (int i = 0; i < things; ++i) {
        path p;
        for (unsigned parts = r.between(1, 3); parts > 0; --parts) {
            p /= r.one_in(30) ? longest_name() : any_of(r, short_names());
        }
        make_something(r, p);
    }
}

/// Everything observable in a tree except times.
inline std::string listing(const path& root) {
    std::vector<std::string> lines;
    std::error_code ignored;
    stdfs::recursive_directory_iterator it(root, ignored);
    for (; it != stdfs::recursive_directory_iterator(); it.increment(ignored)) {
        struct ::stat st{};
        ::lstat(it->path().c_str(), &st);
        std::ostringstream line;
        line << it->path().lexically_relative(root) << ' ' << std::oct << st.st_mode << std::dec
             << " links " << st.st_nlink;
        if (S_ISREG(st.st_mode)) {
            line << " size " << st.st_size;
        } else if (S_ISLNK(st.st_mode)) {
            line << " -> " << stdfs::read_symlink(it->path(), ignored);
        }
        lines.push_back(line.str());
        if (ignored) {
            break;
        }
    }
    std::sort(lines.begin(), lines.end());
    std::string all;
    for (const std::string& line : lines) {
        all += line + '\n';
    }
    return all;
}

/// The outcome of a function: its value, or its exception or error.
struct said {
    std::string value;
    std::error_code code;
    path path1;
    path path2;

    friend bool operator==(const said&, const said&) = default;
    friend std::ostream& operator<<(std::ostream& to, const said& s) {
        return to << "value " << s.value << ", error " << s.code << ' ' << s.path1 << ' '
                  << s.path2;
    }
};

template <class T>
std::string shown(const T& value) {
    std::ostringstream text;
    if constexpr (std::same_as<T, stdfs::file_status>) {
        text << static_cast<int>(value.type()) << ' ' << std::oct
             << static_cast<unsigned>(value.permissions());
    } else if constexpr (std::same_as<T, stdfs::file_time_type>) {
        text << value.time_since_epoch().count();
    } else if constexpr (std::same_as<T, stdfs::space_info>) {
        text << value.capacity; // the other members change while other processes use the disk
    } else {
        text << value;
    }
    return text.str();
}

template <class F>
said say(F f) {
    said s;
    try {
        if constexpr (std::is_void_v<decltype(f())>) {
            f();
        } else {
            s.value = shown(f());
        }
    } catch (const stdfs::filesystem_error& e) {
        s.code = e.code();
        s.path1 = e.path1();
        s.path2 = e.path2();
    }
    return s;
}

template <class T>
coil::task<said> say_in_coil(coil::task<T> work) {
    said s;
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(work);
        } else {
            const T value = co_await std::move(work);
            s.value = shown(value);
        }
    } catch (const stdfs::filesystem_error& e) {
        s.code = e.code();
        s.path1 = e.path1();
        s.path2 = e.path2();
    }
    co_return s;
}

/// The initial value of an error_code, to verify that success clears it.
inline std::error_code dirty() { return std::make_error_code(std::errc::bad_message); }

template <class F>
said say_code(F f) {
    std::error_code ec = dirty();
    said s = say([&] { return f(ec); });
    s.code = ec;
    return s;
}

template <class F>
said say_code_in_coil(coil::io_context& context, F f) {
    std::error_code ec = dirty();
    said s = coil_test::run_on(context, say_in_coil(f(ec)));
    s.code = ec;
    return s;
}

/// The opcodes used by the functions of coil::fs that take names.
inline std::vector<coil::uring::opcode> calls_on_names() {
    using coil::uring::opcode;
    return {opcode::statx,     opcode::mkdirat, opcode::unlinkat, opcode::renameat, opcode::linkat,
            opcode::symlinkat, opcode::openat,  opcode::close,    opcode::ftruncate};
}

/// A context whose backend lacks these opcodes, as an old kernel does.
inline std::unique_ptr<coil::io_context> context_of_an_old_kernel() {
    auto door = std::make_shared<coil_test::door_backend::guard>();
    door->hidden = calls_on_names();
    return std::make_unique<coil::io_context>(coil_test::with([&](coil::io_context_options& o) {
        o.make_backend = coil_test::door_backend::factory(door);
    }));
}

} // namespace names_test
