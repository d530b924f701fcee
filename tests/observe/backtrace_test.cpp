// this_task::backtrace(): the chain of awaits of the current task.

#include "../../src/context/failure_report.hpp"
#include "support.hpp"
#include "support/death.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

using namespace coil;

namespace observed {

constexpr unsigned innermost_line = __LINE__ + 1;
task<task_backtrace> innermost() { co_return co_await this_task::backtrace(); }
task<task_backtrace> middle() { co_return co_await innermost(); }
task<task_backtrace> outermost() { co_return co_await middle(); }

task<task_backtrace> in_when_all() {
    auto both = co_await when_all(middle(), innermost());
    co_return std::get<0>(both);
}

task<> keeps(task_backtrace& kept) { kept = co_await innermost(); }

task<task_backtrace> in_a_scope() {
    task_backtrace kept;
    scope children;
    children.spawn(keeps(kept), "a child");
    co_await children.join();
    co_return kept;
}

task<task_backtrace> with_a_token() {
    inplace_stop_source source;
    co_return co_await with_stop_token(innermost(), source.get_token());
}

async_generator<int> numbers(task_backtrace& kept) {
    kept = co_await innermost();
    co_yield 1;
}
task<> reads(task_backtrace& kept) {
    auto all = numbers(kept);
    static_cast<void>(co_await all.next());
}
task<task_backtrace> in_a_generator() {
    task_backtrace kept;
    co_await reads(kept);
    co_return kept;
}

} // namespace observed

namespace {

using coil_test::run_on;

std::vector<std::string> functions_of(const task_backtrace& trace) {
    std::vector<std::string> names;
    for (const backtrace_entry& entry : trace.entries) {
        EXPECT_FALSE(entry.module.empty());
        EXPECT_NE(entry.offset, 0U);
        names.push_back(entry.function);
    }
    return names;
}

using names = std::vector<std::string>;

TEST(Backtrace, IsTheChainOfAwaits) {
    io_context ctx;
    EXPECT_EQ(functions_of(run_on(ctx, observed::outermost())),
              (names{"observed::innermost()", "observed::middle()", "observed::outermost()"}));
}

TEST(Backtrace, ContinuesAboveTheChildrenOfWhenAll) {
    io_context ctx;
    EXPECT_EQ(functions_of(run_on(ctx, observed::in_when_all())),
              (names{"observed::innermost()", "observed::middle()", "observed::in_when_all()"}));
}

TEST(Backtrace, ContinuesAboveTheChildrenOfAScopeThatIsJoined) {
    io_context ctx;
    const task_backtrace trace = run_on(ctx, observed::in_a_scope());
    EXPECT_EQ(trace.name, "a child");
    EXPECT_EQ(functions_of(trace),
              (names{"observed::innermost()", "observed::keeps(coil::task_backtrace&)",
                     "observed::in_a_scope()"}));
}

/// The mangled name has a constrained template parameter, which some demanglers cannot read.
TEST(Backtrace, NamesATemplateWithAConstraint) {
    io_context ctx;
    const names found = functions_of(run_on(ctx, observed::with_a_token()));
    ASSERT_EQ(found.size(), 3U);
    EXPECT_NE(found[1].find("coil::with_stop_token<"), std::string::npos) << found[1];
    EXPECT_NE(found[1].substr(0, 2), "_Z");
}

TEST(Backtrace, ContinuesAboveAGenerator) {
    io_context ctx;
    EXPECT_EQ(functions_of(run_on(ctx, observed::in_a_generator())),
              (names{"observed::innermost()", "observed::numbers(coil::task_backtrace&)",
                     "observed::reads(coil::task_backtrace&)", "observed::in_a_generator()"}));
}

TEST(Backtrace, HasTheNameOfTheTask) {
    io_context ctx;
    auto handle = ctx.spawn(observed::outermost(), "the name");
    ctx.run();
    const task_backtrace trace = handle.get();
    EXPECT_EQ(trace.name, "the name");
    const std::string text = to_string(trace);
    EXPECT_TRUE(text.starts_with("task 'the name'\n#0 observed::innermost() [")) << text;
}

// ---- the files of the symbols

/// A directory that is removed at the end.
class temporary_directory {
public:
    temporary_directory() { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
    temporary_directory(const temporary_directory&) = delete;
    ~temporary_directory() { EXPECT_EQ(std::system(("rm -r " + path()).c_str()), 0); }
    [[nodiscard]] std::string path() const { return path_.data(); }

private:
    std::array<char, 32> path_{"/tmp/coil-symbols-XXXXXX"};
};

/// The next tests also run this in a copy of this program, which first changes its own file.
TEST(BacktraceOfAProgram, IsPrinted) {
    if (const char* const change = std::getenv("COIL_TEST_CHANGE")) {
        ASSERT_EQ(std::system(change), 0);
    }
    io_context ctx;
    std::fputs(to_string(run_on(ctx, observed::outermost())).c_str(), stdout);
}

/// The functions that a copy of this program prints. Both arguments are shell commands, run in the
/// directory of the copy, whose name is `program`: before it starts, and while it runs.
names printed_by_a_copy(const std::string& before, const std::string& while_it_runs = "true") {
    const temporary_directory directory;
    const std::string command =
        "cd " + directory.path() + " && cp /proc/" + std::to_string(::getpid()) +
        "/exe program && strip --strip-debug program && " + before + " && COIL_TEST_CHANGE='" +
        while_it_runs + "' ./program --gtest_filter=BacktraceOfAProgram.IsPrinted 2>&1";
    std::FILE* const out = ::popen(command.c_str(), "r");
    names functions;
    std::string text;
    std::array<char, 4096> line{};
    while (std::fgets(line.data(), line.size(), out) != nullptr) {
        text += line.data();
        const std::string_view one = line.data();
        if (one.starts_with("#")) {
            const auto begin = one.find(' ') + 1;
            functions.emplace_back(one.substr(begin, one.find(" [") - begin));
            EXPECT_NE(one.find(" [program+0x"), std::string::npos) << one;
        }
    }
    EXPECT_EQ(::pclose(out), 0) << text;
    return functions;
}

const names all_names{"observed::innermost()", "observed::middle()", "observed::outermost()"};
const names no_names{"?", "?", "?"};

constexpr const char* move_symbols =
    "objcopy --only-keep-debug program program.debug && strip program && "
    "objcopy --add-gnu-debuglink=program.debug program";

TEST(Symbols, OfAProgramThatWasDeletedOrReplaced) {
    EXPECT_EQ(printed_by_a_copy("true", "rm program"), all_names);
    EXPECT_EQ(printed_by_a_copy("cp /bin/true new", "mv new program"), all_names);
}

TEST(Symbols, AreReadFromASeparateFileOfTheSameBuild) {
    EXPECT_EQ(printed_by_a_copy(move_symbols), all_names);
    const std::string there = move_symbols;
    EXPECT_EQ(printed_by_a_copy(there + " && mkdir .debug && mv program.debug .debug"), all_names);
    EXPECT_EQ(printed_by_a_copy(there + " && rm program.debug"), no_names);
    EXPECT_EQ(printed_by_a_copy(there + " && objcopy --remove-section=.note.gnu.build-id "
                                        "program.debug"),
              no_names);
}

/// What a command prints.
std::string output_of(const std::string& command) {
    std::FILE* const out = ::popen((command + " 2>&1").c_str(), "r");
    std::string text;
    std::array<char, 4096> part{};
    while (const std::size_t n = std::fread(part.data(), 1, part.size(), out)) {
        text.append(part.data(), n);
    }
    EXPECT_EQ(::pclose(out), 0) << text;
    return text;
}

TEST(CoilLines, AddsTheLinesOfDefinitions) {
    const std::string program = output_of("readlink /proc/$PPID/exe | tr -d '\\n'");
    // The library may have line numbers even if the tests have none.
    if (output_of("readelf -p .debug_line_str " + program + " 2>&1").find("backtrace_test.cpp") ==
        std::string::npos) {
        GTEST_SKIP() << "this file is built without -g";
    }
    io_context ctx;
    const temporary_directory directory;
    const std::string trace = to_string(run_on(ctx, observed::outermost()));
    const std::string text = "a line\n" + trace + "[else+0x1] and [no entry]\n";
    const std::string name = program.substr(program.rfind('/') + 1);
    const std::string other_name = "libc++-2+3.so";
    const std::string other = directory.path() + '/' + other_name;
    ASSERT_EQ(::symlink(program.c_str(), other.c_str()), 0);
    for (const std::string& file : {program, other}) {
        std::string renamed = text;
        for (auto at = renamed.find('[' + name + '+'); file == other && at != std::string::npos;
             at = renamed.find('[' + name + '+', at)) {
            renamed.replace(at + 1, name.size(), other_name);
        }
        std::ofstream(directory.path() + "/text") << renamed;
        const std::string with_lines =
            output_of("'" COIL_LINES "' " + file + " < " + directory.path() + "/text");
        for (const unsigned line : {observed::innermost_line, observed::innermost_line + 1,
                                    observed::innermost_line + 2}) {
            const auto at = with_lines.find("backtrace_test.cpp:" + std::to_string(line) + "\n");
            EXPECT_NE(at, std::string::npos) << line << '\n' << with_lines;
        }
        EXPECT_TRUE(with_lines.starts_with("a line\n#0 observed::innermost() [")) << with_lines;
        EXPECT_TRUE(with_lines.ends_with("[else+0x1] and [no entry]\n")) << with_lines;
    }
}

/// A library that an update has replaced: the symbols of the new file name other functions.
TEST(Symbols, OfALibraryAreNotReadFromAnotherBuild) {
    ::Dl_info math{};
    ::Dl_info other{};
    double (*const function)(double) = &std::erf;
    ASSERT_NE(::dladdr(reinterpret_cast<const void*>(function), &math), 0);
    ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&::getpid), &other), 0);
    const temporary_directory directory;
    for (const bool is_replaced : {false, true}) {
        const std::string path = directory.path() + (is_replaced ? "/replaced.so" : "/kept.so");
        ASSERT_EQ(std::system(("cp " + std::string(math.dli_fname) + ' ' + path).c_str()), 0);
        void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library, nullptr) << ::dlerror();
        if (is_replaced) {
            const std::string command = "cp " + std::string(other.dli_fname) + ' ' + path +
                                        ".new && mv " + path + ".new " + path;
            ASSERT_EQ(std::system(command.c_str()), 0);
        }
        std::size_t found = 0;
        for (const char* const name : {"erf", "erfc", "cbrt", "lgamma", "tgamma", "nextafter",
                                       "asinh", "logb", "frexp", "j0", "j1", "y0", "y1", "jn"}) {
            const void* const address = ::dlsym(library, name);
            if (address != nullptr && !detail::find_symbol(address).function.empty()) {
                ++found;
            }
        }
        EXPECT_EQ(found > 0, !is_replaced) << found;
        ::dlclose(library);
    }
}

/// What a forked child prints when it fails while another thread of the parent, in `f`, reads a
/// table of symbols. That thread waits at a FIFO, which takes the place of the symbols of a library
/// that calls `f` with the address of its own function.
std::string printed_by_a_child_during(void (*f)(void*)) {
    const temporary_directory directory;
    const std::string command = "cd " + directory.path() +
                                " && cp '" CALLS_BACK "' calls.so && echo > names && "
                                "objcopy --strip-all --add-gnu-debuglink=names calls.so && "
                                "rm names && mkdir .debug && mkfifo names .debug/names";
    EXPECT_EQ(std::system(command.c_str()), 0);
    void* const library = ::dlopen((directory.path() + "/calls.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << ::dlerror();
    const auto calls_back =
        reinterpret_cast<void (*)(void (*)(void*), void*)>(::dlsym(library, "calls_back"));
    std::thread reader([&] { calls_back(f, reinterpret_cast<void*>(calls_back)); });
    // Returns when the thread has opened the FIFO. Then the thread waits for a writer of the next.
    const int first = ::open((directory.path() + "/names").c_str(), O_WRONLY | O_CLOEXEC);
    const std::string text = coil_test::printed_by_the_death_of([] {
        mutex m;
        m.unlock();
    });
    const int next = ::open((directory.path() + "/.debug/names").c_str(), O_WRONLY | O_CLOEXEC);
    reader.join();
    ::close(first);
    ::close(next);
    ::dlclose(library);
    return text;
}

void expect_a_stack(const std::string& text) {
    EXPECT_TRUE(text.starts_with("coil: unlock() of a mutex that is not locked.\n")) << text;
    EXPECT_NE(text.find("\n  stack:\n    #0 "), std::string::npos) << text;
    EXPECT_NE(text.find(" main ["), std::string::npos) << text;
}

TEST(ForkedChild, PrintsAStackWhileSymbolsAreRead) {
    expect_a_stack(printed_by_a_child_during(
        [](void* function) { EXPECT_EQ(detail::find_symbol(function).function, "calls_back"); }));
}

/// In a separate process, whose thread does not print again.
TEST(ForkedChild, PrintsAStackWhileAnotherThreadFails) {
    const std::string text = coil_test::printed_by_the_death_of([] {
        std::fputs(printed_by_a_child_during([](void*) { detail::print_running_task(); }).c_str(),
                   stderr);
        std::abort();
    });
    EXPECT_NE(text.find(" calls_back [calls.so+0x"), std::string::npos) << text;
    const auto of_child = text.find("coil: unlock() ");
    ASSERT_NE(of_child, std::string::npos) << text;
    expect_a_stack(text.substr(of_child));
}

} // namespace
