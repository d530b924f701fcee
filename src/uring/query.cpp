#include "refused_flags.hpp"

#include <coil/uring/detail/prep_entry.hpp>
#include <coil/uring/probe.hpp>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace coil::uring {
namespace {

/// A member of an answer of which the kernel has written `size` bytes; 0 if it has not written all
/// of the member.
template <class T>
T reported(const query_opcode& answer, T query_opcode::* member, std::size_t size) noexcept {
    const auto* const begin = reinterpret_cast<const std::byte*>(&answer);
    const auto* const end = reinterpret_cast<const std::byte*>(&(answer.*member) + 1);
    return static_cast<std::size_t>(end - begin) <= size ? answer.*member : 0;
}

/// The names of setup::* in the order of their bits.
constexpr std::array<std::string_view, 19> setup_flag_names{
    "IOPOLL",        "SQPOLL",        "SQ_AFF",     "CQSIZE",
    "CLAMP",         "ATTACH_WQ",     "R_DISABLED", "SUBMIT_ALL",
    "COOP_TASKRUN",  "TASKRUN_FLAG",  "SQE128",     "CQE32",
    "SINGLE_ISSUER", "DEFER_TASKRUN", "NO_MMAP",    "REGISTERED_FD_ONLY",
    "NO_SQARRAY",    "HYBRID_IOPOLL", "CQE_MIXED",
};
static_assert(setup::cqe_mixed == 1U << (setup_flag_names.size() - 1));

std::string names_of(std::uint32_t flags) {
    std::string names;
    for (; flags != 0; flags &= flags - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(flags));
        names.append(names.empty() ? "" : ", ");
        if (bit < setup_flag_names.size()) {
            names.append("IORING_SETUP_").append(setup_flag_names[bit]);
        } else {
            names.append("1 << ").append(std::to_string(bit));
        }
    }
    return names;
}

} // namespace

std::optional<kernel_capabilities> query_kernel(backend& k) noexcept {
    query_opcode answer{};
    query_hdr query{};
    query.query_data = prep::detail::address(&answer);
    query.query_op = query_op::opcodes;
    query.size = sizeof answer;
    if (k.do_register(register_op::query, &query, 0) != 0 || query.result != 0) {
        return std::nullopt;
    }
    const auto member = [&](auto pointer) { return reported(answer, pointer, query.size); };
    kernel_capabilities kernel;
    kernel.request_opcodes = member(&query_opcode::nr_request_opcodes);
    kernel.register_opcodes = member(&query_opcode::nr_register_opcodes);
    kernel.features = member(&query_opcode::feature_flags);
    kernel.setup_flags = member(&query_opcode::ring_setup_flags);
    kernel.enter_flags = member(&query_opcode::enter_flags);
    kernel.sqe_flags = member(&query_opcode::sqe_flags);
    // A seccomp filter may let calls succeed without executing them.
    return kernel.request_opcodes != 0 ? std::optional(kernel) : std::nullopt;
}

std::string detail::explain_refused_flags(backend& k, std::uint32_t flags) {
    const std::optional<kernel_capabilities> kernel = query_kernel(k);
    if (!kernel || kernel->setup_flags == 0) {
        return explain_setup_error(EINVAL);
    }
    const std::uint32_t unknown = flags & ~static_cast<std::uint32_t>(kernel->setup_flags);
    if (unknown == 0) {
        return "the kernel refused the ring's size or required flags: it supports each of the "
               "flags, so they conflict, or the size is not supported";
    }
    return "the kernel does not support these required flags: " + names_of(unknown);
}

} // namespace coil::uring
