/*
 * A ping server on epoll, one thread, by hand. `raw_epoll PORT [--edge]`
 * Level-triggered by default, which measured as fast as edge-triggered or a little faster. Either
 * way one receive per event is enough: a short read says that the socket is empty.
 */
#include "ping_peer.h"

#include <stdbool.h>
#include <sys/epoll.h>

enum { EVENTS = 256 };

static int epoll;
static uint32_t interest = EPOLLIN;
static const bool listener_mark; /* its address tags the listener's events */

struct connection {
    int fd;
    char buffer[RECEIVE_SIZE];
};

static void watch(int fd, uint32_t events, void* data) {
    struct epoll_event event = {.events = events, .data.ptr = data};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        die("epoll_ctl", errno);
    }
}

static void accept_all(int listener) {
    for (;;) {
        const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        struct connection* c = malloc(sizeof *c);
        if (c == NULL) {
            die("malloc", ENOMEM);
        }
        c->fd = fd;
        watch(fd, interest, c);
    }
}

static void drop(struct connection* c) {
    close(c->fd);
    free(c);
}

static void serve(struct connection* c) {
    for (;;) {
        const ssize_t n = recv(c->fd, c->buffer, RECEIVE_SIZE, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n <= 0 || send(c->fd, reply, REPLY_SIZE, MSG_NOSIGNAL) != REPLY_SIZE) {
            drop(c);
            return;
        }
        if (n < RECEIVE_SIZE) {
            return;
        }
    }
}

int main(int argc, char** argv) {
    if (argc == 3 && strcmp(argv[2], "--edge") == 0) {
        interest = EPOLLIN | EPOLLRDHUP | EPOLLET;
    } else if (argc != 2) {
        fprintf(stderr, "usage: raw_epoll PORT [--edge]\n");
        return 2;
    }
    raise_descriptor_limit();
    const int listener = listen_on(parse_number(argv[1], 65535), SOCK_NONBLOCK);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) {
        die("epoll_create1", errno);
    }
    watch(listener, EPOLLIN, (void*)&listener_mark);
    printf("raw_epoll: listening on port %s\n", argv[1]);
    fflush(stdout);

    struct epoll_event events[EVENTS];
    for (;;) {
        const int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; ++i) {
            if (events[i].data.ptr == (void*)&listener_mark) {
                accept_all(listener);
                continue;
            }
            struct connection* c = events[i].data.ptr;
            /* After a half-close an edge-triggered socket reports no second event for the end of
             * file. */
            if (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
                while (recv(c->fd, c->buffer, RECEIVE_SIZE, 0) > 0) {
                    if (send(c->fd, reply, REPLY_SIZE, MSG_NOSIGNAL) != REPLY_SIZE) {
                        break;
                    }
                }
                drop(c);
            } else {
                serve(c);
            }
        }
    }
}
