/*
 * The reference: a ping server on io_uring, written by hand in C with liburing.
 * One thread, one ring, or several of each. The defaults are the variant that measured fastest.
 *
 * raw_uring PORT [options]
 *   --mode turn       receive, send, receive: one operation in flight per connection (default)
 *   --mode link       send and next receive are one linked pair; the send posts no completion
 *   --mode skip       the same without the link: the receive does not wait for the send
 *   --mode multishot  a multishot receive per connection, buffers from a ring; silent sends
 *   --direct          accept into the ring's own file table
 *   --flags defer|coop|none   task-run flags (default defer; falls back when refused)
 *   --spin US         look for completions this long before parking (default: do not spin)
 *   --rings N         threads with a ring each; the first one accepts and passes the connections
 *                     to all of them in turn
 *   --min-wait N:US   wait for N completions or until US microseconds have passed, then for one
 */
#include "ping_peer.h"

#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Names that older liburing headers lack; values are the kernel's ABI. */
enum {
    SETUP_COOP_TASKRUN = 1u << 8,
    SETUP_TASKRUN_FLAG = 1u << 9,
    SETUP_SINGLE_ISSUER = 1u << 12,
    SETUP_DEFER_TASKRUN = 1u << 13,
    SQ_TASKRUN = 1u << 2,
    ENTERED_EXT_ARG = 1u << 3,
};

struct wait_arg { /* io_uring_getevents_arg with the field that Linux 6.12 gave a meaning */
    uint64_t sigmask;
    uint32_t sigmask_size;
    uint32_t min_wait_us;
    uint64_t timespec;
};

enum mode { MODE_TURN, MODE_LINK, MODE_SKIP, MODE_MULTISHOT };
enum kind {
    KIND_ACCEPT,
    KIND_RECEIVE,
    KIND_SEND,
    KIND_IGNORE,
    KIND_GIVEN
}; /* the low bits of user_data */

struct connection {
    int fd; /* or the index in the file table */
    char buffer[];
};

enum {
    SQ_ENTRIES = 4096,
    CQ_ENTRIES = 32768,
    GROUP = 1,
    GROUP_BUFFERS = 4096,
    GROUP_BUFFER_SIZE = 256,
    MAX_RINGS = 64
};

static _Thread_local struct io_uring ring;
static int ring_fds[MAX_RINGS];
static unsigned rings = 1, accepted;
static const char* flags = "defer";
static pthread_barrier_t all_set_up;
static int listener;
static enum mode mode = MODE_TURN;
static bool direct;
static unsigned spin_us;
static unsigned min_wait_events, min_wait_us;
static _Thread_local struct io_uring_buf_ring* group;
static _Thread_local char* group_memory;

static struct io_uring_sqe* next_sqe(void) {
    struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
    while (sqe == NULL) {
        io_uring_submit(&ring);
        sqe = io_uring_get_sqe(&ring);
    }
    return sqe;
}

static void tag(struct io_uring_sqe* sqe, struct connection* c, enum kind kind) {
    sqe->user_data = (uint64_t)(uintptr_t)c | kind;
    if (direct && kind != KIND_ACCEPT) {
        sqe->flags |= IOSQE_FIXED_FILE;
    }
}

static void queue_accept(void) {
    struct io_uring_sqe* sqe = next_sqe();
    if (direct) {
        io_uring_prep_multishot_accept_direct(sqe, listener, NULL, NULL, 0);
    } else {
        io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
    }
    tag(sqe, NULL, KIND_ACCEPT);
}

static void queue_receive(struct connection* c) {
    struct io_uring_sqe* sqe = next_sqe();
    if (mode == MODE_MULTISHOT) {
        io_uring_prep_recv_multishot(sqe, c->fd, NULL, 0, 0);
        sqe->flags |= IOSQE_BUFFER_SELECT;
        sqe->buf_group = GROUP;
    } else {
        io_uring_prep_recv(sqe, c->fd, c->buffer, RECEIVE_SIZE, 0);
    }
    tag(sqe, c, KIND_RECEIVE);
}

static void queue_send(struct connection* c, unsigned flags) {
    struct io_uring_sqe* sqe = next_sqe();
    io_uring_prep_send(sqe, c->fd, reply, REPLY_SIZE, MSG_NOSIGNAL);
    tag(sqe, c, KIND_SEND);
    sqe->flags |= (uint8_t)flags;
}

static void drop(struct connection* c) {
    struct io_uring_sqe* sqe = next_sqe();
    if (direct) {
        io_uring_prep_close_direct(sqe, (unsigned)c->fd);
    } else {
        io_uring_prep_close(sqe, c->fd);
    }
    sqe->user_data = KIND_IGNORE;
    free(c);
}

static void serve(int fd) {
    const size_t room = mode == MODE_MULTISHOT ? 0 : RECEIVE_SIZE;
    struct connection* c = malloc(sizeof *c + room);
    if (c == NULL) {
        die("malloc", ENOMEM);
    }
    c->fd = fd;
    queue_receive(c);
}

static void give(int fd, unsigned number) {
    struct io_uring_sqe* sqe = next_sqe();
    io_uring_prep_msg_ring(sqe, ring_fds[number], (unsigned)fd, KIND_GIVEN, 0);
    sqe->user_data = KIND_IGNORE;
}

static void on_accept(const struct io_uring_cqe* cqe) {
    if (cqe->res >= 0) {
        const unsigned number = accepted++ % rings;
        if (number == 0) {
            serve(cqe->res);
        } else {
            give(cqe->res, number);
        }
    }
    if (!(cqe->flags & IORING_CQE_F_MORE)) {
        queue_accept();
    }
}

static void give_back(unsigned id) {
    io_uring_buf_ring_add(group, group_memory + (size_t)id * GROUP_BUFFER_SIZE, GROUP_BUFFER_SIZE,
                          (unsigned short)id, GROUP_BUFFERS - 1, 0);
    io_uring_buf_ring_advance(group, 1);
}

static void on_receive(struct connection* c, const struct io_uring_cqe* cqe) {
    if (cqe->flags & IORING_CQE_F_BUFFER) {
        give_back(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
    }
    if (cqe->res <= 0) {
        if (mode == MODE_MULTISHOT && cqe->res == -ENOBUFS) {
            queue_receive(c);
        } else if (!(cqe->flags & IORING_CQE_F_MORE)) {
            drop(c);
        }
        return;
    }
    switch (mode) {
    case MODE_TURN:
        queue_send(c, 0);
        break;
    case MODE_LINK:
        /* A chain must not be split over two submissions. */
        if (io_uring_sq_space_left(&ring) < 2) {
            io_uring_submit(&ring);
        }
        queue_send(c, IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK);
        queue_receive(c);
        break;
    case MODE_SKIP:
        queue_send(c, IOSQE_CQE_SKIP_SUCCESS);
        queue_receive(c);
        break;
    case MODE_MULTISHOT:
        queue_send(c, IOSQE_CQE_SKIP_SUCCESS);
        if (!(cqe->flags & IORING_CQE_F_MORE)) {
            queue_receive(c);
        }
        break;
    }
}

static void on_send(struct connection* c, int result) {
    if (mode == MODE_TURN) {
        if (result == REPLY_SIZE) {
            queue_receive(c);
        } else {
            drop(c);
        }
    }
    /* In the other modes a send posts a completion only on failure; the receive, which is in flight
     * or was cancelled with the chain, ends the connection. */
}

static unsigned handle_completions(void) {
    unsigned head = 0, count = 0;
    struct io_uring_cqe* cqe = NULL;
    io_uring_for_each_cqe(&ring, head, cqe) {
        struct connection* c = (struct connection*)(uintptr_t)(cqe->user_data & ~(uint64_t)7);
        switch ((enum kind)(cqe->user_data & 7)) {
        case KIND_ACCEPT:
            on_accept(cqe);
            break;
        case KIND_RECEIVE:
            on_receive(c, cqe);
            break;
        case KIND_SEND:
            on_send(c, cqe->res);
            break;
        case KIND_GIVEN:
            serve(cqe->res);
            break;
        case KIND_IGNORE:
            break;
        }
        ++count;
    }
    io_uring_cq_advance(&ring, count);
    return count;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Submits; returns true if completions arrive within `spin_us`. */
static bool spin(void) {
    io_uring_submit_and_get_events(&ring);
    const uint64_t end = now_ns() + (uint64_t)spin_us * 1000u;
    while (io_uring_cq_ready(&ring) == 0) {
        if (*(volatile unsigned*)ring.sq.kflags & SQ_TASKRUN) {
            io_uring_get_events(&ring);
        }
        if (now_ns() >= end) {
            return io_uring_cq_ready(&ring) != 0;
        }
    }
    return true;
}

/* Publishes the filled entries, as liburing's submit does, and returns how many the kernel has not
 * consumed. */
static unsigned publish(void) {
    struct io_uring_sq* sq = &ring.sq;
    const unsigned mask = *sq->kring_mask;
    unsigned tail = *sq->ktail;
    while (sq->sqe_head != sq->sqe_tail) {
        sq->array[tail++ & mask] = sq->sqe_head++ & mask;
    }
    __atomic_store_n(sq->ktail, tail, __ATOMIC_RELEASE);
    return tail - __atomic_load_n(sq->khead, __ATOMIC_ACQUIRE);
}

/* One system call that submits and waits for a batch: liburing 2.3 does not support min_wait. */
static void wait_batch(void) {
    struct wait_arg arg = {0, 0, min_wait_us, 0};
    const int entered =
        io_uring_enter2((unsigned)ring.ring_fd, publish(), min_wait_events,
                        IORING_ENTER_GETEVENTS | ENTERED_EXT_ARG, (sigset_t*)&arg, sizeof arg);
    if (entered < 0 && entered != -EINTR && entered != -EBUSY && entered != -ETIME) {
        die("io_uring_enter with a minimal wait (Linux 6.12)", -entered);
    }
}

static void set_up(void) {
    const unsigned defer = SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN | SETUP_TASKRUN_FLAG;
    const unsigned coop = SETUP_COOP_TASKRUN | SETUP_TASKRUN_FLAG;
    const unsigned choices[] = {defer, coop, 0};
    const char* names[] = {"defer", "coop", "none"};
    size_t i = 0;
    while (i < 3 && strcmp(flags, names[i]) != 0) {
        ++i;
    }
    if (i == 3) {
        fprintf(stderr, "--flags: defer, coop or none\n");
        exit(2);
    }
    int result = -EINVAL;
    for (; i < 3 && result == -EINVAL; ++i) {
        struct io_uring_params params;
        memset(&params, 0, sizeof params);
        params.flags = choices[i] | IORING_SETUP_CQSIZE;
        params.cq_entries = CQ_ENTRIES;
        result = io_uring_queue_init_params(SQ_ENTRIES, &ring, &params);
    }
    if (result != 0) {
        die("io_uring_setup", -result);
    }
    io_uring_register_ring_fd(&ring);
}

static void set_up_group(void) {
    const size_t ring_size = GROUP_BUFFERS * sizeof(struct io_uring_buf);
    void* memory = NULL;
    if (posix_memalign(&memory, 4096, ring_size) != 0) {
        die("posix_memalign", ENOMEM);
    }
    group = memory;
    io_uring_buf_ring_init(group);
    struct io_uring_buf_reg reg;
    memset(&reg, 0, sizeof reg);
    reg.ring_addr = (uint64_t)(uintptr_t)group;
    reg.ring_entries = GROUP_BUFFERS;
    reg.bgid = GROUP;
    const int result = io_uring_register_buf_ring(&ring, &reg, 0);
    if (result != 0) {
        die("register buffer ring", -result);
    }
    group_memory = malloc((size_t)GROUP_BUFFERS * GROUP_BUFFER_SIZE);
    if (group_memory == NULL) {
        die("malloc", ENOMEM);
    }
    for (unsigned id = 0; id < GROUP_BUFFERS; ++id) {
        give_back(id);
    }
}

static void parse(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
        const char* value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--direct") == 0) {
            direct = true;
            continue;
        }
        ++i;
        if (strcmp(argv[i - 1], "--mode") == 0) {
            const char* names[] = {"turn", "link", "skip", "multishot"};
            unsigned m = 0;
            while (m < 4 && strcmp(value, names[m]) != 0) {
                ++m;
            }
            if (m == 4) {
                goto bad;
            }
            mode = (enum mode)m;
        } else if (strcmp(argv[i - 1], "--flags") == 0) {
            flags = value;
        } else if (strcmp(argv[i - 1], "--spin") == 0) {
            spin_us = parse_number(value, 1000000);
        } else if (strcmp(argv[i - 1], "--rings") == 0) {
            rings = parse_number(value, MAX_RINGS);
            if (rings == 0) {
                goto bad;
            }
        } else if (strcmp(argv[i - 1], "--min-wait") == 0) {
            if (sscanf(value, "%u:%u", &min_wait_events, &min_wait_us) != 2) {
                goto bad;
            }
        } else {
            goto bad;
        }
        continue;
    bad:
        fprintf(stderr, "bad option: %s %s\n", argv[i - 1], value);
        exit(2);
    }
}

/* The main function of each thread; `number` is its index. */
static void* run(void* number) {
    const unsigned mine = (unsigned)(uintptr_t)number;
    set_up();
    ring_fds[mine] = ring.ring_fd;
    if (direct) {
        const int result = io_uring_register_files_sparse(&ring, raise_descriptor_limit());
        if (result != 0) {
            die("register files", -result);
        }
    }
    if (mode == MODE_MULTISHOT) {
        set_up_group();
    }
    pthread_barrier_wait(&all_set_up);
    if (mine == 0) {
        queue_accept();
    }
    for (;;) {
        if (spin_us != 0 && spin()) {
            handle_completions();
            continue;
        }
        if (min_wait_events != 0) {
            wait_batch();
        } else {
            io_uring_submit_and_wait(&ring, 1);
        }
        handle_completions();
    }
}

int main(int argc, char** argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: raw_uring PORT [--mode turn|link|skip|multishot] [--direct] "
                        "[--flags defer|coop|none] [--spin US] [--min-wait N:US] [--rings N]\n");
        return 2;
    }
    parse(argc, argv);
    if (direct && rings > 1) {
        fprintf(
            stderr,
            "--direct: a direct descriptor of one ring cannot be used on another: use --rings 1\n");
        return 2;
    }
    raise_descriptor_limit();
    listener = listen_on(parse_number(argv[1], 65535), 0);
    pthread_barrier_init(&all_set_up, NULL, rings);
    printf("raw_uring: listening on port %s\n", argv[1]);
    fflush(stdout);
    for (unsigned i = 1; i < rings; ++i) {
        pthread_t thread;
        const int result = pthread_create(&thread, NULL, run, (void*)(uintptr_t)i);
        if (result != 0) {
            die("pthread_create", result);
        }
    }
    run(NULL);
}
