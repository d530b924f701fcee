// Files and processes.

#include <coil/coil.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sys/uio.h>

#if COIL_CASE == 1 // file_by_its_name
// expect: open it: co_await fs::file::open(path)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::fs::file f = co_await coil::fs::file::open("name");
#else
    coil::fs::file f("name");
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // file_with_the_mode_of_fopen
// expect: open takes a path and the flags of open(2)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    static_cast<void>(co_await coil::fs::file::open("name", O_RDONLY));
#else
    co_await coil::fs::file::open("name", "r");
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // write_file_with_a_bool
// expect: write_file takes a path, the data, and perhaps options

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::fs::write_file("name", "text");
#else
    co_await coil::fs::write_file("name", "text", true);
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // for_over_a_watcher
// expect: write while (auto event = co_await watcher.next()) instead of for

coil::task<> caller(coil::fs::watcher& w) {
#if defined(COIL_EXPECT_OK)
    while (auto event = co_await w.next()) {
    }
#else
    for (auto event : w) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // process_of_a_command_line
// expect: pass the program and its arguments as a list

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto p = coil::process::spawn({"ls", "-l"});
#else
    auto p = coil::process::spawn("ls", "-l");
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // awaited_process
// expect: spawn() does not wait: auto p = process::spawn({...}); co_await p.wait()

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto p = coil::process::spawn({"ls"});
    co_await p.wait();
#else
    co_await coil::process::spawn({"ls"});
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // output_as_a_string
// expect: the output is a member: (co_await p.output()).out

coil::task<> caller(coil::process& p) {
#if defined(COIL_EXPECT_OK)
    const std::string text = (co_await p.output()).out;
#else
    const std::string text = co_await p.output();
#endif
    co_return;
}
#endif

#if COIL_CASE == 8 // redirect_to_null
// expect: write redirect::null(), or inherit(), pipe(), file(path), descriptor(fd)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::process_options options;
    options.standard_input = coil::redirect::null();
#else
    coil::process_options options;
    options.standard_input = nullptr;
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // pipe_write
// expect: write_some(data), or the whole: write_all(pipe, data)

coil::task<> caller(coil::process& p) {
#if defined(COIL_EXPECT_OK)
    co_await write_all(p.stdin(), "text");
#else
    co_await p.stdin().write("text");
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // readv_of_strings
// expect: readv and writev take an array of iovec

coil::task<> caller(int fd, std::span<const ::iovec> parts, std::string& text) {
#if defined(COIL_EXPECT_OK)
    co_await coil::io::readv(fd, parts);
#else
    co_await coil::io::readv(fd, text);
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // wait_compared
// expect: did you forget to co_await? Write co_await f() to get the result of a task

coil::task<> caller(coil::process& p) {
#if defined(COIL_EXPECT_OK)
    if (co_await p.wait() == coil::exit_status()) {
    }
#else
    if (p.wait() == coil::exit_status()) {
    }
#endif
    co_return;
}
#endif
