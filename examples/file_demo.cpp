// The purpose of an asynchronous file library on one page:
//
//     file_demo           in the current directory
//     file_demo /tmp
//
// One coroutine creates dir1/a/b/c, checks that it exists, removes it and checks again, and prints
// each step. While this coroutine waits for its first result, another one runs, which calls the
// plain function hello() by asyncify(). Of the created directories, only dir1/a/b/c is removed.

#include <coil/coil.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>

using namespace coil;

namespace {

void before(const char* what) { std::printf("[AWAIT] Before: %s\n", what); }
void after(const char* what, bool answer) {
    std::printf("[AWAIT] After: %s: %s\n", what, answer ? "true" : "false");
}

task<> make_and_remove(fs::path directory) {
    before("createDirectories");
    const bool made = co_await fs::create_directories(directory);
    after("createDirectories", made);

    before("exists1");
    const bool there = co_await fs::exists(directory);
    after("exists1", there);

    before("removeAll");
    const std::uintmax_t removed = co_await fs::remove_all(directory);
    std::printf("[AWAIT] After: removeAll: %ju\n", removed);

    before("exists2");
    const bool still_there = co_await fs::exists(directory);
    after("exists2", still_there);
}

void hello() { std::puts("<HELLO>"); }

task<> say_hello() { co_await asyncify(hello); }

} // namespace

int main(int argc, char** argv) try {
    if (argc > 2) {
        std::fprintf(stderr, "usage: file_demo [DIRECTORY]\n");
        return 2;
    }
    const fs::path where = argc > 1 ? argv[1] : "";
    io_context context;
    auto files = context.spawn(make_and_remove(where / "dir1/a/b/c"));
    context.co_spawn(say_hello());
    context.run();
    files.get();
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "file_demo: %s\n", e.what());
    return 1;
}
