/*
 * Echoes messages of 64 bytes, as a client pipelines them; by hand, in C with liburing.
 *
 * raw_messages PORT each|collected|multishot|incremental|bundle|send-bundle
 *
 *   each         receives a message, sends it, receives the next one
 *   collected    receives all that has arrived; one send answers it; receives again
 *   multishot    a multishot receive per connection, buffers of 4096 bytes from a ring
 *   incremental  the same; the kernel fills a buffer with several pieces (Linux 6.12)
 *   bundle       as incremental; a receive may fill several buffers (Linux 6.10)
 *   send-bundle  as incremental; each answer is a buffer of a ring of the connection, and one send
 *                takes all of them (Linux 6.10)
 *
 * With the last four, a connection has at most one send in flight, which answers everything that
 * has arrived until then and posts no completion of its own unless it fails or is short.
 */
#include "ping_peer.h"

#include <liburing.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>

enum mode { EACH, COLLECTED, MULTISHOT, INCREMENTAL, BUNDLE, SEND_BUNDLE };
enum kind { KIND_ACCEPT, KIND_RECEIVE, KIND_SEND }; /* the low bits of user_data */
enum {
    MESSAGE = 64,
    ROOM = 16384,
    SQ_ENTRIES = 4096,
    CQ_ENTRIES = 32768,
    GROUP = 1,
    BUFFERS = 512,
    BUFFER = 4096,
    ANSWERS = ROOM / MESSAGE,
    /* Names that older liburing headers lack; values are the kernel's ABI. */
    SETUP_SINGLE_ISSUER = 1u << 12,
    SETUP_DEFER_TASKRUN = 1u << 13,
    RECVSEND_BUNDLE = 1u << 4,
    PBUF_RING_INC = 2u,
    CQE_BUF_MORE = 1u << 4,
};

struct connection {
    int fd;
    bool sending, touched;
    unsigned held;    /* received and not answered, in `in` */
    unsigned waiting; /* answered, in `out`, and not yet passed to a send */
    char in[ROOM];
    char out[2][ROOM]; /* one is filled while the other is sent */
    unsigned filled;
    unsigned sent_size; /* of the send in flight, and the part that completions have reported */
    unsigned sent;
    struct io_uring_buf_ring* answers; /* send-bundle: the answers that wait for a send */
    unsigned group;
};

static struct io_uring ring;
static int listener;
static enum mode mode;
static struct io_uring_buf_ring* group;
static char* group_memory;
static unsigned offset_of[BUFFERS];
static struct connection* touched[4096];
static unsigned touched_count;
static unsigned last_group = GROUP;

static struct io_uring_sqe* next_sqe(void) {
    struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
    while (sqe == NULL) {
        io_uring_submit(&ring);
        sqe = io_uring_get_sqe(&ring);
    }
    return sqe;
}

static void queue_receive(struct connection* c) {
    struct io_uring_sqe* sqe = next_sqe();
    if (mode == EACH) {
        io_uring_prep_recv(sqe, c->fd, c->in, MESSAGE, MSG_WAITALL);
    } else if (mode == COLLECTED) {
        io_uring_prep_recv(sqe, c->fd, c->in + c->held, ROOM - c->held, 0);
    } else {
        io_uring_prep_recv_multishot(sqe, c->fd, NULL, 0, 0);
        sqe->flags |= IOSQE_BUFFER_SELECT;
        sqe->buf_group = GROUP;
        if (mode == BUNDLE) {
            sqe->ioprio |= RECVSEND_BUNDLE;
        }
    }
    sqe->user_data = (uint64_t)(uintptr_t)c | KIND_RECEIVE;
}

static void queue_accept(void) {
    struct io_uring_sqe* sqe = next_sqe();
    io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
    sqe->user_data = KIND_ACCEPT;
}

static void drop(struct connection* c) {
    /* Other operations of the connection may still be in flight, so its memory is kept. */
    if (c->fd >= 0) {
        close(c->fd);
        c->fd = -1;
    }
}

static void send_answers(struct connection* c) {
    struct io_uring_sqe* sqe = next_sqe();
    if (mode == SEND_BUNDLE) {
        io_uring_prep_send(sqe, c->fd, NULL, 0, MSG_NOSIGNAL | MSG_WAITALL);
        sqe->ioprio |= RECVSEND_BUNDLE;
        sqe->flags |= IOSQE_BUFFER_SELECT;
        sqe->buf_group = (uint16_t)c->group;
    } else {
        io_uring_prep_send(sqe, c->fd, c->out[c->filled], c->waiting, MSG_NOSIGNAL | MSG_WAITALL);
    }
    sqe->user_data = (uint64_t)(uintptr_t)c | KIND_SEND;
    c->filled ^= 1;
    c->sent_size = c->waiting;
    c->sent = 0;
    c->waiting = 0;
    c->sending = true;
}

/* Handles one message at a time, as every variant does. */
static void answer(struct connection* c) {
    unsigned done = 0;
    char* out = c->out[c->filled];
    while (c->held - done >= MESSAGE && c->waiting + MESSAGE <= ROOM) {
        memcpy(out + c->waiting, c->in + done, MESSAGE);
        if (mode == SEND_BUNDLE) {
            io_uring_buf_ring_add(c->answers, out + c->waiting, MESSAGE, 0, ANSWERS - 1,
                                  (int)(done / MESSAGE));
        }
        c->waiting += MESSAGE;
        done += MESSAGE;
    }
    if (mode == SEND_BUNDLE) {
        io_uring_buf_ring_advance(c->answers, (int)(done / MESSAGE));
    }
    c->held -= done;
    memmove(c->in, c->in + done, c->held);
}

static void give_back(unsigned id) {
    offset_of[id] = 0;
    io_uring_buf_ring_add(group, group_memory + (size_t)id * BUFFER, BUFFER, (unsigned short)id,
                          BUFFERS - 1, 0);
    io_uring_buf_ring_advance(group, 1);
}

/* Copies the data of a completion from the buffers of the group, and returns used-up buffers. */
static void take_data(struct connection* c, const struct io_uring_cqe* cqe) {
    unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
    unsigned left = (unsigned)cqe->res;
    if (c->held + left > ROOM) {
        die("a client has more in flight than a buffer holds", E2BIG);
    }
    while (left > 0) {
        const unsigned room = BUFFER - offset_of[id];
        const unsigned part = left < room ? left : room;
        memcpy(c->in + c->held, group_memory + (size_t)id * BUFFER + offset_of[id], part);
        c->held += part;
        left -= part;
        offset_of[id] += part;
        const bool partly_used = left == 0 && (cqe->flags & CQE_BUF_MORE) != 0;
        if (!partly_used) {
            give_back(id);
        }
        id = (id + 1) % BUFFERS; /* buffers are returned in the order in which they are used */
    }
}

static void on_receive(struct connection* c, const struct io_uring_cqe* cqe) {
    if (c->fd < 0) {
        return;
    }
    if (cqe->res <= 0) {
        if (cqe->res == -ENOBUFS) {
            queue_receive(c);
        } else {
            drop(c);
        }
        return;
    }
    if (mode == EACH || mode == COLLECTED) {
        c->held += (unsigned)cqe->res;
    } else {
        take_data(c, cqe);
        if (!(cqe->flags & IORING_CQE_F_MORE)) {
            queue_receive(c);
        }
    }
    if (!c->touched && touched_count < sizeof touched / sizeof *touched) {
        c->touched = true;
        touched[touched_count++] = c;
    }
}

static void on_send(struct connection* c, const struct io_uring_cqe* cqe) {
    /* A bundle that continues with further buffers posts a completion for each part. */
    if (cqe->res > 0) {
        c->sent += (unsigned)cqe->res;
    }
    if ((cqe->flags & IORING_CQE_F_MORE) != 0) {
        return;
    }
    c->sending = false;
    if (c->sent != c->sent_size) {
        drop(c);
    } else if (mode == EACH || mode == COLLECTED) {
        queue_receive(c);
    } else if (!c->touched) {
        c->touched = true;
        touched[touched_count++] = c;
    }
}

/* Sends answers once all completions have been handled: one send for all pieces that arrived. */
static void answer_touched(void) {
    for (unsigned i = 0; i < touched_count; ++i) {
        struct connection* c = touched[i];
        c->touched = false;
        if (c->fd < 0) {
            continue;
        }
        if (mode == SEND_BUNDLE && c->sending) {
            continue; /* the send could take answers that are added while it is in flight */
        }
        answer(c);
        if (c->waiting > 0 && !c->sending) {
            send_answers(c);
        } else if (!c->sending && mode == COLLECTED) {
            queue_receive(c);
        }
    }
    touched_count = 0;
}

static struct io_uring_buf_ring* new_group(unsigned id, unsigned entries, uint16_t flags) {
    void* memory = NULL;
    if (posix_memalign(&memory, 4096, entries * sizeof(struct io_uring_buf)) != 0) {
        die("posix_memalign", ENOMEM);
    }
    io_uring_buf_ring_init(memory);
    struct io_uring_buf_reg reg;
    memset(&reg, 0, sizeof reg);
    reg.ring_addr = (uint64_t)(uintptr_t)memory;
    reg.ring_entries = entries;
    reg.bgid = (uint16_t)id;
    reg.pad = flags; /* its name before Linux 6.1 */
    const int result = io_uring_register_buf_ring(&ring, &reg, 0);
    if (result != 0) {
        die("register buffer ring", -result);
    }
    return memory;
}

static void on_accept(const struct io_uring_cqe* cqe) {
    if (cqe->res >= 0) {
        struct connection* c = calloc(1, sizeof *c);
        if (c == NULL) {
            die("calloc", ENOMEM);
        }
        const int one = 1;
        setsockopt(cqe->res, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        c->fd = cqe->res;
        if (mode == SEND_BUNDLE) {
            c->group = ++last_group; /* closed connections keep their group: this is a benchmark */
            c->answers = new_group(c->group, ANSWERS, 0);
        }
        queue_receive(c);
    }
    if (!(cqe->flags & IORING_CQE_F_MORE)) {
        queue_accept();
    }
}

static void set_up_group(void) {
    group = new_group(GROUP, BUFFERS, mode == MULTISHOT ? 0 : PBUF_RING_INC);
    group_memory = malloc((size_t)BUFFERS * BUFFER);
    if (group_memory == NULL) {
        die("malloc", ENOMEM);
    }
    for (unsigned id = 0; id < BUFFERS; ++id) {
        give_back(id);
    }
}

static void handle_completions(void) {
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
            on_send(c, cqe);
            break;
        }
        ++count;
    }
    io_uring_cq_advance(&ring, count);
    answer_touched();
}

int main(int argc, char** argv) {
    const char* names[] = {"each",        "collected", "multishot",
                           "incremental", "bundle",    "send-bundle"};
    unsigned m = 0;
    while (argc == 3 && m < 6 && strcmp(argv[2], names[m]) != 0) {
        ++m;
    }
    if (argc != 3 || m == 6) {
        fprintf(stderr, "usage: raw_messages PORT each|collected|multishot|incremental|bundle|"
                        "send-bundle\n");
        return 2;
    }
    mode = (enum mode)m;
    raise_descriptor_limit();
    listener = listen_on(parse_number(argv[1], 65535), 0);
    struct io_uring_params params;
    memset(&params, 0, sizeof params);
    params.flags = SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
    params.cq_entries = CQ_ENTRIES;
    const int result = io_uring_queue_init_params(SQ_ENTRIES, &ring, &params);
    if (result != 0) {
        die("io_uring_setup", -result);
    }
    io_uring_register_ring_fd(&ring);
    if (mode >= MULTISHOT) {
        set_up_group();
    }
    queue_accept();
    for (;;) {
        io_uring_submit_and_wait(&ring, 1);
        handle_completions();
    }
}
