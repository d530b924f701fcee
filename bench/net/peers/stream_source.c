/*
 * The sender of every stream measurement: connects, sends, waits until the receiver has closed, and
 * prints the throughput as one JSON object.
 *
 *     stream_source PORT MIB [--sendfile]
 *     stream_source PORT --seconds S [--receiver PID] [--sendfile]
 *
 * By default it writes 256 KiB at a time, as programs do. With --sendfile its pages are sent
 * without a copy, which leaves the receiver as the slower side.
 *
 * --seconds sends for S seconds and also prints the bytes of each second, and with --receiver the
 * CPU time of that process in each second. A second in which the sender was blocked has no bytes.
 * What the kernel's buffers hold counts as sent; they hold a few MiB.
 */
#include "ping_peer.h"

#include <sys/mman.h>
#include <sys/sendfile.h>
#include <time.h>

enum { BLOCK = 256 * 1024, MOST_SECONDS = 86400 };

struct options {
    unsigned port;
    unsigned long long total; /* 0: `seconds` ends the stream */
    unsigned seconds;
    pid_t receiver; /* 0: its CPU time is not read */
    int by_sendfile;
};

/* What each second of the stream had. */
struct samples {
    unsigned count, capacity;
    double next; /* the end of the current second */
    unsigned long long bytes;
    double cpu; /* the receiver's, at the end of the last second */
    clockid_t clock;
    unsigned long long* sent;
    double* cpu_of;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int connect_to(unsigned port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        die("socket", errno);
    }
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) {
        die("connect", errno);
    }
    return fd;
}

static double cpu_now(const struct samples* s) {
    struct timespec t;
    if (s->clock == 0) {
        return 0;
    }
    if (clock_gettime(s->clock, &t) != 0) {
        die("the receiver's CPU clock (has it ended?)", errno);
    }
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void samples_begin(struct samples* s, const struct options* o, double begin) {
    memset(s, 0, sizeof *s);
    s->capacity = o->seconds;
    s->next = begin + 1;
    if (o->receiver != 0) {
        const int error = clock_getcpuclockid(o->receiver, &s->clock);
        if (error != 0) {
            die("the receiver's CPU clock", error);
        }
        s->cpu = cpu_now(s);
    }
    s->sent = calloc(o->seconds, sizeof *s->sent);
    s->cpu_of = calloc(o->seconds, sizeof *s->cpu_of);
    if (s->sent == NULL || s->cpu_of == NULL) {
        die("calloc", ENOMEM);
    }
}

/*
 * Called after each send. Ends the seconds that are over, with the bytes of earlier sends; if there
 * are several, the later ones passed while the send was blocked.
 */
static void samples_add(struct samples* s, double at, unsigned long long bytes) {
    while (s->count < s->capacity && at >= s->next) {
        const double cpu = cpu_now(s);
        s->sent[s->count] = s->bytes;
        s->cpu_of[s->count] = cpu - s->cpu;
        s->cpu = cpu;
        s->bytes = 0;
        s->next += 1;
        ++s->count;
    }
    s->bytes += bytes;
}

static void samples_print(const struct samples* s) {
    printf(", \"bytes_of_seconds\": [");
    for (unsigned i = 0; i < s->count; ++i) {
        printf("%s%llu", i == 0 ? "" : ", ", s->sent[i]);
    }
    printf("]");
    if (s->clock != 0) {
        printf(", \"receiver_cpu_s_of_seconds\": [");
        for (unsigned i = 0; i < s->count; ++i) {
            printf("%s%.6f", i == 0 ? "" : ", ", s->cpu_of[i]);
        }
        printf("]");
    }
}

static void misuse(void) {
    fprintf(stderr, "usage: stream_source PORT MIB|--seconds S [--receiver PID] [--sendfile]\n");
    exit(2);
}

static struct options parse_options(int argc, char** argv) {
    struct options o = {0};
    if (argc < 3) {
        misuse();
    }
    o.port = parse_number(argv[1], 65535);
    for (int i = 2; i < argc; ++i) {
        if (strcmp(argv[i], "--sendfile") == 0) {
            o.by_sendfile = 1;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            o.seconds = parse_number(argv[++i], MOST_SECONDS);
        } else if (strcmp(argv[i], "--receiver") == 0 && i + 1 < argc) {
            o.receiver = (pid_t)parse_number(argv[++i], 1u << 30);
        } else if (i == 2) {
            o.total = (unsigned long long)parse_number(argv[i], 1u << 24) << 20;
        } else {
            misuse();
        }
    }
    if ((o.total == 0) == (o.seconds == 0)) {
        misuse();
    }
    return o;
}

/* Sends `total` bytes, or until the samples are complete. Returns the number of bytes. */
static unsigned long long send_all(int to, const struct options* o, int file, const char* block,
                                   struct samples* samples) {
    unsigned long long sent = 0;
    while (o->seconds != 0 ? samples->count < o->seconds : sent < o->total) {
        const unsigned long long left = o->seconds != 0 ? BLOCK : o->total - sent;
        const size_t size = left < BLOCK ? (size_t)left : BLOCK;
        off_t from = 0;
        const ssize_t n =
            o->by_sendfile ? sendfile(to, file, &from, size) : send(to, block, size, 0);
        if (n <= 0) {
            die("send", errno);
        }
        sent += (unsigned long long)n;
        if (o->seconds != 0) {
            samples_add(samples, now(), (unsigned long long)n);
        }
    }
    return sent;
}

int main(int argc, char** argv) {
    const struct options o = parse_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);

    char* block = malloc(BLOCK);
    if (block == NULL) {
        die("malloc", ENOMEM);
    }
    for (size_t i = 0; i < BLOCK; ++i) {
        block[i] = (char)('!' + i % 90);
    }
    const int file = memfd_create("block", MFD_CLOEXEC);
    if (file < 0 || write(file, block, BLOCK) != BLOCK) {
        die("memfd", errno);
    }

    const int to = connect_to(o.port);
    const double begin = now();
    struct samples samples;
    samples_begin(&samples, &o, begin);
    const unsigned long long total = send_all(to, &o, file, block, &samples);
    if (shutdown(to, SHUT_WR) != 0) {
        die("shutdown", errno);
    }
    /* At the end of the other direction the receiver has read everything. */
    while (recv(to, block, BLOCK, 0) > 0) {
        continue;
    }
    const double seconds = now() - begin;
    printf("{\"bytes\": %llu, \"seconds\": %.6f, \"mb_per_s\": %.1f", total, seconds,
           (double)total / seconds / 1e6);
    if (o.seconds != 0) {
        samples_print(&samples);
    }
    printf("}\n");
    return 0;
}
