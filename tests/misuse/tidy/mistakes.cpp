// Mistakes that the checks of tools/clang-tidy/coil.clang-tidy find. The line behind "// finds
// CHECK" must be reported by that check, and no other line by any. tests/misuse/clang_tidy.sh runs
// clang-tidy on this file.

#include <coil/coil.hpp>

#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

using namespace coil;

std::mutex lock;
std::shared_mutex shared_lock;
task<> work();

// mistake 3: a lambda with captures is a coroutine
task<> captures(std::string name) {
    // finds cppcoreguidelines-avoid-capturing-lambda-coroutines
    auto greet = [name]() -> task<> { co_await io::write(1, name); };
    co_await greet();
}

task<> passes(std::string name) {
    auto greet = [](std::string text) -> task<> { co_await io::write(1, text); };
    co_await greet(std::move(name));
}

// mistake 4: a coroutine has a parameter that is a reference
// finds cppcoreguidelines-avoid-reference-coroutine-parameters
task<> refers(const std::string& name) { co_await io::write(1, name); }

task<> takes(std::string name) { co_await io::write(1, name); }

// mistake 7: a task is used after it was moved from
task<> moved() {
    auto t = work();
    co_spawn(std::move(t));
    // finds bugprone-use-after-move
    co_await std::move(t);
}

// mistake 8: a std::lock_guard lives across an await
task<> locks() {
    // finds misc-coroutine-hostile-raii
    const std::lock_guard guard(lock);
    co_await work();
}

// mistake 8: a std::unique_lock lives across an await
task<> locks_uniquely() {
    // finds misc-coroutine-hostile-raii
    const std::unique_lock guard(lock);
    co_await work();
}

// mistake 8: a std::shared_lock lives across an await
task<> locks_shared() {
    // finds misc-coroutine-hostile-raii
    const std::shared_lock guard(shared_lock);
    co_await work();
}

task<> locks_two(std::mutex* other) {
    // finds misc-coroutine-hostile-raii
    const std::scoped_lock guard(lock, *other);
    co_await work();
}

task<> unlocks_first() {
    {
        const std::lock_guard guard(lock);
    }
    co_await work();
}

task<> locks_for_coroutines(mutex* m) {
    const auto guard = co_await m->lock_guard();
    co_await work();
}

task<> does_not_suspend() {
    const std::scoped_lock guard(shared_lock);
    (void)co_await this_task::stop_token();
    (void)co_await this_task::deadline();
}

// mistake 21: a result is assigned or added to a std::string
task<> converts_to_a_char(fs::file* f, std::string text) {
    std::string buf(100, '\0');
    // finds bugprone-string-integer-assignment
    text = co_await f->read(buf);
    // finds bugprone-string-integer-assignment
    text += co_await f->read(buf);
    const int n = co_await f->read(buf);
    text.assign(buf, 0, static_cast<std::size_t>(n));
}
