// Random reads with a pool of threads that block in pread(2), dispatched and collected by one
// thread: what is possible without io_uring. Options: see workload.h; the environment variable
// THREADS (four times the number of processors, 8 to 64).

#include "workload.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

struct job {
    char* buffer;
    std::uint64_t offset;
    int result;
};

struct pool {
    std::mutex guard;
    std::condition_variable work;
    std::condition_variable done;
    std::vector<job*> queued;
    std::vector<job*> finished;
    bool ending = false;
    bool waiting = false;

    void serve(int fd) {
        std::unique_lock lock(guard);
        for (;;) {
            work.wait(lock, [this] { return ending || !queued.empty(); });
            if (queued.empty()) {
                return;
            }
            job* const j = queued.back();
            queued.pop_back();
            lock.unlock();
            const auto n = ::pread(fd, j->buffer, READ_SIZE, static_cast<::off_t>(j->offset));
            j->result = n < 0 ? -errno : static_cast<int>(n);
            lock.lock();
            finished.push_back(j);
            if (waiting) {
                done.notify_one();
            }
        }
    }
};

} // namespace

int main(int argc, char** argv) {
    workload work;
    workload_open(&work, argc, argv);
    if (work.registered) {
        workload_refuse(&work, "a pool of threads does not support registered files and buffers");
    }
    const char* const wanted = std::getenv("THREADS");
    const unsigned count = wanted != nullptr
                               ? static_cast<unsigned>(std::atoi(wanted))
                               : std::clamp(4 * std::thread::hardware_concurrency(), 8U, 64U);
    pool p;
    std::vector<std::thread> threads;
    threads.reserve(count);
    for (unsigned i = 0; i < count; ++i) {
        threads.emplace_back([&] { p.serve(work.fd); });
    }
    std::vector<job> jobs(work.depth);

    workload_begin(&work);
    std::vector<job*> mine;
    unsigned under_way = 0;
    for (unsigned slot = 0; slot < work.depth && work.left > 0; ++slot) {
        jobs[slot] = {workload_buffer(&work, slot), workload_next_offset(&work), 0};
        mine.push_back(&jobs[slot]);
    }
    while (!mine.empty() || under_way != 0) {
        {
            std::unique_lock lock(p.guard);
            for (job* j : mine) {
                p.queued.push_back(j);
                p.work.notify_one();
            }
            under_way += static_cast<unsigned>(mine.size());
            mine.clear();
            p.waiting = true;
            p.done.wait(lock, [&] { return !p.finished.empty(); });
            p.waiting = false;
            mine.swap(p.finished);
        }
        under_way -= static_cast<unsigned>(mine.size());
        std::vector<job*> next;
        for (job* j : mine) {
            workload_took(&work, j->buffer, j->result);
            if (work.left > 0) {
                j->offset = workload_next_offset(&work);
                next.push_back(j);
            }
        }
        mine.swap(next);
    }
    const int code = workload_end(&work, 0, "a pool of threads");
    {
        const std::scoped_lock lock(p.guard);
        p.ending = true;
    }
    p.work.notify_all();
    for (std::thread& t : threads) {
        t.join();
    }
    return code;
}
