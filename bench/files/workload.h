/*
 * Random reads of 4 KiB, the same for every program: which block comes next, what a block must
 * hold, and what is measured. Each program provides its own loop. C and C++.
 *
 * Every 64-bit word of the file is the number of its block, so the sum of the words found shows
 * whether every read returned the requested block, in any order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { READ_SIZE = 4096, CANNOT_RUN_HERE = 77 };

struct workload {
    const char* program;
    unsigned depth;  /* reads in flight at a time */
    bool direct;     /* O_DIRECT */
    bool registered; /* file and buffers are registered with the ring */

    int fd;
    uint64_t blocks; /* in the file */
    char* buffers;   /* one block for each read in flight, side by side, page aligned */

    uint64_t reads;
    uint64_t left; /* reads not begun */
    uint64_t random;
    uint64_t asked_for, found; /* sums of block numbers */

    struct timespec wall, cpu;
    double user_s, system_s;
};

/* FILE [--depth N] [--reads N] [--seed N] [--direct] [--registered]. Opens the file and allocates
 * the buffers; exits with a message on failure. */
void workload_open(struct workload* w, int argc, char** argv);

/* Called directly before the first read and after the last one. */
void workload_begin(struct workload* w);
/* One JSON object on stdout; `enters` are calls of io_uring_enter, `setup` is how the ring was set
 * up. Returns the exit code. */
int workload_end(struct workload* w, uint64_t enters, const char* setup);

/* Exit with a message: after a failure, or because the program does not support the options. */
__attribute__((noreturn)) void workload_fail(const struct workload* w, const char* what, int error);
__attribute__((noreturn)) void workload_refuse(const struct workload* w, const char* why);

static inline char* workload_buffer(const struct workload* w, unsigned slot) {
    const uint64_t size = READ_SIZE;
    return w->buffers + size * slot;
}

/* The offset of the next read. Precondition: `left` > 0. */
static inline uint64_t workload_next_offset(struct workload* w) {
    --w->left;
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    const uint64_t block = ((w->random >> 32) * w->blocks) >> 32;
    w->asked_for += block;
    return block * READ_SIZE;
}

/* Called when a read has returned `result` bytes, or -errno. Adds up the block's last word, which a
 * short read would leave stale. */
static inline void workload_took(struct workload* w, const char* buffer, int result) {
    uint64_t word = 0;
    if (result != READ_SIZE) {
        workload_fail(w, "read", result < 0 ? -result : 0);
    }
    memcpy(&word, buffer + READ_SIZE - sizeof word, sizeof word);
    w->found += word;
}

#ifdef __cplusplus
}
#endif
