// What io_uring and the epoll backend must agree on: valid entries, the order of completions, and
// the effects of a drain, a broken chain, a cancellation.

#include "../../src/uring/opcode_table.hpp"
#include "uring/backends.hpp"

#include <coil/uring/registered_files.hpp>

#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

#include <sys/mman.h>
#include <sys/socket.h>

namespace uring_test {
namespace {

struct BothBackendsAgree : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsAgree);

params without(std::uint32_t setup_flags = 0) {
    params p{};
    p.flags = setup_flags;
    return p;
}

std::vector<std::uint64_t> order(ring& r, unsigned n) {
    std::vector<std::uint64_t> found;
    while (found.size() < n) {
        found.push_back(next(r).user_data);
    }
    return found;
}

/// An unmapped address.
void* nowhere() {
    static void* const page =
        ::mmap(nullptr, 1U << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page;
}

// ---- drains and chains

TEST_P(BothBackendsAgree, EntriesAfterADrainWaitUntilItIsComplete) {
    ring r{small(), make()};
    pipe_pair p;
    char byte = 0;
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1, sqe_flag::io_drain);
    queue(r, prep::nop(), 2);
    queue(r, prep::nop(), 3);
    ASSERT_EQ(r.submit(), 3);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(order(r, 3), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_P(BothBackendsAgree, ADrainWithinAChainHoldsTheChainAndTheEntriesAfterIt) {
    ring r{small(), make()};
    pipe_pair before;
    pipe_pair within;
    char bytes[2] = {};
    queue(r, prep::read(before.in, bytes, 1, prep::current_position), 1);
    queue(r, prep::nop(), 2, sqe_flag::io_link);
    queue(r, prep::read(within.in, bytes + 1, 1, prep::current_position), 3, sqe_flag::io_drain);
    queue(r, prep::nop(), 4);
    ASSERT_EQ(r.submit(), 4);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::write(before.out, "x", 1), 1);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{1, 2}));
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::write(within.out, "x", 1), 1);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{3, 4}));
}

TEST_P(BothBackendsAgree, ADrainWithinAChainHoldsNoMoreThanTheNextEntry) {
    ring r{small(), make()};
    pipe_pair p;
    char byte = 0;
    queue(r, prep::nop(), 1, sqe_flag::io_link);
    queue(r, prep::nop(), 2, sqe_flag::io_drain);
    ASSERT_EQ(r.submit(), 2);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{1, 2}));
    queue(r, prep::nop(), 3, sqe_flag::io_drain); // the chain would make it drain anyway
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 4);
    queue(r, prep::nop(), 5);
    ASSERT_EQ(r.submit(), 3);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{3, 5}));
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(next(r).user_data, 4U);
}

TEST_P(BothBackendsAgree, ARefusedEntryLeavesTheDrainOfAChainToTheNextEntry) {
    ring r{small(), make()};
    pipe_pair p;
    char byte = 0;
    queue(r, prep::nop(), 1, sqe_flag::io_link);
    queue(r, prep::nop(), 2, sqe_flag::io_drain | sqe_flag::io_link);
    queue(r, prep::nop(), 3, sqe_flag::cqe_skip_success); // rules out later drains
    ASSERT_EQ(r.submit(), 3);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(run(r, prep::nop(), sqe_flag::io_drain), -EOPNOTSUPP);
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 4);
    queue(r, prep::nop(), 5);
    ASSERT_EQ(r.submit(), 2);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{4, 5}));
}

TEST_P(BothBackendsAgree, ADrainWithInvalidArgumentsHoldsTheEntriesAfterIt) {
    ring r{small(), make()};
    pipe_pair p;
    char byte = 0;
    sqe wrong = prep::cancel(9);
    wrong.cancel_flags = 1U << 20;
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
    queue(r, wrong, 2, sqe_flag::io_drain);
    queue(r, prep::nop(), 3);
    queue(r, prep::recv(-1, &byte, 1, 0), 4);
    ASSERT_EQ(r.submit(), 4);
    EXPECT_EQ(next(r).res, -EINVAL);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(results(r, 3), (std::map<std::uint64_t, int>{{1, 1}, {3, 0}, {4, -EBADF}}));
}

TEST_P(BothBackendsAgree, EntriesHeldByADrainHoldTheNextSubmission) {
    ring r{small(), make()};
    pipe_pair p;
    char byte = 0;
    queue(r, prep::nop(), 1, sqe_flag::io_drain);
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 2);
    ASSERT_EQ(r.submit(), 2);
    EXPECT_EQ(next(r).user_data, 1U);
    EXPECT_TRUE(is_quiet(r, 5ms));
    queue(r, prep::nop(), 3);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 5ms));
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(run(r, prep::nop()), 0);
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 4);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_EQ(run(r, prep::nop()), 0);
}

TEST_P(BothBackendsAgree, G13_ABrokenChainIsReadToItsEnd) {
    ring r{16, without(), make()}; // without setup::submit_all
    sqe wrong = prep::nop();
    wrong.opcode = 255;
    queue(r, prep::nop(), 1, sqe_flag::io_link);
    queue(r, wrong, 2, sqe_flag::io_link);
    queue(r, prep::nop(), 3);
    queue(r, prep::nop(), 4);
    EXPECT_EQ(r.submit(), 4);
    EXPECT_EQ(results(r, 4), (std::map<std::uint64_t, int>{
                                 {1, -ECANCELED}, {2, -EINVAL}, {3, -ECANCELED}, {4, 0}}));
    queue(r, wrong, 5); // outside a chain it ends the batch
    queue(r, prep::nop(), 6);
    EXPECT_EQ(r.submit(), 1);
    EXPECT_EQ(next(r).res, -EINVAL);
    EXPECT_EQ(r.submit(), 1);
    EXPECT_EQ(next(r).user_data, 6U);
}

TEST_P(BothBackendsAgree, ALinkTimeoutWithCqeSkipPostsNoCompletion) {
    ring r{small(), make()};
    pipe_pair p;
    char byte = 0;
    const timespec soon{0, 3'000'000};
    const timespec late{60, 0};
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1, sqe_flag::io_link);
    queue(r, prep::link_timeout(&soon), 2, sqe_flag::cqe_skip_success);
    EXPECT_EQ(next(r).res, -ECANCELED);
    EXPECT_TRUE(is_quiet(r, 5ms));
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 3, sqe_flag::io_link);
    queue(r, prep::link_timeout(&late), 4, sqe_flag::cqe_skip_success);
    ASSERT_EQ(r.submit(), 2);
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(next(r).user_data, 3U);
    EXPECT_TRUE(is_quiet(r, 5ms));
}

TEST_P(BothBackendsAgree, G3_ACancelRequestCompletesBeforeItsTarget) {
    ring r{small(), make()};
    stream_pair s;
    char byte = 0;
    const timespec late{60, 0};
    queue(r, prep::recv(s.a, &byte, 1, 0), 1);
    queue(r, prep::timeout(&late), 2);
    queue(r, prep::poll_add(s.a, 1), 3);
    ASSERT_EQ(r.submit(), 3);
    queue(r, prep::cancel(1), 11);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{11, 1}));
    queue(r, prep::timeout_remove(2), 12);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{12, 2}));
    queue(r, prep::poll_remove(3), 13);
    EXPECT_EQ(order(r, 2), (std::vector<std::uint64_t>{13, 3}));
}

TEST_P(BothBackendsAgree, G3_ASynchronousCancelEndsWhatItFinds) {
    ring r{small(), make()};
    const stream_pair s;
    char byte = 0;
    queue(r, prep::recv(s.a, &byte, 1, 0), 1);
    ASSERT_EQ(r.submit(), 1);
    sync_cancel_reg reg{};
    reg.addr = 1;
    reg.timeout = {-1, -1};
    EXPECT_EQ(r.get_backend().do_register(register_op::sync_cancel, &reg, 1), 0);
    EXPECT_EQ(next(r).res, -ECANCELED);
    EXPECT_EQ(r.get_backend().do_register(register_op::sync_cancel, &reg, 1), -ENOENT);
}

TEST_P(BothBackendsAgree, ANopLooksUpItsFileAndBuffer) {
    ring r{small(), make()};
    sqe nop = prep::nop();
    nop.nop_flags = nop_flag::file;
    nop.fd = 9999;
    EXPECT_EQ(run(r, nop), -EBADF);
    nop.fd = 0;
    EXPECT_EQ(run(r, nop), 0);
    nop.nop_flags = nop_flag::file | nop_flag::fixed_file;
    EXPECT_EQ(run(r, nop), -EBADF);
    nop.nop_flags = nop_flag::fixed_buffer;
    EXPECT_EQ(run(r, nop), -EFAULT);
}

// ---- fields

TEST_P(BothBackendsAgree, FieldsWithoutAMeaningMustBeZero) {
    using i = coil::uring::detail::opcode_info;
    ring r{small(), make()};
    const auto with = [](opcode op, unsigned field) {
        sqe s{};
        s.opcode = static_cast<std::uint8_t>(op);
        s.fd = field == i::fd ? 1 : op == opcode::pipe || op == opcode::futex_waitv ? 0 : -1;
        s.len = op == opcode::timeout || op == opcode::link_timeout ? 1 : 0;
        s.off = field == i::off ? 1 : 0;
        s.addr = field == i::addr ? 1 : 0;
        s.len = field == i::len ? s.len + 1 : s.len;
        s.rw_flags = field == i::op_flags ? 1 : 0;
        s.buf_index = field == i::buf_index ? 1 : 0;
        s.file_index = field == i::last_word ? 1 : 0;
        s.addr3 = field == i::addr3 ? 1 : 0;
        s.pad2 = field == i::pad2 ? 1 : 0;
        return s;
    };
    const auto result = [&](const sqe& entry) { // a zero-copy send may post two CQEs
        ring alone{small(2), make()};
        return run(alone, entry);
    };
    for (unsigned n = 0; n < opcode_count; ++n) {
        const auto op = static_cast<opcode>(n);
        if (!r.supports(op)) {
            continue;
        }
        for (unsigned field = 1; field <= i::pad2; field <<= 1) {
            if ((coil::uring::detail::info_of(op).zero & field) != 0) {
                EXPECT_EQ(result(with(op, field)), -EINVAL) << "opcode " << n << " field " << field;
            }
        }
        if ((coil::uring::detail::info_of(op).traits & i::takes_ioprio) == 0) {
            sqe s = with(op, 0);
            s.ioprio = 1;
            EXPECT_EQ(result(s), -EINVAL) << "opcode " << n << " ioprio";
        }
    }
}

TEST_P(BothBackendsAgree, PrioritiesAndFlagsAreChecked) {
    ring r{small(), make()};
    pipe_pair p;
    stream_pair s;
    char byte = 0;
    ASSERT_EQ(::write(p.out, "xxxx", 4), 4);
    sqe read = prep::read(p.in, &byte, 1, prep::current_position);
    read.ioprio = 1; // a level without a class
    EXPECT_EQ(run(r, read), -EINVAL);
    read.ioprio = 2U << 13 | 4;
    EXPECT_EQ(run(r, read), 1);
    sqe unlink = prep::unlinkat(AT_FDCWD, "nothing", 0);
    unlink.unlink_flags = 1;
    EXPECT_EQ(run(r, unlink), -EINVAL);
    sqe accept = prep::accept(s.a, nullptr, nullptr, 0);
    accept.accept_flags = 1;
    EXPECT_EQ(run(r, accept), -EINVAL);
}

TEST_P(BothBackendsAgree, TeeHasNoOffsets) {
    ring r{small(), make()};
    pipe_pair from;
    pipe_pair to;
    sqe tee = prep::tee(from.in, to.out, 1, 0);
    tee.off = 1;
    EXPECT_EQ(run(r, tee), -EINVAL);
    tee.off = 0;
    tee.splice_off_in = 1;
    EXPECT_EQ(run(r, tee), -EINVAL);
    tee.splice_off_in = 0;
    tee.splice_flags = 1U << 20;
    EXPECT_EQ(run(r, tee), -EINVAL);
}

// ---- addresses

TEST_P(BothBackendsAgree, G6_AnInvalidAddressIsAnError) {
    ring r{small(), make()};
    auto* const bad = static_cast<char*>(nowhere());
    const stream_pair s;
    struct ::statx status{};
    EXPECT_EQ(run(r, prep::openat(AT_FDCWD, bad, O_RDONLY, 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::openat(AT_FDCWD, bad, O_RDWR | O_CREAT, 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::statx(AT_FDCWD, bad, 0, 0, &status)), -EFAULT);
    EXPECT_EQ(run(r, prep::unlinkat(AT_FDCWD, bad, 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::mkdirat(AT_FDCWD, bad, 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::renameat(AT_FDCWD, "x", AT_FDCWD, bad, 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::sendmsg(s.a, reinterpret_cast<::msghdr*>(bad), 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::readv(s.a, reinterpret_cast<::iovec*>(bad), 1, 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::timeout(reinterpret_cast<timespec*>(bad))), -EFAULT);
    const std::string long_name(5000, 'x');
    EXPECT_EQ(run(r, prep::unlinkat(AT_FDCWD, long_name.c_str(), 0)), -ENAMETOOLONG);
    // In a chain it breaks the chain.
    queue(r, prep::nop(), 1, sqe_flag::io_link);
    queue(r, prep::mkdirat(AT_FDCWD, bad, 0), 2, sqe_flag::io_link);
    queue(r, prep::nop(), 3);
    EXPECT_EQ(results(r, 3),
              (std::map<std::uint64_t, int>{{1, -ECANCELED}, {2, -EFAULT}, {3, -ECANCELED}}));
}

TEST_P(BothBackendsAgree, G6_RegistrationsOfUnmappedMemoryFail) {
    const auto k = make();
    params p{};
    backend::mapping m{};
    ASSERT_EQ(k->setup(8, p, m), 0);
    buf_reg reg{};
    reg.ring_addr = reinterpret_cast<std::uintptr_t>(nowhere());
    reg.ring_entries = 16;
    EXPECT_EQ(k->do_register(register_op::pbuf_ring, &reg, 1), -EFAULT);
    EXPECT_EQ(k->do_register(register_op::files, nowhere(), 1), -EFAULT);
    EXPECT_EQ(k->do_register(register_op::buffers, nowhere(), 1), -EFAULT);
}

TEST_P(BothBackendsAgree, G6_TablesOfUnmappedMemoryFail) {
    const auto k = make();
    params p{};
    backend::mapping m{};
    ASSERT_EQ(k->setup(8, p, m), 0);
    const auto address = reinterpret_cast<std::uintptr_t>(nowhere());

    rsrc_register table{};
    table.nr = 4;
    table.data = address;
    EXPECT_EQ(k->do_register(register_op::files2, &table, sizeof table), -EFAULT);
    EXPECT_EQ(k->do_register(register_op::buffers2, &table, sizeof table), -EFAULT);

    table.data = 0;
    table.flags = rsrc_flag::sparse;
    ASSERT_EQ(k->do_register(register_op::files2, &table, sizeof table), 0);
    ASSERT_EQ(k->do_register(register_op::buffers2, &table, sizeof table), 0);
    files_update files{};
    files.fds = address;
    EXPECT_EQ(k->do_register(register_op::files_update, &files, 2), -EFAULT);
    files.fds = 0;
    EXPECT_EQ(k->do_register(register_op::files_update, &files, 2), -EFAULT);
    rsrc_update2 update{};
    update.nr = 2;
    update.data = address;
    EXPECT_EQ(k->do_register(register_op::files_update2, &update, sizeof update), -EFAULT);
    EXPECT_EQ(k->do_register(register_op::buffers_update, &update, sizeof update), -EFAULT);
    EXPECT_EQ(k->do_register(register_op::probe, nowhere(), 4), -EFAULT);
    EXPECT_EQ(k->do_register(register_op::pbuf_status, nowhere(), 1), -EFAULT);
}

TEST_P(BothBackendsAgree, G6_ATableIsProcessedUpToUnmappedMemory) {
    ring r{small(), make()};
    registered_files table(r, 8);
    constexpr std::size_t page = 4096;
    auto* const two = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(::mprotect(two + page, page, PROT_NONE), 0);
    auto* const fds = reinterpret_cast<int*>(two + page) - 2; // the third one is not mapped
    const pipe_pair p;
    fds[0] = p.in;
    fds[1] = p.out;
    EXPECT_EQ(run(r, prep::files_update(fds, 3, 0)), 2);
    EXPECT_EQ(run(r, prep::files_update(fds + 2, 1, 0)), -EFAULT);
    EXPECT_EQ(run(r, prep::files_update(fds, 3, file_index_alloc)), 2);
    EXPECT_EQ(fds[0], 2);
    EXPECT_EQ(fds[1], 3);
    fds[0] = p.in;
    ASSERT_EQ(::mprotect(two, page, PROT_READ), 0); // the slot number cannot be stored
    EXPECT_EQ(run(r, prep::files_update(fds, 1, file_index_alloc)), -EFAULT);
    ::munmap(two, 2 * page);
}

TEST_P(BothBackendsAgree, SingleMmapMapsBothQueuesTogether) {
    const auto k = make();
    params p{};
    backend::mapping m{};
    ASSERT_EQ(k->setup(8, p, m), 0);
    ASSERT_NE(p.features & feature::single_mmap, 0U);
    EXPECT_EQ(m.sq, m.cq);
    EXPECT_NE(p.sq_off.head, p.cq_off.head);
}

// ---- files and time

TEST_P(BothBackendsAgree, APipeReportsItsSlots) {
    ring r{small(), make()};
    COIL_NEEDS(r, pipe);
    registered_files table(r, 8);
    int ends[2] = {-1, -1};
    ASSERT_EQ(run(r, prep::pipe_direct(ends, 0, 5)), 0);
    EXPECT_EQ(ends[0], 5);
    EXPECT_EQ(ends[1], 6);
    ASSERT_EQ(run(r, prep::pipe_direct(ends, 0, file_index_alloc)), 0);
    EXPECT_EQ(ends[0], 7); // allocation continues after the last slot
    EXPECT_EQ(ends[1], 0);
}

TEST_P(BothBackendsAgree, ALoopThatOnlyPeeksSeesATimeout) {
    ring r{16, without(setup::coop_taskrun | setup::taskrun_flag), make()};
    const timespec soon{0, 3'000'000};
    queue(r, prep::timeout(&soon), 1);
    ASSERT_EQ(r.submit(), 1);
    const auto begin = std::chrono::steady_clock::now();
    while (!r.has_completions() && std::chrono::steady_clock::now() - begin < 5s) {
        if (r.needs_enter()) {
            r.submit();
        }
    }
    ASSERT_TRUE(r.has_completions());
    EXPECT_EQ(next(r).res, -ETIME);
}

TEST_P(BothBackendsAgree, ADescriptorNumberReusedAfterEndOfFile) {
    ring r{small(), make()};
    char byte = 0;
    auto s = std::make_unique<stream_pair>();
    const int number = s->a;
    queue(r, prep::recv(number, &byte, 1, 0), 1);
    ASSERT_EQ(r.submit(), 1);
    s->b.reset();
    EXPECT_EQ(next(r).res, 0);
    s.reset(); // a plain close(2), which is not reported to the backend
    const stream_pair other;
    ASSERT_EQ(::dup2(other.a, number), number);
    const descriptor same{number};
    queue(r, prep::recv(number, &byte, 1, 0), 2);
    ASSERT_EQ(r.submit(), 1);
    ASSERT_EQ(::send(other.b, "x", 1, 0), 1);
    // Detected by the first check, not by a later revalidation.
    EXPECT_EQ(r.wait(1ms), 0);
    EXPECT_EQ(next(r).res, 1);
}

} // namespace
} // namespace uring_test
