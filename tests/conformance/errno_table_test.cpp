// Tables of the errno of each call in each situation, on all backends and several file systems.

#include "conformance/errno_mounts_table.hpp"
#include "conformance/errno_names_table.hpp"
#include "conformance/errno_player.hpp"
#include "conformance/errno_states_table.hpp"
#include "fs/needs_fork.hpp"
#include "io/support.hpp"
#include "support/file_protections.hpp"
#include "support/run.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace conformance {

namespace {

namespace stdfs = std::filesystem;

/// d/ with d/f, the empty e/ and e2/, the files f and g, and links: lf -> f, ld -> d, ln -> none,
/// loop -> loop.
task<> make_files(std::string top) {
    for (const char* const name : {"", "d", "e", "e2"}) {
        co_await gives(io::mkdir(top + name, 0755), 0);
    }
    for (const char* const name : {"f", "g", "d/f"}) {
        co_await fs::write_file(top + name, std::string("content"));
    }
    for (const auto& [to, name] :
         {std::pair("f", "lf"), {"d", "ld"}, {"none", "ln"}, {"loop", "loop"}}) {
        co_await gives(io::symlink(to, top + name), 0);
    }
}

class ErrnoTable : public Conformance {};
COIL_ON_ALL_BACKENDS(ErrnoTable);

TEST_P(ErrnoTable, Names) {
    std::string wrong;
    errno_table table(names_table);
    if (std::string_view(GetParam().name) == "sim") {
        table.apply(errno_table(world_table));
    }
    run(play(table, directory(), make_files, wrong));
    EXPECT_EQ(wrong, "");
}

task<> remove_root(std::string directory) {
    co_await fs::write_file(directory + "file", std::string("content"));
    for (const char* const root : {"/", "//"}) {
        std::error_code ec;
        co_await fs::remove_all(root, ec);
        EXPECT_EQ(ec, std::errc::device_or_resource_busy) << root;
    }
    const bool is_there = co_await fs::exists(directory + "file");
    EXPECT_TRUE(is_there);
}

/// Only in a world: a failure would be expensive elsewhere.
TEST_P(ErrnoTable, TheRootIsNotRemoved) {
    if (std::string_view(GetParam().name) != "sim") {
        GTEST_SKIP() << "this could remove all files of the machine";
    }
    run(remove_root(directory()));
}

TEST(ErrnoTables, HaveAllCalls) {
    const errno_table table(names_table);
    std::map<std::string_view, int> known;
    for (const auto* const calls : {&io_calls(), &fs_calls()}) {
        for (const named_call& one : *calls) {
            ++known[one.name];
        }
    }
    for (const auto& [call, row] : table.rows()) {
        ++known[call];
    }
    for (const auto& [name, times] : known) {
        EXPECT_EQ(times, 2) << name;
    }
    EXPECT_EQ(table.rows().size(), io_calls().size() + fs_calls().size());
}

// ---- other file systems and users: in a child process of root with mounts of its own

/// Thrown with the reason why the test is skipped.
struct skipped {
    std::string why;
};

void mount_at(const std::string& where, const char* type, const std::string& options = {},
              unsigned long flags = 0) {
    if (::mount("none", where.c_str(), type, flags, options.empty() ? nullptr : options.c_str()) !=
        0) {
        throw skipped{std::string(type == nullptr ? "mount" : type) + ": " + std::strerror(errno)};
    }
}

/// Runs `test` in a child process with private mounts; gives it an empty directory on a new tmpfs,
/// with a trailing slash. `test` returns a description of the failure, or an empty string.
void with_mounts(const std::function<std::string(const std::string& directory)>& test) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can mount a file system and change its user";
    }
    FS_TEST_NEEDS_FORK();
    const io_test::temporary_directory files;
    const std::string complaint = coil_test::in_child([&]() -> std::string {
        try {
            if (::unshare(CLONE_NEWNS) != 0) {
                throw skipped{std::string("unshare: ") + std::strerror(errno)};
            }
            mount_at("/", nullptr, "", MS_REC | MS_PRIVATE);
            mount_at(files / "", "tmpfs", "mode=0755");
            return test(files / "");
        } catch (const skipped& s) {
            return "SKIP: " + s.why;
        }
    });
    if (complaint.starts_with("SKIP: ")) {
        GTEST_SKIP() << complaint.substr(6);
    }
    EXPECT_EQ(complaint, "");
}

std::string differences(const errno_table& table, const std::string& directory,
                        const making& make) {
    std::string wrong;
    coil::io_context context;
    coil_test::run_on(context, play(table, directory, make, wrong));
    return wrong;
}

/// Like make_files(), for each cell of a table, before the file system or the user changes.
void prepare(const char* text, const std::string& directory,
             const std::function<void(const stdfs::path& top)>& more = {}) {
    const std::size_t cells = errno_table(text).cells();
    for (std::size_t i = 0; i < cells; ++i) {
        const stdfs::path top = directory + std::to_string(i);
        for (const char* const name : {"", "d", "e", "e2"}) {
            stdfs::create_directory(top / name);
        }
        for (const char* const name : {"f", "g", "d/f"}) {
            std::ofstream(top / name) << "content";
        }
        for (const auto& [to, name] :
             {std::pair("f", "lf"), {"d", "ld"}, {"none", "ln"}, {"loop", "loop"}}) {
            stdfs::create_symlink(to, top / name);
        }
        if (more) {
            more(top);
        }
    }
}

TEST(ErrnoTables, NamesOnTmpfs) {
    with_mounts([](const std::string& directory) {
        return differences(errno_table(names_table), directory, make_files);
    });
}

/// Mounts a new ext4 on an image below `directory`, and returns its root with a trailing slash.
std::string ext4_below(const std::string& directory) {
    const std::string at = directory + "ext4/";
    const std::string image = directory + "image";
    stdfs::create_directory(at);
    std::ofstream(image).close();
    stdfs::resize_file(image, 128U << 20);
    const std::string command = "PATH=$PATH:/usr/sbin:/sbin; { mkfs.ext4 -q -N 65536 " + image +
                                " && mount -o loop " + image + ' ' + at + "; } >" + directory +
                                "why 2>&1";
    if (std::system(command.c_str()) != 0) { // NOLINT(concurrency-mt-unsafe): a child process
        std::ifstream why(directory + "why");
        std::string line;
        std::getline(why, line);
        throw skipped{"an image of ext4 cannot be mounted: " + line};
    }
    return at;
}

TEST(ErrnoTables, NamesOnExt4) {
    with_mounts([](const std::string& directory) {
        return differences(errno_table(names_table), ext4_below(directory), make_files);
    });
}

void set_flag(const std::string& p, int flag) {
    const int fd = ::open(p.c_str(), O_RDONLY | O_CLOEXEC);
    int flags = 0;
    if (fd < 0 || ::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0 ||
        ::ioctl(fd, FS_IOC_SETFLAGS, &(flags |= flag)) != 0) {
        throw skipped{"attributes of ext4: " + std::string(std::strerror(errno))};
    }
    ::close(fd);
}

/// A program that is being executed while the object exists.
class running_program {
public:
    explicit running_program(const std::string& p) {
        stdfs::copy_file("/bin/sleep", p);
        process_ = ::fork();
        if (process_ == 0) {
            do {
                ::execl(p.c_str(), "sleep", "1000", nullptr);
            } while (errno == ETXTBSY); // the parent has it open, see below
            ::_exit(1);
        }
        // The program has started when its file can no longer be opened for writing.
        for (int fd = 0; (fd = ::open(p.c_str(), O_WRONLY | O_CLOEXEC)) >= 0;) {
            ::close(fd);
            ::usleep(1000);
        }
    }
    running_program(const running_program&) = delete;
    running_program& operator=(const running_program&) = delete;
    ~running_program() {
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
    }

private:
    ::pid_t process_ = -1;
};

/// busy is being executed; fixed and fixed_d/ may not be changed (FS_IMMUTABLE_FL), grows and
/// grows_d/ are append-only (FS_APPEND_FL).
TEST(ErrnoTables, StatesOfFilesOnExt4) {
    with_mounts([](const std::string& directory) {
        const std::string ext4 = ext4_below(directory);
        const running_program program(ext4 + "program");
        const making make = [&](std::string top) -> task<> {
            co_await make_files(top);
            co_await gives(io::link(ext4 + "program", top + "busy"), 0);
            for (const std::string name : {"fixed", "grows"}) {
                co_await fs::write_file(top + name, std::string("content"));
                co_await gives(io::mkdir(top + name + "_d", 0755), 0);
                co_await fs::write_file(top + name + "_d/f", std::string("content"));
                for (const char* const end : {"", "_d"}) {
                    set_flag(top + name + end, name == "fixed" ? FS_IMMUTABLE_FL : FS_APPEND_FL);
                }
            }
        };
        return differences(errno_table(states_table), ext4, make);
    });
}

/// A file system without a free block or inode.
TEST(ErrnoTables, FullFileSystem) {
    with_mounts([](const std::string& directory) {
        const auto limit = [&](const std::string& options) {
            mount_at(directory, nullptr, options, MS_REMOUNT);
        };
        const making make = [&](std::string top) -> task<> {
            limit("size=16m,nr_inodes=10k");
            co_await make_files(top);
            struct ::statvfs used{};
            ::statvfs(directory.c_str(), &used);
            limit("size=" + std::to_string((used.f_blocks - used.f_bfree) * used.f_frsize) +
                  ",nr_inodes=" + std::to_string(used.f_files - used.f_ffree));
        };
        return differences(errno_table(full_table), directory, make);
    });
}

/// A file with as many names as ext4 permits.
TEST(ErrnoTables, TooManyLinksOnExt4) {
    with_mounts([](const std::string& directory) -> std::string {
        const std::string ext4 = ext4_below(directory);
        std::ofstream(ext4 + "f") << "content";
        int links = 1;
        while (::link((ext4 + "f").c_str(), (ext4 + "l" + std::to_string(links)).c_str()) == 0) {
            ++links;
        }
        std::string wrong = links < 60'000 ? "only " + std::to_string(links) + " links\n" : "";
        coil::io_context context;
        for (const char* const call : {"link_from", "link_follow", "hard_link_from"}) {
            const auto make_it = [&]() -> task<> {
                const int result = co_await call_of(call, ext4 + "f", ext4);
                if (result != -EMLINK) {
                    wrong += std::string(call) + ' ' + errno_name(result) + '\n';
                }
            };
            coil_test::run_on(context, make_it());
        }
        return wrong;
    });
}

std::string overlay_of(const std::string& directory) {
    for (const char* const name : {"lower", "upper", "work", "merged"}) {
        stdfs::create_directory(directory + name);
    }
    return directory + "merged/";
}
void mount_overlay(const std::string& directory) {
    mount_at(directory + "merged", "overlay",
             "lowerdir=" + directory + "lower,upperdir=" + directory +
                 "upper,workdir=" + directory + "work");
}

TEST(ErrnoTables, NamesOnOverlayfs) {
    with_mounts([](const std::string& directory) {
        const std::string merged = overlay_of(directory);
        mount_overlay(directory);
        return differences(errno_table(names_table), merged, make_files);
    });
}

/// The files are in the lower layer: a change copies them first.
TEST(ErrnoTables, NamesOfTheLowerLayerOfOverlayfs) {
    with_mounts([](const std::string& directory) {
        const std::string merged = overlay_of(directory);
        prepare(names_table, directory + "lower/");
        mount_overlay(directory);
        errno_table table(names_table);
        table.apply(errno_table(lower_layer_table));
        return differences(table, merged, nullptr);
    });
}

TEST(ErrnoTables, ReadOnlyFileSystem) {
    with_mounts([](const std::string& directory) {
        prepare(read_only_table, directory);
        mount_at(directory, nullptr, "", MS_REMOUNT | MS_RDONLY);
        return differences(errno_table(read_only_table), directory, nullptr);
    });
}

/// The situations are files on another file system, in the directory `far`.
TEST(ErrnoTables, TwoFileSystems) {
    with_mounts([](const std::string& directory) {
        const errno_table table(two_systems_table);
        stdfs::create_directory(directory + "far");
        stdfs::create_directory(directory + "near");
        mount_at(directory + "far", "tmpfs");
        prepare(two_systems_table, directory + "near/", [&](const stdfs::path& top) {
            const stdfs::path other = directory + "far/" + top.filename().native();
            stdfs::create_directories(other / "d");
            stdfs::create_directory(other / "e");
            std::ofstream(other / "f") << "content";
            std::ofstream(other / "d/f") << "content";
            stdfs::create_symlink("f", other / "lf");
            stdfs::create_directory_symlink(other, top / "far");
        });
        return differences(errno_table(two_systems_table), directory + "near/", nullptr);
    });
}

void give(const stdfs::path& p, ::uid_t user) {
    if (::lchown(p.c_str(), user, user) != 0) {
        throw std::runtime_error("lchown " + p.native());
    }
}

/// As an unprivileged user, who owns the usual files. The others belong to root: the user may not
/// search shut/, write to open/ or read secret, and sticky/ is like /tmp.
TEST(ErrnoTables, AnotherUser) {
    const coil_test::file_protections on('1'); // otherwise users can link to all files
    if (!on.refusal().empty()) {
        GTEST_SKIP() << on.refusal();
    }
    with_mounts([](const std::string& directory) -> std::string {
        constexpr ::uid_t user = 65534;
        prepare(permissions_table, directory, [](const stdfs::path& top) {
            give(top, user);
            for (const auto& entry : stdfs::directory_iterator(top)) {
                give(entry.path(), user);
            }
            for (const auto& [name, mode] :
                 {std::pair("shut", 0700U), {"open", 0755U}, {"sticky", 01777U}}) {
                stdfs::create_directories(top / name / "e");
                std::ofstream(top / name / "f") << "content";
                ::chmod((top / name).c_str(), mode);
            }
            std::ofstream(top / "secret") << "content";
            ::chmod((top / "secret").c_str(), 0600);
        });
        ::chmod(directory.c_str(), 0777);
        if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
            ::setresuid(user, user, user) != 0) {
            return std::string("cannot change the user: ") + std::strerror(errno);
        }
        return differences(errno_table(permissions_table), directory, nullptr);
    });
}

} // namespace

} // namespace conformance
