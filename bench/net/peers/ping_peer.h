/* Shared by the hand-written ping servers: the reply, and a listening socket on 127.0.0.1. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVE_SIZE = 1024, REPLY_SIZE = 5 };
static const char reply[REPLY_SIZE + 1] = "+OK\r\n";

static inline void die(const char* what, int error) {
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    exit(1);
}

static inline unsigned parse_number(const char* text, unsigned long max) {
    char* end = NULL;
    const unsigned long value = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value > max) {
        fprintf(stderr, "not a number up to %lu: %s\n", max, text);
        exit(2);
    }
    return (unsigned)value;
}

/* Raises the descriptor limit to the hard one: the 5000-connection round needs it. */
static inline unsigned raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        die("getrlimit", errno);
    }
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        die("setrlimit", errno);
    }
    return (unsigned)limit.rlim_cur;
}

static inline int listen_on(unsigned port, int type_flags) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | type_flags, 0);
    if (fd < 0) {
        die("socket", errno);
    }
    const int one = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0) {
        die("SO_REUSEADDR", errno);
    }
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr*)&address, sizeof address) != 0) {
        die("bind", errno);
    }
    if (listen(fd, 4096) != 0) {
        die("listen", errno);
    }
    signal(SIGPIPE, SIG_IGN);
    return fd;
}
