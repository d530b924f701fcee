// The frame allocator: sizes, reuse, other threads, and memory returned to the system.

#include "support/run.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace coil::detail;

namespace {

/// A frame that verifies its contents, so that overlapping frames are noticed.
class frame {
public:
    frame(std::size_t bytes, unsigned char fill)
        : memory_(static_cast<unsigned char*>(allocate_frame(bytes))), bytes_(bytes), fill_(fill) {
        std::memset(memory_, fill, bytes);
    }
    frame(frame&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_), fill_(other.fill_) {
    }
    frame& operator=(frame&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
        std::swap(fill_, other.fill_);
        return *this;
    }
    ~frame() {
        if (memory_ != nullptr) {
            EXPECT_TRUE(intact());
            deallocate_frame(memory_, bytes_);
        }
    }

    [[nodiscard]] bool intact() const {
        for (std::size_t i = 0; i < bytes_; ++i) {
            if (memory_[i] != fill_) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] std::uintptr_t address() const {
        return reinterpret_cast<std::uintptr_t>(memory_);
    }

private:
    unsigned char* memory_;
    std::size_t bytes_;
    unsigned char fill_;
};

std::size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t total = 0;
    std::size_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(FrameAllocator, SizesAroundEachClassBoundaryAreAlignedAndWritable) {
    std::vector<frame> frames;
    std::vector<std::size_t> sizes{1, 2, 63};
    for (std::size_t edge = 64; edge <= largest_pooled_frame; edge += 64) {
        sizes.insert(sizes.end(), {edge - 1, edge, edge + 1});
    }
    sizes.insert(sizes.end(), {largest_pooled_frame + 64, 100'000, 1'000'000});
    unsigned char fill = 0;
    for (const std::size_t size : sizes) {
        frames.emplace_back(size, ++fill);
        ASSERT_EQ(frames.back().address() % frame_alignment, 0U) << size;
    }
}

TEST(FrameAllocator, ManyFramesOfOneSizeDoNotOverlap) {
    std::vector<frame> frames;
    std::set<std::uintptr_t> addresses;
    for (int i = 0; i < 20'000; ++i) {
        frames.emplace_back(200, static_cast<unsigned char>(i));
        ASSERT_TRUE(addresses.insert(frames.back().address()).second);
    }
}

TEST(FrameAllocator, AFreedFrameIsReusedNext) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitized builds do not pool frames";
    }
    void* const first = allocate_frame(300);
    deallocate_frame(first, 300);
    void* const second = allocate_frame(290); // of the same class
    EXPECT_EQ(first, second);
    deallocate_frame(second, 290);
}

// The pool exchanges frames in batches, so sawtooth patterns of many heights produce many
// combinations of full and partly used spans.
TEST(FrameAllocator, SawtoothPatternsDoNotMakeFramesOverlap) {
    for (const std::size_t size : {64U, 192U, 1024U, 4096U, 8128U, 16384U}) {
        std::vector<frame> frames;
        const std::size_t most = (std::size_t{3} << 20) / size;
        for (std::size_t height = 1; height <= most; height += 1 + height / 8) {
            while (frames.size() < height) {
                frames.emplace_back(size, static_cast<unsigned char>(frames.size()));
            }
            while (frames.size() > height / 3) {
                frames.pop_back();
            }
        }
    }
}

TEST(FrameAllocator, BatchesThatExactlyEmptyASpan) {
    // One thread allocates, others free: each thread returns exactly one batch, and the next
    // allocations take exactly that batch, so that spans alternate between full and not full.
    for (const std::size_t size : {512U, 4096U, 8128U}) {
        std::vector<frame> held;
        for (std::size_t i = 0; i < 4 * (std::size_t{256} << 10) / size; ++i) {
            held.emplace_back(size, static_cast<unsigned char>(i));
        }
        for (int round = 0; round < 50; ++round) {
            std::vector<frame> gone;
            for (int i = 0; i < 32; ++i) {
                const std::size_t from = static_cast<std::size_t>(i) % held.size();
                gone.push_back(std::move(held[from]));
                held[from] = std::move(held.back());
                held.pop_back();
            }
            // The thread returns all of them to the pool when it exits.
            std::thread([&] { gone.clear(); }).join();
            for (int i = 0; i < 32; ++i) {
                held.emplace_back(size, static_cast<unsigned char>(i));
            }
        }
    }
}

TEST(FrameAllocator, FramesMayBeFreedOnAnotherThread) {
    std::vector<frame> frames;
    for (int i = 0; i < 5000; ++i) {
        frames.emplace_back(64U + static_cast<std::size_t>(i) % 2000,
                            static_cast<unsigned char>(i));
    }
    std::thread([&] { frames.clear(); }).join();
    for (int i = 0; i < 5000; ++i) {
        frames.emplace_back(64U + static_cast<std::size_t>(i) % 2000,
                            static_cast<unsigned char>(i));
    }
}

TEST(FrameAllocator, ThreadsExchangeFramesInRandomOrder) {
    constexpr int threads = 3;
    std::mutex mutex;
    std::vector<frame> exchange;
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
            std::mt19937 random(t);
            std::vector<frame> mine;
            for (int i = 0; i < coil_test::rounds(20'000, 500'000); ++i) {
                const std::size_t size = 64U << random() % 5;
                if (mine.size() < 300 || random() % 2 == 0) {
                    mine.emplace_back(size, static_cast<unsigned char>(random()));
                }
                if (random() % 3 == 0 && !mine.empty()) {
                    std::swap(mine[random() % mine.size()], mine.back());
                    mine.pop_back();
                }
                if (random() % 64 == 0) {
                    const std::scoped_lock lock(mutex);
                    std::swap(mine, exchange);
                }
            }
        });
    }
    for (auto& w : workers) {
        w.join();
    }
}

TEST(FrameAllocator, MemoryOfAPeakIsReturnedToTheSystem) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitized builds allocate frames with the sanitizer's allocator";
    }
    const std::size_t before = resident_bytes();
    {
        std::vector<frame> frames;
        frames.reserve(100'000);
        for (int i = 0; i < 100'000; ++i) {
            frames.emplace_back(1024, 1);
        }
        EXPECT_GT(resident_bytes(), before + (std::size_t{95} << 20));
    }
    EXPECT_LT(resident_bytes(), before + (std::size_t{8} << 20));
}

TEST(FrameAllocator, AnExitingThreadReturnsItsCache) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitized builds allocate frames with the sanitizer's allocator";
    }
    auto churn = [] {
        std::vector<frame> frames;
        for (int i = 0; i < 200; ++i) {
            frames.emplace_back(1024, 1);
        }
    };
    std::thread(churn).join();
    const std::size_t before = resident_bytes();
    for (int i = 0; i < 100; ++i) {
        std::thread(churn).join();
    }
    EXPECT_LT(resident_bytes(), before + (std::size_t{4} << 20));
}

} // namespace
