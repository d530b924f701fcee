#include "support.hpp"

#include <coil/uring/epoll_backend.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>

#include <sys/syscall.h>
#include <sys/utsname.h>

// IORING_REGISTER_QUERY: what a kernel says that it implements, and kernels that do not say.

namespace uring_test {
namespace {

using QueryOnIoUring = with_io_uring;

const query_opcode linux_6_18{
    .nr_request_opcodes = 63,
    .nr_register_opcodes = 36,
    .feature_flags = 0x3ffff,
    .ring_setup_flags = 0x7ffff,
    .enter_flags = 0xff,
    .sqe_flags = 0x7f,
    .nr_query_opcodes = 1,
    .pad = 0,
};

/// A kernel whose answer to query_op::opcodes has these bytes, possibly more or fewer than the
/// library's struct.
std::function<int(query_hdr&, unsigned)> answers(std::vector<std::byte> bytes) {
    return [answer = std::move(bytes)](query_hdr& q, unsigned count) {
        if (count != 0) {
            return -EINVAL;
        }
        const bool valid = q.next_entry == 0 && q.result == 0 && q.size != 0 && q.resv[0] == 0 &&
                           q.resv[1] == 0 && q.resv[2] == 0;
        q.result = !valid ? -EINVAL : q.query_op != query_op::opcodes ? -EOPNOTSUPP : 0;
        q.size = q.result != 0 ? 0 : std::min(q.size, static_cast<std::uint32_t>(answer.size()));
        std::copy_n(answer.data(), q.size, reinterpret_cast<std::byte*>(q.query_data));
        return 0;
    };
}

std::vector<std::byte> bytes_of(const query_opcode& answer, std::size_t size = sizeof answer) {
    std::vector<std::byte> bytes(size, std::byte{0xee});
    std::copy_n(reinterpret_cast<const std::byte*>(&answer), std::min(size, sizeof answer),
                bytes.data());
    return bytes;
}

/// A kernel that supports the setup flags of `answer`, and says so.
std::unique_ptr<filter_backend> kernel_with(const query_opcode& answer) {
    auto k = std::make_unique<filter_backend>(std::make_unique<memory_backend>());
    k->refuse_setup = [known = answer.ring_setup_flags](unsigned, const params& p) {
        return (p.flags & ~known) != 0 ? -EINVAL : 0;
    };
    k->answer_query = answers(bytes_of(answer));
    return k;
}

std::optional<kernel_capabilities>
result_of(std::function<int(query_hdr&, unsigned)> answer_query) {
    filter_backend k(std::make_unique<memory_backend>());
    k.answer_query = std::move(answer_query);
    return query_kernel(k);
}

const kernel_capabilities all_of_6_18{63, 36, 0x3ffff, 0x7ffff, 0xff, 0x7f};

TEST(Query, ReportsWhatTheKernelImplements) {
    EXPECT_EQ(result_of(answers(bytes_of(linux_6_18))), all_of_6_18);
}

TEST(Query, ANewerKernelsLongerAnswerIsCutOff) {
    EXPECT_EQ(result_of(answers(bytes_of(linux_6_18, 4 * sizeof(query_opcode)))), all_of_6_18);
}

TEST(Query, OfAShortAnswerOnlyWholeMembersAreUsed) {
    EXPECT_EQ(result_of(answers({})), std::nullopt);
    for (unsigned size = 1; size < 4; ++size) { // not even the number of opcodes
        EXPECT_EQ(result_of(answers(bytes_of(linux_6_18, size))), std::nullopt) << size;
    }
    for (unsigned size = 4; size <= sizeof(query_opcode); ++size) {
        kernel_capabilities expected;
        expected.request_opcodes = 63;
        expected.register_opcodes = size >= 8 ? 36 : 0;
        expected.features = size >= 16 ? 0x3ffff : 0;
        expected.setup_flags = size >= 24 ? 0x7ffff : 0;
        expected.enter_flags = size >= 32 ? 0xff : 0;
        expected.sqe_flags = size >= 40 ? 0x7f : 0;
        EXPECT_EQ(result_of(answers(bytes_of(linux_6_18, size))), expected) << size;
    }
}

TEST(Query, KernelsThatRefuseItReportNothing) {
    // old kernels (EINVAL; EBADF for the descriptor -1), seccomp filters (EPERM, EACCES, ENOSYS)
    for (const int error : {EINVAL, EBADF, EOPNOTSUPP, EPERM, EACCES, ENOSYS, EFAULT}) {
        for (const bool of_the_call : {true, false}) {
            EXPECT_EQ(result_of([=](query_hdr& q, unsigned count) {
                          answers(bytes_of(linux_6_18))(q, count); // must not be used
                          q.result = of_the_call ? 0 : -error;
                          return of_the_call ? -error : 0;
                      }),
                      std::nullopt)
                << error << of_the_call;
        }
    }
}

TEST(Query, ACallThatHasNoEffectIsNoAnswer) {
    EXPECT_EQ(result_of([](query_hdr&, unsigned) { return 0; }), std::nullopt);
}

TEST(Query, AnEmulatedRingReportsNothing) {
    const auto k = make_epoll_backend();
    EXPECT_EQ(query_kernel(*k), std::nullopt);
    params p{};
    backend::mapping m{};
    ASSERT_EQ(k->setup(8, p, m), 0);
    EXPECT_EQ(query_kernel(*k), std::nullopt);
}

// ---- setting up a ring

std::string refusal(std::uint32_t required, std::unique_ptr<backend> k) {
    ring_options options;
    options.required_flags = required;
    try {
        const ring r{options, std::move(k)};
        ADD_FAILURE() << "granted " << r.setup_flags();
        return "";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::invalid_argument);
        return e.what();
    }
}

bool contains(const std::string& text, const char* word) {
    return text.find(word) != std::string::npos;
}

TEST(Query, G11_RequiredFlagsThatTheKernelDoesNotKnowAreNamed) {
    query_opcode some = linux_6_18;
    some.ring_setup_flags &= ~std::uint64_t{setup::defer_taskrun};
    const std::string one = refusal(setup::single_issuer | setup::defer_taskrun, kernel_with(some));
    EXPECT_TRUE(contains(one, "IORING_SETUP_DEFER_TASKRUN")) << one;
    EXPECT_FALSE(contains(one, "SINGLE_ISSUER")) << one;

    some.ring_setup_flags &= ~std::uint64_t{setup::hybrid_iopoll};
    const std::string more = refusal(
        setup::single_issuer | setup::defer_taskrun | setup::hybrid_iopoll, kernel_with(some));
    EXPECT_TRUE(contains(more, "IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_HYBRID_IOPOLL")) << more;

    const std::string nameless = refusal(1U << 31, kernel_with(linux_6_18));
    EXPECT_TRUE(contains(nameless, "1 << 31")) << nameless;
}

TEST(Query, G11_EachFlagIsCalledByItsOwnName) {
    const std::pair<std::uint32_t, const char*> names[] = {
        {setup::iopoll, "IOPOLL"},
        {setup::sqpoll, "SQPOLL"},
        {setup::sq_aff, "SQ_AFF"},
        {setup::cqsize, "CQSIZE"},
        {setup::clamp, "CLAMP"},
        {setup::attach_wq, "ATTACH_WQ"},
        {setup::r_disabled, "R_DISABLED"},
        {setup::submit_all, "SUBMIT_ALL"},
        {setup::coop_taskrun, "COOP_TASKRUN"},
        {setup::taskrun_flag, "TASKRUN_FLAG"},
        {setup::single_issuer, "SINGLE_ISSUER"},
        {setup::defer_taskrun, "DEFER_TASKRUN"},
        {setup::hybrid_iopoll, "HYBRID_IOPOLL"},
    };
    for (const auto& [flag, name] : names) {
        query_opcode some = linux_6_18;
        some.ring_setup_flags &= ~std::uint64_t{flag};
        const std::string text = refusal(flag, kernel_with(some));
        EXPECT_TRUE(contains(text, (std::string(": IORING_SETUP_") + name + ":").c_str())) << text;
    }
}

TEST(Query, G11_RequiredFlagsThatConflictAreNotCalledUnknown) {
    auto k = kernel_with(linux_6_18);
    k->refuse_setup = [](unsigned, const params&) { return -EINVAL; };
    const std::string conflict = refusal(setup::sqpoll | setup::defer_taskrun, std::move(k));
    EXPECT_TRUE(contains(conflict, "conflict")) << conflict;
    EXPECT_FALSE(contains(conflict, "does not support")) << conflict;
}

TEST(Query, G11_AnAnswerWithoutSetupFlagsExplainsNothing) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{16}, std::size_t{20}}) {
        auto k = kernel_with(linux_6_18);
        k->refuse_setup = [](unsigned, const params&) { return -EINVAL; };
        k->answer_query = answers(bytes_of(linux_6_18, size));
        const std::string text = refusal(setup::sqpoll, std::move(k));
        EXPECT_TRUE(contains(text, explain_setup_error(EINVAL).c_str())) << text;
    }
}

TEST(Query, AFlagThatIsNotRequiredIsDroppedWithoutAQuery) {
    query_opcode some = linux_6_18;
    some.ring_setup_flags &= ~std::uint64_t{setup::defer_taskrun};
    auto k = kernel_with(some);
    int queries = 0;
    k->answer_query = [&](query_hdr&, unsigned) {
        ++queries;
        return -EINVAL;
    };
    const ring r{ring_options{}, std::move(k)};
    EXPECT_EQ(r.setup_flags(), default_setup_flags & ~setup::defer_taskrun);
    EXPECT_EQ(queries, 0);
}

// ---- the running kernel

/// The version of the running kernel: 618 for Linux 6.18.
int kernel_version() {
    ::utsname name{};
    int major = 0;
    int minor = 0;
    if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2) {
        return 0;
    }
    return major * 100 + minor;
}

#define COIL_NEEDS_QUERY()                                                                         \
    COIL_SKIP_ON_EPOLL("it is no kernel");                                                         \
    if (!query_kernel(*make_linux_backend())) {                                                    \
        ASSERT_LT(kernel_version(), 618);                                                          \
        GTEST_SKIP() << "this kernel cannot be queried (IORING_REGISTER_QUERY, Linux 6.18)";       \
    }

TEST_F(QueryOnIoUring, BeforeAndAfterSetupTheAnswerAgreesWithTheRing) {
    COIL_NEEDS_QUERY();
    const auto before = query_kernel(*make_linux_backend());
    ASSERT_TRUE(before.has_value());
    ring r;
    EXPECT_EQ(query_kernel(r.get_backend()), before);

    EXPECT_EQ(before->features, r.features());
    EXPECT_EQ(r.setup_flags() & ~before->setup_flags, 0U);
    EXPECT_GE(before->request_opcodes, opcode_count);
    for (unsigned i = 0; i < 256; ++i) {
        EXPECT_TRUE(i < before->request_opcodes || !r.supports(static_cast<opcode>(i))) << i;
    }
    EXPECT_GT(before->register_opcodes, static_cast<std::uint32_t>(register_op::query));
    constexpr std::uint64_t every_sqe_flag = 0x7f;
    EXPECT_EQ(before->sqe_flags & every_sqe_flag, every_sqe_flag);
    EXPECT_NE(before->enter_flags & enter_flag::ext_arg, 0U);
    EXPECT_EQ(run(r, prep::nop()), 0); // the ring works as before
}

TEST_F(QueryOnIoUring, AvailableReportsTheKernel) {
    COIL_SKIP_ON_EPOLL("available() asks io_uring");
    EXPECT_EQ(available().kernel, query_kernel(*make_linux_backend()));
}

TEST_F(QueryOnIoUring, G11_ARequiredFlagThatThisKernelDoesNotKnowIsNamed) {
    COIL_NEEDS_QUERY();
    const std::string text = refusal(1U << 31, make_linux_backend());
    EXPECT_TRUE(contains(text, "1 << 31")) << text;
}

TEST_F(QueryOnIoUring, G11_FlagsThatConflictOnThisKernelAreNotCalledUnknown) {
    COIL_NEEDS_QUERY();
    // the kernel thread of sqpoll cannot wait for the submitter to enter
    const std::string text = refusal(setup::sqpoll | setup::defer_taskrun, make_linux_backend());
    EXPECT_TRUE(contains(text, "conflict")) << text;
}

TEST_F(QueryOnIoUring, G11_ASeccompFilterThatForbidsItHasNoOtherEffect) {
    COIL_NEEDS_IO_URING();
    for (const int error : {EPERM, EACCES, ENOSYS, 0}) {
        EXPECT_EQ(in_child([=]() -> std::string {
                      const std::string failed =
                          forbid(__NR_io_uring_register, static_cast<unsigned>(error));
                      if (!failed.empty()) {
                          return failed;
                      }
                      const availability a = available();
                      if (!a) {
                          return a.reason;
                      }
                      return a.kernel ? "an answer in spite of the filter" : "";
                  }),
                  "")
            << error;
    }
}

} // namespace
} // namespace uring_test
