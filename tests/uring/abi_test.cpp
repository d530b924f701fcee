#include "abi_names.hpp"

#include <coil/uring/abi.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

// The system's header may be years older or newer than this library. Therefore every name is
// declared here first, as a global "absent". The header is then included inside a namespace, where
// its own declaration (or macro), if any, hides the stand-in.

enum : std::int64_t {
    coil_abi_absent = 0x7abadabadabadaba,
#define COIL_STAND_IN(theirs, ours) theirs = coil_abi_absent,
    COIL_ABI_ALL(COIL_STAND_IN)
#undef COIL_STAND_IN
};

struct coil_absent_struct {
    static constexpr bool absent = true;
};
using io_uring_attr_pi = coil_absent_struct;
using io_uring_buf_status = coil_absent_struct;
using io_uring_clock_register = coil_absent_struct;
using io_uring_clone_buffers = coil_absent_struct;
using io_uring_mem_region_reg = coil_absent_struct;
using io_uring_napi = coil_absent_struct;
using io_uring_query_hdr = coil_absent_struct;
using io_uring_query_opcode = coil_absent_struct;
using io_uring_reg_wait = coil_absent_struct;
using io_uring_region_desc = coil_absent_struct;
using io_uring_zcrx_area_reg = coil_absent_struct;
using io_uring_zcrx_cqe = coil_absent_struct;
using io_uring_zcrx_ifq_reg = coil_absent_struct;
using io_uring_zcrx_offsets = coil_absent_struct;
using io_uring_zcrx_rqe = coil_absent_struct;

// The headers that io_uring.h includes come first, so that they do not end up in the namespace.
#if defined(__has_include) && __has_include(<linux/time_types.h>)
#include <linux/time_types.h>
#endif
#include <linux/fs.h>
#include <linux/types.h>

namespace theirs {
#include <linux/futex.h>
#include <linux/io_uring.h>
#if defined(__has_include) && __has_include(<linux/io_uring/query.h>)
#include <linux/io_uring/query.h>
#endif

namespace {

using namespace coil::uring;

template <class T>
constexpr std::int64_t number(T value) {
    return static_cast<std::int64_t>(value);
}

struct pair {
    const char* name;
    std::int64_t theirs;
    std::int64_t ours;
};

// 32-bit flags may be signed or unsigned on either side.
bool same(const pair& p) {
    return p.theirs == p.ours ||
           static_cast<std::uint32_t>(p.theirs) == static_cast<std::uint32_t>(p.ours);
}

#define COIL_PAIR(theirs, ours) pair{#theirs, number(theirs), number(ours)},
const pair opcodes[] = {COIL_ABI_OPCODES(COIL_PAIR)};
const pair all[] = {COIL_ABI_ALL(COIL_PAIR)};
#undef COIL_PAIR

TEST(Abi, ConstantsAreThoseOfTheSystemHeader) {
    int compared = 0;
    for (const pair& p : all) {
        if (p.theirs == coil_abi_absent) {
            continue;
        }
        ++compared;
        EXPECT_TRUE(same(p)) << p.name << " is " << p.theirs << ", declared here as " << p.ours;
    }
    RecordProperty("compared", compared);
    RecordProperty("declared", static_cast<int>(std::size(all)));
    // Linux 5.10's header, the oldest on a system that can build this library, has over 100.
    EXPECT_GT(compared, 100);
}

TEST(Abi, OpcodesAreNumberedWithoutGaps) {
    ASSERT_EQ(std::size(opcodes), opcode_count);
    for (std::size_t i = 0; i < std::size(opcodes); ++i) {
        EXPECT_EQ(opcodes[i].ours, static_cast<std::int64_t>(i)) << opcodes[i].name;
    }
}

TEST(Abi, EachNameIsListedOnce) {
    std::set<std::string> names;
    for (const pair& p : all) {
        EXPECT_TRUE(names.insert(p.name).second) << p.name;
    }
}

template <class Theirs, class Ours>
void expect_same_size(const char* name) {
    if constexpr (!requires { Theirs::absent; }) {
        EXPECT_EQ(sizeof(Theirs), sizeof(Ours)) << name;
    }
}
#define COIL_SIZE(theirs, ours) expect_same_size<theirs, ours>(#theirs)

// Members that an older header lacks are skipped.
#define COIL_MEMBER(theirs, their_member, ours, our_member)                                        \
    []<class S>(const S*) {                                                                        \
        if constexpr (requires(S s) { s.their_member; }) {                                         \
            EXPECT_EQ(offsetof(S, their_member), offsetof(ours, our_member)) << #their_member;     \
            EXPECT_EQ(sizeof(std::declval<S&>().their_member),                                     \
                      sizeof(std::declval<ours&>().our_member))                                    \
                << #their_member;                                                                  \
        }                                                                                          \
    }(static_cast<const theirs*>(nullptr))

TEST(Abi, StructsHaveTheSizesOfTheSystemHeader) {
    COIL_SIZE(io_uring_sqe, sqe);
    COIL_SIZE(io_uring_cqe, cqe);
    COIL_SIZE(io_uring_params, params);
    COIL_SIZE(io_sqring_offsets, sq_offsets);
    COIL_SIZE(io_cqring_offsets, cq_offsets);
    COIL_SIZE(io_uring_getevents_arg, getevents_arg);
    COIL_SIZE(io_uring_files_update, files_update);
    COIL_SIZE(io_uring_rsrc_register, rsrc_register);
    COIL_SIZE(io_uring_rsrc_update, rsrc_update);
    COIL_SIZE(io_uring_rsrc_update2, rsrc_update2);
    COIL_SIZE(io_uring_probe_op, probe_op);
    COIL_SIZE(io_uring_restriction, restriction);
    COIL_SIZE(io_uring_buf, buf);
    COIL_SIZE(io_uring_buf_reg, buf_reg);
    COIL_SIZE(io_uring_sync_cancel_reg, sync_cancel_reg);
    COIL_SIZE(io_uring_file_index_range, file_index_range);
    COIL_SIZE(io_uring_recvmsg_out, recvmsg_out);
    COIL_SIZE(__kernel_timespec, coil::uring::timespec);
    COIL_SIZE(futex_waitv, futex_waiter);
    COIL_SIZE(io_uring_attr_pi, attr_pi);
    COIL_SIZE(io_uring_buf_status, buf_status);
    COIL_SIZE(io_uring_clock_register, clock_register);
    COIL_SIZE(io_uring_clone_buffers, clone_buffers);
    COIL_SIZE(io_uring_mem_region_reg, mem_region_reg);
    COIL_SIZE(io_uring_napi, napi);
    COIL_SIZE(io_uring_query_hdr, query_hdr);
    COIL_SIZE(io_uring_query_opcode, query_opcode);
    COIL_SIZE(io_uring_reg_wait, reg_wait);
    COIL_SIZE(io_uring_region_desc, region_desc);
    COIL_SIZE(io_uring_zcrx_area_reg, zcrx_area_reg);
    COIL_SIZE(io_uring_zcrx_cqe, zcrx_cqe);
    COIL_SIZE(io_uring_zcrx_ifq_reg, zcrx_ifq_reg);
    COIL_SIZE(io_uring_zcrx_offsets, zcrx_offsets);
    COIL_SIZE(io_uring_zcrx_rqe, zcrx_rqe);
}

#define COIL_SQE(member) COIL_MEMBER(io_uring_sqe, member, sqe, member)
TEST(Abi, SubmissionEntryHasTheLayoutOfTheSystemHeader) {
    COIL_SQE(opcode);
    COIL_SQE(flags);
    COIL_SQE(ioprio);
    COIL_SQE(fd);
    COIL_SQE(off);
    COIL_SQE(addr2);
    COIL_SQE(cmd_op);
    COIL_SQE(addr);
    COIL_SQE(splice_off_in);
    COIL_MEMBER(io_uring_sqe, level, sqe, sockopt.level);
    COIL_MEMBER(io_uring_sqe, optname, sqe, sockopt.optname);
    COIL_SQE(len);
    COIL_SQE(rw_flags);
    COIL_SQE(fsync_flags);
    COIL_SQE(poll_events);
    COIL_SQE(poll32_events);
    COIL_SQE(sync_range_flags);
    COIL_SQE(msg_flags);
    COIL_SQE(timeout_flags);
    COIL_SQE(accept_flags);
    COIL_SQE(cancel_flags);
    COIL_SQE(open_flags);
    COIL_SQE(statx_flags);
    COIL_SQE(fadvise_advice);
    COIL_SQE(splice_flags);
    COIL_SQE(rename_flags);
    COIL_SQE(unlink_flags);
    COIL_SQE(hardlink_flags);
    COIL_SQE(xattr_flags);
    COIL_SQE(msg_ring_flags);
    COIL_SQE(uring_cmd_flags);
    COIL_SQE(waitid_flags);
    COIL_SQE(futex_flags);
    COIL_SQE(install_fd_flags);
    COIL_SQE(nop_flags);
    COIL_SQE(pipe_flags);
    COIL_SQE(user_data);
    COIL_SQE(buf_index);
    COIL_SQE(buf_group);
    COIL_SQE(personality);
    COIL_SQE(splice_fd_in);
    COIL_SQE(file_index);
    COIL_SQE(zcrx_ifq_idx);
    COIL_SQE(optlen);
    COIL_SQE(addr_len);
    COIL_SQE(write_stream);
    COIL_SQE(addr3);
    COIL_SQE(attr_ptr);
    COIL_SQE(attr_type_mask);
    COIL_SQE(optval);
}

#define COIL_SAME(theirs, ours, member) COIL_MEMBER(theirs, member, ours, member)
TEST(Abi, OtherStructsHaveTheLayoutOfTheSystemHeader) {
    COIL_SAME(io_uring_cqe, cqe, user_data);
    COIL_SAME(io_uring_cqe, cqe, res);
    COIL_SAME(io_uring_cqe, cqe, flags);
    COIL_SAME(io_uring_params, params, sq_entries);
    COIL_SAME(io_uring_params, params, cq_entries);
    COIL_SAME(io_uring_params, params, flags);
    COIL_SAME(io_uring_params, params, sq_thread_cpu);
    COIL_SAME(io_uring_params, params, sq_thread_idle);
    COIL_SAME(io_uring_params, params, features);
    COIL_SAME(io_uring_params, params, wq_fd);
    COIL_SAME(io_uring_params, params, sq_off);
    COIL_SAME(io_uring_params, params, cq_off);
    COIL_SAME(io_sqring_offsets, sq_offsets, head);
    COIL_SAME(io_sqring_offsets, sq_offsets, tail);
    COIL_SAME(io_sqring_offsets, sq_offsets, ring_mask);
    COIL_SAME(io_sqring_offsets, sq_offsets, ring_entries);
    COIL_SAME(io_sqring_offsets, sq_offsets, flags);
    COIL_SAME(io_sqring_offsets, sq_offsets, dropped);
    COIL_SAME(io_sqring_offsets, sq_offsets, array);
    COIL_SAME(io_sqring_offsets, sq_offsets, user_addr);
    COIL_SAME(io_cqring_offsets, cq_offsets, head);
    COIL_SAME(io_cqring_offsets, cq_offsets, tail);
    COIL_SAME(io_cqring_offsets, cq_offsets, ring_mask);
    COIL_SAME(io_cqring_offsets, cq_offsets, ring_entries);
    COIL_SAME(io_cqring_offsets, cq_offsets, overflow);
    COIL_SAME(io_cqring_offsets, cq_offsets, cqes);
    COIL_SAME(io_cqring_offsets, cq_offsets, flags);
    COIL_SAME(io_cqring_offsets, cq_offsets, user_addr);
    COIL_SAME(io_uring_getevents_arg, getevents_arg, sigmask);
    COIL_SAME(io_uring_getevents_arg, getevents_arg, sigmask_sz);
    COIL_SAME(io_uring_getevents_arg, getevents_arg, min_wait_usec);
    COIL_SAME(io_uring_getevents_arg, getevents_arg, ts);
    COIL_SAME(__kernel_timespec, coil::uring::timespec, tv_sec);
    COIL_SAME(__kernel_timespec, coil::uring::timespec, tv_nsec);
    COIL_SAME(io_uring_files_update, files_update, offset);
    COIL_SAME(io_uring_files_update, files_update, fds);
    COIL_SAME(io_uring_rsrc_register, rsrc_register, nr);
    COIL_SAME(io_uring_rsrc_register, rsrc_register, flags);
    COIL_SAME(io_uring_rsrc_register, rsrc_register, data);
    COIL_SAME(io_uring_rsrc_register, rsrc_register, tags);
    COIL_SAME(io_uring_rsrc_update, rsrc_update, offset);
    COIL_SAME(io_uring_rsrc_update, rsrc_update, data);
    COIL_SAME(io_uring_rsrc_update2, rsrc_update2, offset);
    COIL_SAME(io_uring_rsrc_update2, rsrc_update2, data);
    COIL_SAME(io_uring_rsrc_update2, rsrc_update2, tags);
    COIL_SAME(io_uring_rsrc_update2, rsrc_update2, nr);
    COIL_SAME(io_uring_probe, probe, last_op);
    COIL_SAME(io_uring_probe, probe, ops_len);
    EXPECT_EQ(sizeof(io_uring_probe), offsetof(probe, ops));
    COIL_SAME(io_uring_probe_op, probe_op, op);
    COIL_SAME(io_uring_probe_op, probe_op, flags);
    COIL_SAME(io_uring_restriction, restriction, opcode);
    COIL_SAME(io_uring_restriction, restriction, register_op);
    COIL_SAME(io_uring_restriction, restriction, sqe_op);
    COIL_SAME(io_uring_restriction, restriction, sqe_flags);
    COIL_SAME(io_uring_clock_register, clock_register, clockid);
    COIL_SAME(io_uring_clone_buffers, clone_buffers, src_fd);
    COIL_SAME(io_uring_clone_buffers, clone_buffers, flags);
    COIL_SAME(io_uring_clone_buffers, clone_buffers, src_off);
    COIL_SAME(io_uring_clone_buffers, clone_buffers, dst_off);
    COIL_SAME(io_uring_clone_buffers, clone_buffers, nr);
    COIL_SAME(io_uring_buf, buf, addr);
    COIL_SAME(io_uring_buf, buf, len);
    COIL_SAME(io_uring_buf, buf, bid);
    COIL_SAME(io_uring_buf, buf, resv);
    COIL_SAME(io_uring_buf_ring, buf_ring, tail);
    COIL_SAME(io_uring_buf_reg, buf_reg, ring_addr);
    COIL_SAME(io_uring_buf_reg, buf_reg, ring_entries);
    COIL_SAME(io_uring_buf_reg, buf_reg, bgid);
    COIL_SAME(io_uring_buf_reg, buf_reg, flags);
    COIL_SAME(io_uring_buf_status, buf_status, buf_group);
    COIL_SAME(io_uring_buf_status, buf_status, head);
    COIL_SAME(io_uring_napi, napi, busy_poll_to);
    COIL_SAME(io_uring_napi, napi, prefer_busy_poll);
    COIL_SAME(io_uring_napi, napi, opcode);
    COIL_SAME(io_uring_napi, napi, op_param);
    COIL_SAME(io_uring_query_hdr, query_hdr, next_entry);
    COIL_SAME(io_uring_query_hdr, query_hdr, query_data);
    COIL_SAME(io_uring_query_hdr, query_hdr, query_op);
    COIL_SAME(io_uring_query_hdr, query_hdr, size);
    COIL_SAME(io_uring_query_hdr, query_hdr, result);
    COIL_SAME(io_uring_query_opcode, query_opcode, nr_request_opcodes);
    COIL_SAME(io_uring_query_opcode, query_opcode, nr_register_opcodes);
    COIL_SAME(io_uring_query_opcode, query_opcode, feature_flags);
    COIL_SAME(io_uring_query_opcode, query_opcode, ring_setup_flags);
    COIL_SAME(io_uring_query_opcode, query_opcode, enter_flags);
    COIL_SAME(io_uring_query_opcode, query_opcode, sqe_flags);
    COIL_SAME(io_uring_query_opcode, query_opcode, nr_query_opcodes);
    COIL_SAME(io_uring_sync_cancel_reg, sync_cancel_reg, addr);
    COIL_SAME(io_uring_sync_cancel_reg, sync_cancel_reg, fd);
    COIL_SAME(io_uring_sync_cancel_reg, sync_cancel_reg, flags);
    COIL_SAME(io_uring_sync_cancel_reg, sync_cancel_reg, timeout);
    COIL_SAME(io_uring_sync_cancel_reg, sync_cancel_reg, opcode);
    COIL_SAME(io_uring_file_index_range, file_index_range, off);
    COIL_SAME(io_uring_file_index_range, file_index_range, len);
    COIL_SAME(io_uring_recvmsg_out, recvmsg_out, namelen);
    COIL_SAME(io_uring_recvmsg_out, recvmsg_out, controllen);
    COIL_SAME(io_uring_recvmsg_out, recvmsg_out, payloadlen);
    COIL_SAME(io_uring_recvmsg_out, recvmsg_out, flags);
    COIL_SAME(io_uring_region_desc, region_desc, user_addr);
    COIL_SAME(io_uring_region_desc, region_desc, size);
    COIL_SAME(io_uring_region_desc, region_desc, flags);
    COIL_SAME(io_uring_region_desc, region_desc, id);
    COIL_SAME(io_uring_region_desc, region_desc, mmap_offset);
    COIL_SAME(io_uring_mem_region_reg, mem_region_reg, region_uptr);
    COIL_SAME(io_uring_mem_region_reg, mem_region_reg, flags);
    COIL_SAME(io_uring_reg_wait, reg_wait, ts);
    COIL_SAME(io_uring_reg_wait, reg_wait, min_wait_usec);
    COIL_SAME(io_uring_reg_wait, reg_wait, flags);
    COIL_SAME(io_uring_reg_wait, reg_wait, sigmask);
    COIL_SAME(io_uring_reg_wait, reg_wait, sigmask_sz);
    COIL_SAME(io_uring_attr_pi, attr_pi, app_tag);
    COIL_SAME(io_uring_attr_pi, attr_pi, addr);
    COIL_SAME(io_uring_attr_pi, attr_pi, seed);
    COIL_SAME(futex_waitv, futex_waiter, val);
    COIL_SAME(futex_waitv, futex_waiter, uaddr);
    COIL_SAME(futex_waitv, futex_waiter, flags);
    COIL_SAME(io_uring_zcrx_area_reg, zcrx_area_reg, addr);
    COIL_SAME(io_uring_zcrx_area_reg, zcrx_area_reg, len);
    COIL_SAME(io_uring_zcrx_area_reg, zcrx_area_reg, rq_area_token);
    COIL_SAME(io_uring_zcrx_area_reg, zcrx_area_reg, flags);
    COIL_SAME(io_uring_zcrx_area_reg, zcrx_area_reg, dmabuf_fd);
    COIL_SAME(io_uring_zcrx_cqe, zcrx_cqe, off);
    COIL_SAME(io_uring_zcrx_ifq_reg, zcrx_ifq_reg, if_idx);
    COIL_SAME(io_uring_zcrx_ifq_reg, zcrx_ifq_reg, if_rxq);
    COIL_SAME(io_uring_zcrx_ifq_reg, zcrx_ifq_reg, rq_entries);
    COIL_SAME(io_uring_zcrx_ifq_reg, zcrx_ifq_reg, flags);
    COIL_SAME(io_uring_zcrx_ifq_reg, zcrx_ifq_reg, area_ptr);
    COIL_SAME(io_uring_zcrx_ifq_reg, zcrx_ifq_reg, region_ptr);
    COIL_SAME(io_uring_zcrx_ifq_reg, zcrx_ifq_reg, offsets);
    COIL_SAME(io_uring_zcrx_ifq_reg, zcrx_ifq_reg, zcrx_id);
    COIL_SAME(io_uring_zcrx_offsets, zcrx_offsets, head);
    COIL_SAME(io_uring_zcrx_offsets, zcrx_offsets, tail);
    COIL_SAME(io_uring_zcrx_offsets, zcrx_offsets, rqes);
    COIL_SAME(io_uring_zcrx_rqe, zcrx_rqe, off);
    COIL_SAME(io_uring_zcrx_rqe, zcrx_rqe, len);
}

} // namespace
} // namespace theirs
