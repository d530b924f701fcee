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
