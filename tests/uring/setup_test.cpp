#include "support.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

// Setting up a ring: flags granted and dropped, sizes that shrink, refusals explained.

namespace uring_test {
namespace {

using SetupOnIoUring = with_io_uring;

/// A kernel that supports only these setup flags.
std::unique_ptr<filter_backend> kernel_knowing(std::uint32_t flags,
                                               std::vector<std::uint32_t>* tried = nullptr) {
    auto k = std::make_unique<filter_backend>(std::make_unique<memory_backend>());
    k->refuse_setup = [=](unsigned, const params& p) {
        if (tried != nullptr) {
            tried->push_back(p.flags);
        }
        return (p.flags & ~flags) != 0 ? -EINVAL : 0;
    };
    return k;
}

constexpr std::uint32_t up_to_5_15 = setup::iopoll | setup::sqpoll | setup::sq_aff | setup::cqsize |
                                     setup::clamp | setup::attach_wq | setup::r_disabled;
constexpr std::uint32_t up_to_5_19 =
    up_to_5_15 | setup::submit_all | setup::coop_taskrun | setup::taskrun_flag;
constexpr std::uint32_t up_to_6_0 = up_to_5_19 | setup::single_issuer;

TEST(Setup, DropsOnlyTheFlagsThatAnOlderBackendLacks) {
    EXPECT_EQ(ring(ring_options{}, kernel_knowing(~0U)).setup_flags(), default_setup_flags);
    EXPECT_EQ(ring(ring_options{}, kernel_knowing(up_to_6_0)).setup_flags(),
              default_setup_flags & ~setup::defer_taskrun);
    EXPECT_EQ(ring(ring_options{}, kernel_knowing(up_to_5_19)).setup_flags(),
              setup::clamp | setup::submit_all | setup::coop_taskrun | setup::taskrun_flag);
    EXPECT_EQ(ring(ring_options{}, kernel_knowing(up_to_5_15)).setup_flags(), setup::clamp);
    EXPECT_EQ(ring(ring_options{}, kernel_knowing(0)).setup_flags(), 0U);
}

TEST(Setup, DropsFlagsOneByOneInTheDocumentedOrder) {
    std::vector<std::uint32_t> tried;
    ring_options options;
    options.setup_flags =
        default_setup_flags | setup::attach_wq | setup::iopoll | setup::hybrid_iopoll;
    const ring r{options, kernel_knowing(0, &tried)};
    std::vector<std::uint32_t> given_up;
    for (std::size_t i = 1; i < tried.size(); ++i) {
        given_up.push_back(tried[i - 1] & ~tried[i]);
    }
    EXPECT_EQ(given_up, (std::vector<std::uint32_t>{
                            setup::hybrid_iopoll, setup::defer_taskrun, setup::single_issuer,
                            setup::taskrun_flag, setup::coop_taskrun, setup::submit_all,
                            setup::attach_wq, setup::iopoll, setup::clamp}));
}

TEST(Setup, RequiredFlagsAreNeverDropped) {
    std::vector<std::uint32_t> tried;
    ring_options options;
    options.required_flags = setup::single_issuer;
    try {
        const ring r{options, kernel_knowing(up_to_5_19, &tried)};
        FAIL() << "granted " << r.setup_flags();
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::invalid_argument);
        EXPECT_NE(std::string(e.what()).find("flags"), std::string::npos) << e.what();
    }
    ASSERT_FALSE(tried.empty());
    EXPECT_EQ(tried.back(), setup::single_issuer);
}

TEST(Setup, ConflictingFlagsAreResolvedBeforeTheFirstAttempt) {
    std::vector<std::uint32_t> tried;
    ring_options options;
    options.setup_flags = default_setup_flags | setup::sqpoll;
    const ring polled{options, kernel_knowing(~0U, &tried)};
    EXPECT_EQ(tried, (std::vector<std::uint32_t>{setup::clamp | setup::submit_all |
                                                 setup::single_issuer | setup::sqpoll}));
    tried.clear();
    options.setup_flags = setup::defer_taskrun | setup::taskrun_flag | setup::sq_aff;
    const ring plain{options, kernel_knowing(~0U, &tried)};
    EXPECT_EQ(tried, (std::vector<std::uint32_t>{0}));
}

TEST(Setup, OptionsReachTheBackend) {
    auto k = std::make_unique<filter_backend>(std::make_unique<memory_backend>());
    params seen{};
    unsigned entries = 0;
    k->refuse_setup = [&](unsigned n, const params& p) {
        entries = n;
        seen = p;
        return 0;
    };
    ring_options options;
    options.entries = 5;
    options.cq_entries = 64;
    options.setup_flags = setup::sqpoll | setup::sq_aff | setup::attach_wq;
    options.sq_thread_cpu = 1;
    options.sq_thread_idle = 7;
    options.wq_fd = 9;
    options.start_disabled = true;
    const ring r{options, std::move(k)};
    EXPECT_EQ(entries, 5U);
    EXPECT_EQ(seen.cq_entries, 64U);
    EXPECT_EQ(seen.sq_thread_cpu, 1U);
    EXPECT_EQ(seen.sq_thread_idle, 7U);
    EXPECT_EQ(seen.wq_fd, 9U);
    EXPECT_EQ(seen.flags,
              setup::sqpoll | setup::sq_aff | setup::attach_wq | setup::cqsize | setup::r_disabled);
    EXPECT_EQ(r.sq_entries(), 8U);
    EXPECT_EQ(r.cq_entries(), 64U);
}

TEST(Setup, ARingFromParamsHasExactlyTheseParams) {
    auto k = std::make_unique<filter_backend>(std::make_unique<memory_backend>());
    params seen{};
    k->refuse_setup = [&](unsigned, const params& p) {
        seen = p;
        return 0;
    };
    params p{};
    p.flags = setup::coop_taskrun | setup::cqsize;
    p.cq_entries = 32;
    const ring r{4, p, std::move(k)};
    EXPECT_EQ(seen.flags, p.flags);
    EXPECT_EQ(r.setup_flags(), p.flags);
    EXPECT_EQ(r.sq_entries(), 4U);
    EXPECT_EQ(r.cq_entries(), 32U);
    EXPECT_THROW(ring(4, p, kernel_knowing(up_to_5_15)), std::system_error);
}

TEST(Setup, G6_TooLittleMemoryHalvesTheQueuesUntilItIsEnough) {
    auto k = std::make_unique<filter_backend>(std::make_unique<memory_backend>());
    std::vector<std::pair<unsigned, unsigned>> tried;
    k->refuse_setup = [&](unsigned n, const params& p) {
        tried.emplace_back(n, p.cq_entries);
        return n > 64 ? -ENOMEM : 0;
    };
    ring_options options;
    options.entries = 512;
    options.cq_entries = 4096;
    const ring r{options, std::move(k)};
    EXPECT_EQ(r.sq_entries(), 64U);
    EXPECT_EQ(r.cq_entries(), 512U);
    EXPECT_EQ(tried, (std::vector<std::pair<unsigned, unsigned>>{
                         {512, 4096}, {256, 2048}, {128, 1024}, {64, 512}}));
}

TEST(Setup, G6_MemoryThatIsNeverEnoughIsExplained) {
    auto k = std::make_unique<filter_backend>(std::make_unique<memory_backend>());
    unsigned least = ~0U;
    k->refuse_setup = [&](unsigned n, const params&) {
        least = n;
        return -ENOMEM;
    };
    try {
        const ring r{ring_options{}, std::move(k)};
        FAIL();
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::not_enough_memory);
        EXPECT_NE(std::string(e.what()).find("RLIMIT_MEMLOCK"), std::string::npos) << e.what();
    }
    EXPECT_EQ(least, 8U);
}

TEST(Setup, ARingOfOneEntryIsNotAskedToShrink) {
    auto k = std::make_unique<filter_backend>(std::make_unique<memory_backend>());
    int tries = 0;
    k->refuse_setup = [&](unsigned, const params&) {
        ++tries;
        return -ENOMEM;
    };
    ring_options options;
    options.entries = 1;
    EXPECT_THROW(ring(options, std::move(k)), std::system_error);
    EXPECT_EQ(tries, 1);
}

TEST(Setup, G11_RefusalsNameCauseAndRemedy) {
    const auto message = [](int error) {
        auto k = std::make_unique<filter_backend>(std::make_unique<memory_backend>());
        k->refuse_setup = [=](unsigned, const params&) { return -error; };
        try {
            const ring r{ring_options{}, std::move(k)};
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::error_code(error, std::generic_category()));
            return std::string(e.what());
        }
        ADD_FAILURE() << "no exception for errno " << error;
        return std::string();
    };
    const auto has = [](const std::string& text, const char* word) {
        return text.find(word) != std::string::npos;
    };
    const std::string eperm = message(EPERM);
    EXPECT_TRUE(has(eperm, "seccomp") || has(eperm, "kernel.io_uring_disabled")) << eperm;
    EXPECT_TRUE(has(message(ENOSYS), "older than Linux 5.1")) << message(ENOSYS);
    EXPECT_TRUE(has(message(EMFILE), "RLIMIT_NOFILE")) << message(EMFILE);
    EXPECT_TRUE(has(message(ENFILE), "fs.file-max")) << message(ENFILE);
    EXPECT_TRUE(has(message(EIO), "io_uring_setup failed")) << message(EIO);
}

TEST(Setup, ABackendWithoutTheFeaturesReliedOnIsRefused) {
    auto k = std::make_unique<filter_backend>(std::make_unique<memory_backend>());
    k->after_setup = [](params& p) { p.features &= ~feature::ext_arg; };
    try {
        const ring r{ring_options{}, std::move(k)};
        FAIL();
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::function_not_supported);
        EXPECT_NE(std::string(e.what()).find("5.11"), std::string::npos) << e.what();
    }
}

TEST(Setup, UnsupportedLayoutsAreRefused) {
    for (const std::uint32_t flag : {setup::sqe128, setup::cqe32, setup::cqe_mixed, setup::no_mmap,
                                     setup::registered_fd_only, setup::no_sqarray}) {
        ring_options options;
        options.setup_flags = flag;
        EXPECT_THROW(ring(options, std::make_unique<memory_backend>()), std::system_error) << flag;
        options.setup_flags = 0;
        options.required_flags = flag;
        EXPECT_THROW(ring(options, std::make_unique<memory_backend>()), std::system_error) << flag;
    }
    ring_options none;
    none.entries = 0;
    EXPECT_THROW(ring(none, std::make_unique<memory_backend>()), std::system_error);
}

TEST(Setup, ABackendThatCannotBeProbedSupportsNothing) {
    const ring r{ring_options{}, std::make_unique<memory_backend>()};
    EXPECT_EQ(r.opcodes().count(), 0U);
    EXPECT_FALSE(r.supports(opcode::nop));
}

// ---- the running kernel

TEST_F(SetupOnIoUring, GrantsAllDefaultFlagsOnLinux61AndNewer) {
    COIL_SKIP_ON_EPOLL("it has another name");
    ::utsname name{};
    ASSERT_EQ(::uname(&name), 0);
    int major = 0;
    int minor = 0;
    ASSERT_EQ(std::sscanf(name.release, "%d.%d", &major, &minor), 2);
    if (major * 100 + minor < 601) {
        GTEST_SKIP() << "this is Linux " << name.release;
    }
    const ring r;
    EXPECT_EQ(r.setup_flags(), default_setup_flags);
    EXPECT_EQ(r.sq_entries(), 256U);
    EXPECT_EQ(r.cq_entries(), 512U);
    EXPECT_TRUE(r.supports(opcode::sendmsg_zc));
    EXPECT_FALSE(r.supports(static_cast<opcode>(255)));
    EXPECT_GE(r.native_handle(), 0);
    EXPECT_EQ(ring{}.get_backend().name(), "io_uring");
}

TEST_F(SetupOnIoUring, SizesAreRoundedUpAndClamped) {
    ring_options options;
    options.entries = 100;
    EXPECT_EQ(ring(options).sq_entries(), 128U);
    options.cq_entries = 1000;
    EXPECT_EQ(ring(options).cq_entries(), 1024U);
    options.entries = 1U << 20;
    options.cq_entries = 0;
    EXPECT_EQ(ring(options).sq_entries(), 32768U);
}

TEST_F(SetupOnIoUring, WorksWithTheFlagsThatOlderBackendsGrant) {
    for (const std::uint32_t known : {~0U, up_to_6_0, up_to_5_19, up_to_5_15, 0U}) {
        auto k = std::make_unique<filter_backend>();
        k->refuse_setup = [=](unsigned, const params& p) {
            return (p.flags & ~known) != 0 ? -EINVAL : 0;
        };
        ring r{ring_options{}, std::move(k)};
        for (std::uint64_t i = 0; i < 1000; ++i) {
            queue(r, prep::nop(), i);
            ASSERT_EQ(r.submit_and_wait(1), 1);
            ASSERT_EQ(r.peek()->user_data, i);
            r.advance();
        }
    }
}

// The kernel accounts a ring's memory only for unprivileged processes.
void become_unprivileged() {
    if (::geteuid() == 0 && ::setuid(65534) != 0) {
        throw std::system_error(errno, std::generic_category(), "setuid");
    }
}

TEST_F(SetupOnIoUring, G6_ALowMemlockLimitGivesASmallerRingThatWorks) {
    COIL_SKIP_ON_EPOLL("it locks no memory");
    EXPECT_EQ(in_child([]() -> std::string {
                  become_unprivileged();
                  const ::rlimit limit{256 * 1024, 256 * 1024};
                  if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
                      return "setrlimit";
                  }
                  ring_options options;
                  options.entries = 8192;
                  // Rings that this user has just destroyed may still be accounted for a moment.
                  std::string complaint = "no ring at all";
                  for (int i = 0; i < 500 && !complaint.empty(); ++i) {
                      try {
                          ring r{options};
                          if (r.sq_entries() >= 8192 || r.sq_entries() < 8) {
                              return "entries: " + std::to_string(r.sq_entries());
                          }
                          complaint = run(r, prep::nop()) == 0 ? "" : "nop failed";
                      } catch (const std::system_error& e) {
                          complaint = e.what();
                          ::usleep(10000);
                      }
                  }
                  return complaint;
              }),
              "");
}

std::string complaint_about_availability(unsigned call, int error, const char* word) {
    if (const std::string failed = forbid(call, static_cast<unsigned>(error)); !failed.empty()) {
        return failed;
    }
    const availability a = available();
    if (a || a.error != error || a.reason.find(word) == std::string::npos) {
        return "error " + std::to_string(a.error) + ": " + a.reason;
    }
    return "";
}

TEST_F(SetupOnIoUring, G11_ASeccompFilterIsNamedAsTheReason) {
    COIL_NEEDS_IO_URING();
    EXPECT_EQ(in_child([] {
                  return complaint_about_availability(__NR_io_uring_setup, EPERM, "seccomp");
              }),
              "");
    EXPECT_EQ(in_child([] {
                  return complaint_about_availability(__NR_io_uring_setup, ENOSYS, "sandbox");
              }),
              "");
    EXPECT_EQ(in_child([] {
                  return complaint_about_availability(__NR_io_uring_enter, EPERM,
                                                      "io_uring_enter failed");
              }),
              "");
}

TEST_F(SetupOnIoUring, G6_RunningOutOfDescriptorsIsNamedAsTheReason) {
    COIL_NEEDS_IO_URING();
    EXPECT_EQ(in_child([]() -> std::string {
                  const ::rlimit limit{0, 0};
                  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
                      return "setrlimit";
                  }
                  const availability a = available();
                  if (a || a.error != EMFILE ||
                      a.reason.find("RLIMIT_NOFILE") == std::string::npos) {
                      return a.reason;
                  }
                  return "";
              }),
              "");
}

TEST_F(SetupOnIoUring, AvailableReportsWhatTheRingHas) {
    COIL_SKIP_ON_EPOLL("available() asks io_uring");
    const availability a = available();
    ASSERT_TRUE(a);
    EXPECT_EQ(a.error, 0);
    EXPECT_EQ(a.reason, "io_uring is available");
    const ring r{2};
    EXPECT_EQ(a.opcodes, r.opcodes());
    EXPECT_EQ(a.features, r.features());
    EXPECT_EQ(a.setup_flags, r.setup_flags());
    EXPECT_TRUE(a.opcodes.supports(opcode::read));
}

TEST_F(SetupOnIoUring, FailedAndDestroyedRingsLeaveNoDescriptor) {
    const auto open_descriptors = [] {
        int n = 0;
        for ([[maybe_unused]] const auto& e :
             std::filesystem::directory_iterator("/proc/self/fd")) {
            ++n;
        }
        return n;
    };
    const int before = open_descriptors();
    for (int i = 0; i < 50; ++i) {
        ring r{4};
        ASSERT_EQ(run(r, prep::nop()), 0);
        auto k = std::make_unique<filter_backend>();
        k->after_setup = [](params& p) { p.features = 0; };
        EXPECT_THROW(ring(ring_options{}, std::move(k)), std::system_error);
    }
    EXPECT_EQ(open_descriptors(), before);
}

} // namespace
} // namespace uring_test
