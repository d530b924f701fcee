// Operations of coil::fs on trees of files, and the lateness of a 1 ms ticker on the same context.
//
//     trees make DIR [SEED [FILES [DIRECTORIES]]]     create a random tree; nothing is measured
//     trees remove DIR
//     trees copy FROM TO
//     trees walk DIR                                  including the sizes of all files
//     trees beside COMMAND...                         a ticking thread without a runtime beside a
//                                                     program: the floor
//
// Prints one line of JSON: wall and CPU time, what was done, and the maximum and 99th percentile of
// the ticker's lateness. With `--still` before the command there is no ticker.

#include <coil/coil.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace coil;
using clock_type = std::chrono::steady_clock;

namespace {

struct outcome {
    std::uintmax_t entries = 0;
    std::uintmax_t bytes = 0;
};

double cpu_seconds() {
    std::timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void make(const std::filesystem::path& top, unsigned seed, unsigned files, unsigned directories) {
    std::mt19937 random(seed);
    struct made {
        std::filesystem::path path;
        int depth;
    };
    std::vector<made> all{{top, 0}};
    std::filesystem::create_directories(top);
    while (all.size() < directories) {
        const made& in = all[random() % all.size()];
        if (in.depth < 8) {
            made next{in.path / ("directory-" + std::to_string(all.size())), in.depth + 1};
            std::filesystem::create_directory(next.path);
            all.push_back(std::move(next));
        }
    }
    std::string content(65536, 'x');
    for (unsigned i = 0; i < files; ++i) {
        const unsigned size = random() % 10 == 0 ? random() % 65537 : random() % 2049;
        std::ofstream(all[random() % all.size()].path / ("file-" + std::to_string(i) + ".txt"),
                      std::ios::binary)
            .write(content.data(), size);
    }
}

task<> tick(std::vector<double>& late_ms) {
    auto due = clock_type::now();
    for (;;) {
        due += std::chrono::milliseconds(1);
        if (co_await sleep_until(due) < 0) { // cancelled
            co_return;
        }
        const auto now = clock_type::now();
        late_ms.push_back(std::chrono::duration<double, std::milli>(now - due).count());
        due = std::max(due, now - std::chrono::milliseconds(1)); // missed ticks are not made up for
    }
}

task<> remove_tree(std::string dir, outcome& o) { o.entries = co_await fs::remove_all(dir); }

task<> walk_tree(std::string dir, outcome& o) {
    auto tree = fs::walk(dir);
    while (auto entry = co_await tree.next()) {
        ++o.entries;
        if (entry->is_regular_file()) {
            o.bytes += co_await entry->file_size();
        }
    }
}

task<> copy_tree(std::string from, std::string to, outcome& o) {
    const fs::copy_progress done = co_await fs::copy_tree(from, to);
    o = {done.entries, done.bytes};
}

void print(double wall, double cpu, const outcome& o, std::vector<double>& late) {
    std::ranges::sort(late);
    std::printf(
        "{\"wall_s\": %.6f, \"cpu_s\": %.6f, \"entries\": %ju, \"bytes\": %ju, \"ticks\": %zu, "
        "\"late_max_ms\": %.3f, \"late_p99_ms\": %.3f, \"late_over_2ms\": %td}\n",
        wall, cpu, o.entries, o.bytes, late.size(), late.empty() ? 0.0 : late.back(),
        late.empty() ? 0.0 : late[late.size() * 99 / 100],
        late.end() - std::ranges::upper_bound(late, 2.0));
}

task<> measured(task<> what, bool still, outcome& o) {
    std::vector<double> late;
    late.reserve(100'000);
    scope ticking;
    if (!still) {
        ticking.spawn(tick(late));
        co_await sleep_for(std::chrono::milliseconds(5));
        late.clear();
    }
    const double cpu = cpu_seconds();
    const auto begin = clock_type::now();
    co_await std::move(what);
    const double wall = std::chrono::duration<double>(clock_type::now() - begin).count();
    const double used = cpu_seconds() - cpu;
    print(wall, used, o, late);
    ticking.cancel();
    co_await ticking.join();
}

int beside(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& word : command) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    std::atomic<bool> over{false};
    std::vector<double> late;
    late.reserve(100'000);
    std::thread ticking([&] {
        auto due = clock_type::now();
        while (!over.load(std::memory_order_relaxed)) {
            due += std::chrono::milliseconds(1);
            std::this_thread::sleep_until(due);
            const auto now = clock_type::now();
            late.push_back(std::chrono::duration<double, std::milli>(now - due).count());
            due = std::max(due, now - std::chrono::milliseconds(1));
        }
    });
    const auto begin = clock_type::now();
    ::pid_t child = 0;
    int status = ::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ);
    ::rusage used{};
    if (status == 0) {
        ::wait4(child, &status, 0, &used);
    }
    const double wall = std::chrono::duration<double>(clock_type::now() - begin).count();
    over = true;
    ticking.join();
    const auto seconds = [](const ::timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    print(wall, seconds(used.ru_utime) + seconds(used.ru_stime), {}, late);
    return status == 0 ? 0 : 1;
}

unsigned number(const std::vector<std::string>& words, std::size_t i, unsigned otherwise) {
    return i < words.size() ? static_cast<unsigned>(std::strtoul(words[i].c_str(), nullptr, 10))
                            : otherwise;
}

} // namespace

int main(int argc, char** argv) try {
    std::vector<std::string> words(argv + 1, argv + argc);
    const bool still = !words.empty() && words[0] == "--still";
    if (still) {
        words.erase(words.begin());
    }
    outcome o;
    const std::string what = words.empty() ? "" : words[0];
    if (what == "make" && words.size() >= 2) {
        make(words[1], number(words, 2, 1), number(words, 3, 100'000), number(words, 4, 2000));
    } else if (what == "remove" && words.size() == 2) {
        coil::run(measured(remove_tree(words[1], o), still, o));
    } else if (what == "walk" && words.size() == 2) {
        coil::run(measured(walk_tree(words[1], o), still, o));
    } else if (what == "copy" && words.size() == 3) {
        coil::run(measured(copy_tree(words[1], words[2], o), still, o));
    } else if (what == "beside" && words.size() > 1) {
        return beside({words.begin() + 1, words.end()});
    } else {
        std::fprintf(stderr, "usage: trees [--still] make|remove|copy|walk|beside ...\n");
        return 2;
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "trees: %s\n", e.what());
    return 1;
}
