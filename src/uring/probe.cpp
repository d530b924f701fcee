#include <coil/uring/prep.hpp>
#include <coil/uring/probe.hpp>
#include <coil/uring/ring.hpp>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include <sys/resource.h>

namespace coil::uring {
namespace {

// The number in /proc/sys/kernel/io_uring_disabled, or -1 if the file does not exist (before Linux
// 6.6).
int disabled_setting() noexcept {
    int value = -1;
    if (std::FILE* f = std::fopen("/proc/sys/kernel/io_uring_disabled", "re")) {
        if (const int digit = std::fgetc(f); digit >= '0' && digit <= '9') {
            value = digit - '0';
        }
        std::fclose(f);
    }
    return value;
}

template <class Resource>
std::string limit_text(Resource resource, ::rlim_t unit) {
    ::rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) {
        return "unknown";
    }
    if (limit.rlim_cur == RLIM_INFINITY) {
        return "unlimited";
    }
    return std::to_string(limit.rlim_cur / unit);
}

} // namespace

probe_result probe_opcodes(backend& k) noexcept {
    probe answer{};
    if (k.do_register(register_op::probe, &answer, 256) < 0) {
        return {};
    }
    return probe_result{answer};
}

std::string explain_setup_error(int error) {
    switch (error) {
    case EPERM:
        switch (disabled_setting()) {
        case 2:
            return "io_uring is disabled for all processes: sysctl kernel.io_uring_disabled is 2; "
                   "set it to 0 to enable it";
        case 1:
            return "io_uring is restricted to privileged processes: sysctl "
                   "kernel.io_uring_disabled is 1; set it to 0, or join the group named by "
                   "sysctl kernel.io_uring_group";
        default:
            return "io_uring is blocked, most likely by the default seccomp profile of a "
                   "container runtime: allow io_uring_setup, io_uring_enter and "
                   "io_uring_register in the profile";
        }
    case ENOSYS:
        return "this system has no io_uring: the kernel is older than Linux 5.1 or built without "
               "it, or a sandbox (seccomp, gVisor) hides it";
    case ENOMEM:
        return "not enough memory for the ring: use fewer or smaller rings; before Linux 5.12, "
               "all rings of a user share RLIMIT_MEMLOCK, which is " +
               limit_text(RLIMIT_MEMLOCK, 1024) + " KiB (ulimit -l)";
    case EMFILE:
        return "no file descriptor is available for the ring: RLIMIT_NOFILE is " +
               limit_text(RLIMIT_NOFILE, 1) + " (ulimit -n)";
    case ENFILE:
        return "no file descriptor is available in the whole system (sysctl fs.file-max)";
    case EINVAL:
        return "the kernel refused the ring's size or required flags: they are not supported, or "
               "they conflict";
    case EACCES:
        return "the kernel or a security module denied this process the use of io_uring";
    default:
        return "io_uring_setup failed";
    }
}

availability available() {
    availability a;
    try {
        ring r{2};
        sqe* s = r.acquire();
        *s = prep::nop();
        s->user_data = 1;
        r.commit(s);
        int error = r.submit_and_wait(1);
        while (error == -EINTR) {
            error = r.submit_and_wait(1);
        }
        if (const cqe* c = r.peek(); error < 0 || c == nullptr || c->user_data != 1) {
            a.error = error < 0 ? -error : EIO;
            a.reason = "io_uring_setup succeeded but io_uring_enter failed: " +
                       std::generic_category().message(a.error);
            return a;
        }
        r.advance();
        a.usable = true;
        a.reason = "io_uring is available";
        a.features = r.features();
        a.setup_flags = r.setup_flags();
        a.opcodes = r.opcodes();
        a.kernel = query_kernel(r.get_backend());
    } catch (const std::system_error& e) {
        a.error = e.code().value();
        a.reason = e.what();
    }
    return a;
}

} // namespace coil::uring
