// coil::yield() in a run_loop when memory runs out. This program replaces mmap(), with which the
// frame allocator allocates memory.

#include "support/run.hpp"

#include <coil/core/detail/frame_allocator.hpp>

#include <atomic>
#include <cerrno>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if COIL_SANITIZED

TEST(RunLoopMemory, RunsOnlyWithoutSanitizers) {
    GTEST_SKIP() << "with sanitizers, frames come from operator new";
}

#else

using namespace coil;

namespace {

std::atomic<bool> out_of_memory = false;

} // namespace

extern "C" void* mmap(void* at, std::size_t size, int access, int flags, int fd,
                      ::off_t offset) noexcept {
    if (out_of_memory) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, access, flags, fd, offset));
}

namespace {

/// While it exists, memory for small frames cannot be allocated on this thread.
class exhausted_memory {
public:
    exhausted_memory() {
        taken_.reserve(1'000'000);
        out_of_memory = true;
        for (std::size_t size = 16; size <= 128; size += 16) {
            try {
                for (;;) {
                    taken_.emplace_back(detail::allocate_frame(size), size);
                }
            } catch (const std::bad_alloc&) { // none of this size is left
            }
        }
    }
    ~exhausted_memory() {
        out_of_memory = false;
        for (const auto& [frame, size] : taken_) {
            detail::deallocate_frame(frame, size);
        }
    }
    exhausted_memory(const exhausted_memory&) = delete;
    exhausted_memory& operator=(const exhausted_memory&) = delete;

private:
    std::vector<std::pair<void*, std::size_t>> taken_;
};

task<> takes_turns(std::string& out, char name, int turns) {
    for (int i = 0; i < turns; ++i) {
        out += name;
        co_await yield();
    }
}

TEST(RunLoopMemory, ACoroutineWithoutMemoryForItsTurnContinues) {
    std::string out;
    run_loop loop;
    loop.spawn([](std::string& into) -> task<> {
        {
            const exhausted_memory none;
            for (int i = 0; i < 3; ++i) {
                into += 'a';
                co_await yield();
            }
        }
        into += 'A';
        co_await yield();
        into += 'A';
    }(out));
    loop.spawn(takes_turns(out, 'b', 2));
    loop.run();
    EXPECT_EQ(out, "aaaAbAb");
}

TEST(RunLoopMemory, ManyCoroutinesWithoutMemoryDoNotUseUpTheStack) {
    constexpr int turns = 100'000;
    std::atomic<int> count = 0;
    run_loop loop;
    loop.spawn([](std::atomic<int>& counted) -> task<> {
        const exhausted_memory none;
        while (++counted < turns) {
            co_await yield();
            counted.notify_one();
        }
    }(count));
    std::thread frees([&] {
        while (count < 100) {
            count.wait(count);
        }
        out_of_memory = false;
    });
    loop.run();
    frees.join();
    EXPECT_EQ(count, turns);
}

} // namespace

#endif
