#include <coil/context/processors.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include <sched.h>

namespace coil {

namespace detail {

namespace {

/// ceil(quota / period); 0 when there is no quota.
unsigned processors_for(double quota, double period) {
    if (!(quota > 0) || !(period > 0)) {
        return 0;
    }
    const double processors = quota / period;
    const auto whole = static_cast<unsigned>(processors);
    return std::max(whole + (processors > whole ? 1U : 0U), 1U);
}

unsigned smaller(unsigned a, unsigned b) { return a == 0 || b == 0 ? a + b : std::min(a, b); }

/// cgroup v2: "max 100000" or "150000 100000".
unsigned quota_v2(const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0;
    double period = 0;
    return file >> quota >> period ? processors_for(quota, period) : 0;
}

/// cgroup v1: two files, -1 for no quota.
unsigned quota_v1(const std::string& folder) {
    std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
    std::ifstream period_file(folder + "/cpu.cfs_period_us");
    double quota = 0;
    double period = 0;
    return quota_file >> quota && period_file >> period ? processors_for(quota, period) : 0;
}

/// Whether the comma-separated list contains "cpu".
bool names_cpu(const std::string& controllers) {
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
        if (name == "cpu") {
            return true;
        }
    }
    return false;
}

/// The smallest quota on the way from `path` up to `root`.
template <class Quota>
unsigned smallest_quota(const std::string& root, std::string path, Quota quota_of) {
    unsigned smallest = 0;
    while (path.starts_with('/') && path.size() > 1) {
        smallest = smaller(smallest, quota_of(root + path));
        path.erase(path.find_last_of('/'));
    }
    return smaller(smallest, quota_of(root));
}

} // namespace

std::vector<int> allowed_processors() {
    std::vector<int> allowed;
    // The kernel refuses a set that is smaller than its own.
    for (int most = 1024; most <= 1 << 20; most *= 2) {
        cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(most));
        if (set == nullptr) {
            break;
        }
        const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
        CPU_ZERO_S(bytes, set);
        const bool known = ::sched_getaffinity(0, bytes, set) == 0;
        for (int i = 0; known && i < most; ++i) {
            if (CPU_ISSET_S(static_cast<unsigned>(i), bytes, set)) {
                allowed.push_back(i);
            }
        }
        CPU_FREE(set);
        if (known) {
            break;
        }
    }
    if (allowed.empty()) {
        const int count = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
        for (int i = 0; i < count; ++i) {
            allowed.push_back(i);
        }
    }
    return allowed;
}

unsigned quota_in_processors(const std::string& root, const std::string& membership) {
    const std::string folder = root + "/";
    unsigned quota = 0;
    std::istringstream lines(membership);
    for (std::string line; std::getline(lines, line);) {
        // "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1)
        const auto first = line.find(':');
        const auto second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (controllers.empty()) {
            quota = smaller(quota, smallest_quota(root, path, quota_v2));
        } else if (names_cpu(controllers)) {
            // The hierarchy may be mounted under either name.
            for (const std::string& mount : {controllers, std::string("cpu")}) {
                quota = smaller(quota, smallest_quota(folder + mount, path, quota_v1));
            }
        }
    }
    return quota;
}

} // namespace detail

unsigned usable_processors() {
    const auto allowed = static_cast<unsigned>(detail::allowed_processors().size());
    std::ifstream file("/proc/self/cgroup");
    std::ostringstream membership;
    membership << file.rdbuf();
    const unsigned quota = detail::quota_in_processors("/sys/fs/cgroup", membership.str());
    return quota == 0 ? allowed : std::min(allowed, quota);
}

} // namespace coil
