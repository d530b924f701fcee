/* Shared by the TLS programs in C. */
#pragma once

#include "../net/peers/ping_peer.h"

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <time.h>

enum { BLOCK = 65536 };

static inline void die_of_tls(const char* what) {
    fprintf(stderr, "%s: ", what);
    ERR_print_errors_fp(stderr);
    fprintf(stderr, "\n");
    exit(1);
}

/* Shifts the addresses of later allocations by HEAP_OFFSET bytes. AES-GCM in OpenSSL 3.0 stores its
 * counter, a part of a block on the heap, every 96 bytes. A stream whose counter happens to lie
 * across two pages costs 6 % more, one across two cache lines less than that. */
static inline void shift_heap(void) {
    const char* const offset = getenv("HEAP_OFFSET");
    if (offset != NULL) {
        static void* volatile kept;
        kept = malloc(strtoul(offset, NULL, 10));
        (void)kept;
    }
}

static inline double clock_of(clockid_t clock) {
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) {
        die("clock_gettime", errno);
    }
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void no_delay(int fd) {
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}
