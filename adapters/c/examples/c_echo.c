/* A timer and an echo over a socket pair, in C. */

#define _DEFAULT_SOURCE

#include <coil_c.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct state {
    int client;
    int ticks;
    uint64_t timer;
};

/* The server: sends back what it receives. */
static void serve(coil_context* ctx, int fd, unsigned events, void* user) {
    char buffer[64];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    (void)events;
    (void)user;
    if (n <= 0) {
        puts("the client has closed its end");
        coil_unwatch(ctx, fd);
        close(fd);
    } else if (write(fd, buffer, (size_t)n) != n) {
        perror("write");
    }
}

/* The client: prints the reply. */
static void on_reply(coil_context* ctx, int fd, unsigned events, void* user) {
    char buffer[64];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    (void)ctx;
    (void)events;
    (void)user;
    printf("%.*s\n", n > 0 ? (int)n : 0, buffer);
}

static void tick(coil_context* ctx, void* user) {
    struct state* s = user;
    printf("tick %d\n", ++s->ticks);
    if (s->ticks == 2 && write(s->client, "hello", 5) != 5) {
        perror("write");
    }
    if (s->ticks == 3) {
        coil_timer_cancel(ctx, s->timer);
        coil_unwatch(ctx, s->client);
        close(s->client);
    }
}

int main(void) {
    coil_context* ctx;
    struct state s = {0, 0, 0};
    int ends[2];
    int error = coil_context_create(&ctx);
    if (error < 0) {
        fprintf(stderr, "c_echo: %s\n", strerror(-error));
        return 1;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        perror("c_echo: socketpair");
        return 1;
    }
    s.client = ends[1];
    coil_watch(ctx, ends[0], COIL_READABLE, serve, NULL);
    coil_watch(ctx, ends[1], COIL_READABLE, on_reply, NULL);
    coil_timer_start(ctx, 0, 100000000, tick, &s, &s.timer); /* every 100 ms */
    error = coil_context_run(ctx); /* until no descriptor is watched and no timer runs */
    if (error < 0) {
        fprintf(stderr, "c_echo: %s\n", strerror(-error));
    }
    coil_context_destroy(ctx);
    return error < 0;
}
