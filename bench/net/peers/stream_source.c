/*
 * The sender of every stream measurement: connects, sends, waits until the receiver has closed, and
 * prints the throughput as one JSON object. `stream_source PORT MIB [--sendfile]`
 *
 * By default it writes 256 KiB at a time, as programs do. With --sendfile its pages are sent
 * without a copy, which leaves the receiver as the slower side.
 */
#include "ping_peer.h"

#include <sys/mman.h>
#include <sys/sendfile.h>
#include <time.h>

enum { BLOCK = 256 * 1024 };

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

int main(int argc, char** argv) {
    const int by_sendfile = argc == 4 && strcmp(argv[3], "--sendfile") == 0;
    if (argc != 3 && !by_sendfile) {
        fprintf(stderr, "usage: stream_source PORT MIB [--sendfile]\n");
        return 2;
    }
    const unsigned port = parse_number(argv[1], 65535);
    const unsigned long long total = (unsigned long long)parse_number(argv[2], 1u << 24) << 20;
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

    const int to = connect_to(port);
    const double begin = now();
    for (unsigned long long left = total; left > 0;) {
        const size_t size = left < BLOCK ? (size_t)left : BLOCK;
        off_t from = 0;
        const ssize_t n = by_sendfile ? sendfile(to, file, &from, size) : send(to, block, size, 0);
        if (n <= 0) {
            die("send", errno);
        }
        left -= (unsigned long long)n;
    }
    if (shutdown(to, SHUT_WR) != 0) {
        die("shutdown", errno);
    }
    /* At the end of the other direction the receiver has read everything. */
    while (recv(to, block, BLOCK, 0) > 0) {
        continue;
    }
    const double seconds = now() - begin;
    printf("{\"bytes\": %llu, \"seconds\": %.6f, \"mb_per_s\": %.1f}\n", total, seconds,
           (double)total / seconds / 1e6);
    return 0;
}
