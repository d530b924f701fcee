/*
 * The reference: random reads on io_uring, written in C with liburing. One thread, one ring. Each
 * system call submits a read for each completion that the previous one returned, and waits for at
 * least one completion. Options: see workload.h.
 */
#include "workload.h"

#include <errno.h>
#include <liburing.h>
#include <sys/uio.h>

/* Names that older liburing headers lack; values are the kernel's ABI. */
enum {
    SETUP_COOP_TASKRUN = 1u << 8,
    SETUP_SINGLE_ISSUER = 1u << 12,
    SETUP_DEFER_TASKRUN = 1u << 13,
};

static struct workload work;
static struct io_uring ring;

static const char* set_up(void) {
    const struct {
        unsigned flags;
        const char* name;
    } choices[] = {{SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN, "defer"},
                   {SETUP_COOP_TASKRUN, "coop"},
                   {0, "none"}};
    for (size_t i = 0; i < 3; ++i) {
        struct io_uring_params params;
        memset(&params, 0, sizeof params);
        params.flags = choices[i].flags;
        const int result = io_uring_queue_init_params(work.depth, &ring, &params);
        if (result == 0) {
            io_uring_register_ring_fd(&ring);
            return choices[i].name;
        }
        if (result != -EINVAL) {
            workload_fail(&work, "io_uring_setup", -result);
        }
    }
    workload_fail(&work, "io_uring_setup", EINVAL);
}

/* One file and one buffer, which holds all blocks. */
static void register_all(void) {
    const struct iovec buffer = {work.buffers, (size_t)work.depth * READ_SIZE};
    int result = io_uring_register_files(&ring, &work.fd, 1);
    if (result != 0) {
        workload_fail(&work, "registering the file", -result);
    }
    result = io_uring_register_buffers(&ring, &buffer, 1);
    if (result != 0) {
        workload_fail(&work, "registering the buffers (RLIMIT_MEMLOCK)", -result);
    }
}

/* There is an entry for each slot, so the queue is never full. */
static inline void queue_read(unsigned slot) {
    struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
    const uint64_t offset = workload_next_offset(&work);
    if (work.registered) {
        io_uring_prep_read_fixed(sqe, 0, workload_buffer(&work, slot), READ_SIZE, offset, 0);
        sqe->flags = IOSQE_FIXED_FILE;
    } else {
        io_uring_prep_read(sqe, work.fd, workload_buffer(&work, slot), READ_SIZE, offset);
    }
    sqe->user_data = slot;
}

int main(int argc, char** argv) {
    workload_open(&work, argc, argv);
    const char* setup = set_up();
    if (work.registered) {
        register_all();
    }

    workload_begin(&work);
    unsigned under_way = 0;
    uint64_t enters = 0;
    for (; under_way < work.depth && work.left > 0; ++under_way) {
        queue_read(under_way);
    }
    while (under_way > 0) {
        const int result = io_uring_submit_and_wait(&ring, 1);
        if (result < 0 && result != -EINTR) {
            workload_fail(&work, "io_uring_enter", -result);
        }
        ++enters;
        unsigned head = 0, count = 0;
        struct io_uring_cqe* cqe = NULL;
        io_uring_for_each_cqe(&ring, head, cqe) {
            const unsigned slot = (unsigned)cqe->user_data;
            workload_took(&work, workload_buffer(&work, slot), cqe->res);
            if (work.left > 0) {
                queue_read(slot);
            } else {
                --under_way;
            }
            ++count;
        }
        io_uring_cq_advance(&ring, count);
    }
    return workload_end(&work, enters, setup);
}
