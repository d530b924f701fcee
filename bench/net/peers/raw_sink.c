/*
 * The floor for a program that receives one stream: accepts one connection and moves all it sends
 * to standard output. `raw_sink PORT [--splice]`: recv and write of 64 KiB with blocking calls, or
 * splice(2) through a pipe.
 */
#include "ping_peer.h"

#include <fcntl.h>

enum { CHUNK = 65536, PIPE = 1 << 20 };

static void write_all(const char* data, size_t size) {
    while (size > 0) {
        const ssize_t n = write(STDOUT_FILENO, data, size);
        if (n < 0) {
            die("write", errno);
        }
        data += n;
        size -= (size_t)n;
    }
}

static void copy(int from) {
    static char buffer[CHUNK];
    ssize_t n = 0;
    while ((n = recv(from, buffer, CHUNK, 0)) > 0) {
        write_all(buffer, (size_t)n);
    }
    if (n < 0) {
        die("recv", errno);
    }
}

static void move_pages(int from) {
    int ends[2];
    if (pipe(ends) != 0) {
        die("pipe", errno);
    }
    if (fcntl(ends[1], F_SETPIPE_SZ, PIPE) < 0) {
        die("F_SETPIPE_SZ", errno);
    }
    for (;;) {
        ssize_t held = splice(from, NULL, ends[1], NULL, PIPE, SPLICE_F_MOVE);
        if (held < 0) {
            die("splice from the socket", errno);
        }
        if (held == 0) {
            return;
        }
        while (held > 0) {
            const ssize_t n =
                splice(ends[0], NULL, STDOUT_FILENO, NULL, (size_t)held, SPLICE_F_MOVE);
            if (n <= 0) {
                die("splice to standard output", errno);
            }
            held -= n;
        }
    }
}

int main(int argc, char** argv) {
    const int by_splice = argc == 3 && strcmp(argv[2], "--splice") == 0;
    if (argc != 2 && !by_splice) {
        fprintf(stderr, "usage: raw_sink PORT [--splice]\n");
        return 2;
    }
    const int listener = listen_on(parse_number(argv[1], 65535), 0);
    const int from = accept(listener, NULL, NULL);
    if (from < 0) {
        die("accept", errno);
    }
    if (by_splice) {
        move_pages(from);
    } else {
        copy(from);
    }
    return 0;
}
