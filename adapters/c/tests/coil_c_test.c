/* The C interface, used from C. coil_c_test NAME runs one test. */

#define _DEFAULT_SOURCE

#include <coil_c.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define MILLISECOND 1000000u

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static coil_context* created(void) {
    coil_context* ctx = NULL;
    CHECK(coil_context_create(&ctx) == 0);
    CHECK(ctx != NULL);
    return ctx;
}

static void count(coil_context* ctx, void* user) {
    (void)ctx;
    ++*(int*)user;
}

static void stop(coil_context* ctx, void* user) {
    (void)user;
    CHECK(coil_context_stop(ctx) == 0);
}

static void refused_inside(coil_context* ctx, void* user) {
    CHECK(coil_context_run(ctx) == -EBUSY);
    CHECK(coil_context_run_once(ctx, 0) == -EBUSY);
    CHECK(coil_context_destroy(ctx) == -EBUSY);
    ++*(int*)user;
}

static void contexts(void) {
    coil_context* ctx = created();
    int calls = 0;
    CHECK(coil_c_version() == COIL_C_VERSION);
    CHECK(coil_context_create(NULL) == -EINVAL);
    CHECK(coil_context_run(NULL) == -EINVAL);
    CHECK(coil_context_stop(NULL) == -EINVAL);
    CHECK(coil_context_post(NULL, count, &calls) == -EINVAL);
    CHECK(coil_context_post(ctx, NULL, &calls) == -EINVAL);
    CHECK(coil_context_release(ctx) == -EINVAL);
    CHECK(coil_context_run(ctx) == 0); /* nothing to do */
    CHECK(coil_context_post(ctx, refused_inside, &calls) == 0);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(calls == 1);
    /* A stop before run() ends the next run() only. */
    CHECK(coil_context_post(ctx, count, &calls) == 0);
    CHECK(coil_context_stop(ctx) == 0);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(calls == 1);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(calls == 2);
    CHECK(coil_context_post(ctx, count, &calls) == 0); /* destroyed uncalled */
    CHECK(coil_timer_start(ctx, 0, 0, count, &calls, NULL) == 0);
    CHECK(coil_context_destroy(ctx) == 0);
    CHECK(calls == 2);
    CHECK(coil_context_destroy(NULL) == 0);
}

static void once(void) {
    coil_context* ctx = created();
    int calls = 0;
    uint64_t begin;
    CHECK(coil_context_run_once(ctx, 0) == 0);
    begin = now_ms();
    CHECK(coil_context_run_once(ctx, 20) == 0);
    CHECK(now_ms() - begin >= 19);
    CHECK(coil_context_post(ctx, count, &calls) == 0);
    CHECK(coil_context_post(ctx, count, &calls) == 0);
    CHECK(coil_context_run_once(ctx, -1) == 2);
    CHECK(coil_timer_start(ctx, 10 * MILLISECOND, 0, count, &calls, NULL) == 0);
    CHECK(coil_context_run_once(ctx, 0) == 0);
    CHECK(coil_context_run_once(ctx, 10000) == 1);
    CHECK(calls == 3);
    CHECK(coil_context_stop(ctx) == 0);
    CHECK(coil_context_run_once(ctx, -1) == 0);
    CHECK(coil_context_destroy(ctx) == 0);
}

static char order[64];

static void append(coil_context* ctx, void* user) {
    (void)ctx;
    strcat(order, (const char*)user);
}

static void timers(void) {
    coil_context* ctx = created();
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t c = 0;
    int calls = 0;
    const uint64_t begin = now_ms();
    CHECK(coil_timer_start(ctx, 30 * MILLISECOND, 0, append, "c", &c) == 0);
    CHECK(coil_timer_start(ctx, 10 * MILLISECOND, 0, append, "a", &a) == 0);
    CHECK(coil_timer_start(ctx, 20 * MILLISECOND, 0, append, "b", &b) == 0);
    CHECK(a != 0 && b != 0 && c != 0 && a != b && b != c && a != c);
    CHECK(coil_timer_cancel(ctx, b) == 0);
    CHECK(coil_timer_cancel(ctx, b) == -ENOENT);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(strcmp(order, "ac") == 0);
    CHECK(now_ms() - begin >= 29);
    CHECK(coil_timer_cancel(ctx, a) == -ENOENT);
    CHECK(coil_timer_cancel(ctx, 0) == -ENOENT);
    CHECK(coil_timer_start(ctx, 0, 0, NULL, NULL, NULL) == -EINVAL);
    CHECK(coil_timer_start(ctx, UINT64_MAX, UINT64_MAX, count, &calls, &a) == 0); /* never */
    CHECK(coil_context_run_once(ctx, 1) == 0);
    CHECK(coil_timer_cancel(ctx, a) == 0);
    CHECK(coil_context_destroy(ctx) == 0);
}

struct periodic {
    uint64_t id;
    uint64_t other;
    int calls;
};

static void ends_itself(coil_context* ctx, void* user) {
    struct periodic* p = user;
    if (++p->calls == 3) {
        CHECK(coil_timer_cancel(ctx, p->id) == 0);
        CHECK(coil_timer_cancel(ctx, p->other) == 0);
    }
}

static void starts_another(coil_context* ctx, void* user) {
    int* calls = user;
    if (++*calls < 100) {
        CHECK(coil_timer_start(ctx, 0, 0, starts_another, user, NULL) == 0);
    }
}

static void blocks(coil_context* ctx, void* user) {
    (void)ctx;
    ++*(int*)user;
    usleep(20000);
}

static void timer_callbacks(void) {
    coil_context* ctx = created();
    struct periodic p = {0, 0, 0};
    int calls = 0;
    uint64_t id = 0;
    CHECK(coil_timer_start(ctx, 0, MILLISECOND, ends_itself, &p, &p.id) == 0);
    CHECK(coil_timer_start(ctx, 10000 * (uint64_t)MILLISECOND, 0, count, &calls, &p.other) == 0);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(p.calls == 3 && calls == 0);

    /* A timer that a callback starts waits for the next round. */
    CHECK(coil_timer_start(ctx, 0, 0, starts_another, &calls, NULL) == 0);
    CHECK(coil_context_run_once(ctx, -1) == 1);
    CHECK(calls == 1);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(calls == 100);

    /* Intervals that have passed are left out. */
    calls = 0;
    CHECK(coil_timer_start(ctx, 0, 5 * MILLISECOND, blocks, &calls, &id) == 0);
    CHECK(coil_timer_start(ctx, 50 * MILLISECOND, 0, stop, NULL, NULL) == 0);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(calls >= 1 && calls <= 4);
    CHECK(coil_timer_cancel(ctx, id) == 0);
    CHECK(coil_context_destroy(ctx) == 0);
}

/* ---- posts */

struct poster {
    coil_context* ctx;
    int next;
    int received;
    int in_order;
};

struct posted {
    struct poster* by;
    int number;
};

static int all_received;

static void receive(coil_context* ctx, void* user) {
    struct posted* p = user;
    p->by->in_order &= p->number == p->by->received;
    ++p->by->received;
    if (++all_received == 4 * 5000) {
        CHECK(coil_context_stop(ctx) == 0);
    }
    free(p);
}

static void* posts_many(void* user) {
    struct poster* p = user;
    for (p->next = 0; p->next < 5000; ++p->next) {
        struct posted* one = malloc(sizeof *one);
        CHECK(one != NULL);
        one->by = p;
        one->number = p->next;
        CHECK(coil_context_post(p->ctx, receive, one) == 0);
    }
    return NULL;
}

static void posts(void) {
    coil_context* ctx = created();
    struct poster posters[4];
    pthread_t threads[4];
    int i;
    CHECK(coil_context_hold(ctx) == 0);
    for (i = 0; i < 4; ++i) {
        posters[i].ctx = ctx;
        posters[i].received = 0;
        posters[i].in_order = 1;
        CHECK(pthread_create(&threads[i], NULL, posts_many, &posters[i]) == 0);
    }
    CHECK(coil_context_run(ctx) == 0);
    for (i = 0; i < 4; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(posters[i].received == 5000 && posters[i].in_order);
    }
    CHECK(coil_context_release(ctx) == 0);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(coil_context_destroy(ctx) == 0);
}

/* ---- descriptors */

struct seen {
    int calls;
    unsigned events;
    int read_after; /* reads the byte in this call */
};

static void see(coil_context* ctx, int fd, unsigned events, void* user) {
    struct seen* s = user;
    char byte;
    s->events = events;
    if (++s->calls == s->read_after) {
        CHECK(read(fd, &byte, 1) == 1);
        CHECK(coil_context_stop(ctx) == 0);
    }
}

static void watches(void) {
    coil_context* ctx = created();
    struct seen s = {0, 0, 3};
    int pipe_ends[2];
    CHECK(pipe(pipe_ends) == 0);
    CHECK(coil_watch(ctx, pipe_ends[0], COIL_READABLE, see, &s) == 0);
    CHECK(coil_context_run_once(ctx, 5) == 0);
    CHECK(write(pipe_ends[1], "1", 1) == 1);
    CHECK(coil_context_run(ctx) == 0); /* level-triggered: until the byte is read */
    CHECK(s.calls == 3 && s.events == COIL_READABLE);
    CHECK(coil_context_run_once(ctx, 5) == 0);

    /* A paused watch is not called until it is resumed. */
    CHECK(coil_watch_change(ctx, pipe_ends[0], 0) == 0);
    CHECK(write(pipe_ends[1], "2", 1) == 1);
    CHECK(coil_context_run_once(ctx, 5) == 0);
    CHECK(coil_watch_change(ctx, pipe_ends[0], COIL_READABLE) == 0);
    s.calls = 0;
    s.read_after = 1;
    CHECK(coil_context_run_once(ctx, -1) == 1);

    CHECK(close(pipe_ends[1]) == 0);
    s.read_after = 0;
    CHECK(coil_context_run_once(ctx, -1) == 1);
    CHECK((s.events & COIL_HANG_UP) != 0);
    CHECK(coil_unwatch(ctx, pipe_ends[0]) == 0);
    CHECK(coil_context_run(ctx) == 0); /* nothing is left */
    CHECK(close(pipe_ends[0]) == 0);
    CHECK(coil_context_destroy(ctx) == 0);
}

static void watch_errors(void) {
    coil_context* ctx = created();
    struct seen s = {0, 0, 0};
    char name[] = "/tmp/coil-c-XXXXXX";
    const int file = mkstemp(name);
    int pipe_ends[2];
    CHECK(file >= 0 && unlink(name) == 0 && pipe(pipe_ends) == 0);
    CHECK(coil_watch(ctx, file, COIL_READABLE, see, &s) == -EPERM);
    CHECK(coil_watch(ctx, 1000000, COIL_READABLE, see, &s) == -EBADF);
    CHECK(coil_watch(ctx, -1, COIL_READABLE, see, &s) == -EBADF);
    CHECK(coil_watch(ctx, pipe_ends[0], 0, see, &s) == -EINVAL);
    CHECK(coil_watch(ctx, pipe_ends[0], 64, see, &s) == -EINVAL);
    CHECK(coil_watch(ctx, pipe_ends[0], COIL_READABLE, NULL, &s) == -EINVAL);
    CHECK(coil_watch(ctx, pipe_ends[0], COIL_READABLE, see, &s) == 0);
    CHECK(coil_watch(ctx, pipe_ends[0], COIL_READABLE, see, &s) == -EEXIST);
    CHECK(coil_watch_change(ctx, pipe_ends[0], 64) == -EINVAL);
    CHECK(coil_watch_change(ctx, pipe_ends[1], COIL_WRITABLE) == -ENOENT);
    CHECK(coil_unwatch(ctx, pipe_ends[1]) == -ENOENT);
    CHECK(coil_unwatch(ctx, pipe_ends[0]) == 0);
    CHECK(coil_unwatch(ctx, pipe_ends[0]) == -ENOENT);
    CHECK(coil_context_destroy(ctx) == 0);
    CHECK(close(file) == 0 && close(pipe_ends[0]) == 0 && close(pipe_ends[1]) == 0);
}

struct transfer {
    int peer;
    size_t sent;
    size_t received;
};

enum { transferred = 1 << 20 };

static void sends(coil_context* ctx, int fd, unsigned events, void* user) {
    static const char bytes[4096];
    struct transfer* t = user;
    ssize_t n;
    CHECK((events & COIL_WRITABLE) != 0);
    n = write(fd, bytes, sizeof bytes);
    CHECK(n > 0);
    t->sent += (size_t)n;
    if (t->sent >= transferred) {
        CHECK(coil_unwatch(ctx, fd) == 0);
        CHECK(shutdown(fd, SHUT_WR) == 0);
    }
}

static void receives(coil_context* ctx, int fd, unsigned events, void* user) {
    char bytes[1000];
    struct transfer* t = user;
    ssize_t n;
    CHECK((events & COIL_READABLE) != 0);
    n = read(fd, bytes, sizeof bytes);
    CHECK(n >= 0);
    t->received += (size_t)n;
    if (n == 0) {
        CHECK(coil_unwatch(ctx, fd) == 0);
    }
}

static void sockets(void) {
    coil_context* ctx = created();
    struct transfer t = {0, 0, 0};
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    CHECK(coil_watch(ctx, ends[0], COIL_WRITABLE, sends, &t) == 0);
    CHECK(coil_watch(ctx, ends[1], COIL_READABLE, receives, &t) == 0);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(t.sent >= transferred && t.received == t.sent);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    CHECK(coil_context_destroy(ctx) == 0);
}

/* ---- threads */

static void* stops(void* user) {
    usleep(2000);
    CHECK(coil_context_stop(user) == 0);
    return NULL;
}

static void* runs(void* user) {
    CHECK(coil_context_run(user) == 0);
    return NULL;
}

static void threads(void) {
    int i;
    for (i = 0; i < 50; ++i) { /* each context runs on two threads, one after the other */
        coil_context* ctx = created();
        pthread_t runner;
        pthread_t stopper;
        CHECK(coil_context_hold(ctx) == 0);
        CHECK(pthread_create(&stopper, NULL, stops, ctx) == 0);
        CHECK(coil_context_run(ctx) == 0);
        CHECK(pthread_join(stopper, NULL) == 0);
        CHECK(pthread_create(&runner, NULL, runs, ctx) == 0);
        CHECK(pthread_create(&stopper, NULL, stops, ctx) == 0);
        CHECK(pthread_join(runner, NULL) == 0);
        CHECK(pthread_join(stopper, NULL) == 0);
        CHECK(coil_context_destroy(ctx) == 0);
    }
}

/* ---- rounds: a callback changes what is due in the same round */

static void unwatches_both(coil_context* ctx, int fd, unsigned events, void* user) {
    int* fds = user; /* two descriptors, and the number of calls */
    (void)fd;
    (void)events;
    CHECK(coil_unwatch(ctx, fds[0]) == 0);
    CHECK(coil_unwatch(ctx, fds[1]) == 0);
    ++fds[2];
}

static void stops_in_callback(coil_context* ctx, void* user) {
    ++*(int*)user;
    CHECK(coil_context_stop(ctx) == 0);
}

static void rounds(void) {
    coil_context* ctx = created();
    int fds[3] = {0, 0, 0};
    int a[2];
    int b[2];
    int calls = 0;
    CHECK(pipe(a) == 0 && pipe(b) == 0);
    fds[0] = a[0];
    fds[1] = b[0];
    CHECK(write(a[1], "1", 1) == 1 && write(b[1], "1", 1) == 1);
    CHECK(coil_watch(ctx, a[0], COIL_READABLE, unwatches_both, fds) == 0);
    CHECK(coil_watch(ctx, b[0], COIL_READABLE, unwatches_both, fds) == 0);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(fds[2] == 1);
    CHECK(close(a[0]) == 0 && close(a[1]) == 0 && close(b[0]) == 0 && close(b[1]) == 0);

    /* A stop ends the round after the callback, and the rest is called later. */
    CHECK(coil_context_post(ctx, stops_in_callback, &calls) == 0);
    CHECK(coil_context_post(ctx, count, &calls) == 0);
    CHECK(coil_timer_start(ctx, 0, 0, count, &calls, NULL) == 0);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(calls == 1);
    CHECK(coil_context_run(ctx) == 0);
    CHECK(calls == 3);
    CHECK(coil_context_destroy(ctx) == 0);
}

static int open_descriptors(void) {
    DIR* dir = opendir("/proc/self/fd");
    int n = 0;
    CHECK(dir != NULL);
    while (readdir(dir) != NULL) {
        ++n;
    }
    closedir(dir);
    return n;
}

static void descriptors(void) {
    const int before = open_descriptors();
    int i;
    for (i = 0; i < 200; ++i) {
        coil_context* ctx = created();
        int calls = 0;
        CHECK(coil_context_post(ctx, count, &calls) == 0);
        CHECK(coil_context_run(ctx) == 0);
        CHECK(coil_context_destroy(ctx) == 0);
    }
    CHECK(open_descriptors() == before);
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } tests[] = {{"contexts", contexts},
                 {"once", once},
                 {"timers", timers},
                 {"timer_callbacks", timer_callbacks},
                 {"posts", posts},
                 {"watches", watches},
                 {"watch_errors", watch_errors},
                 {"sockets", sockets},
                 {"threads", threads},
                 {"rounds", rounds},
                 {"descriptors", descriptors}};
    size_t i;
    for (i = 0; argc == 2 && i < sizeof tests / sizeof tests[0]; ++i) {
        if (strcmp(argv[1], tests[i].name) == 0) {
            tests[i].run();
            return 0;
        }
    }
    fputs("usage: coil_c_test NAME\n", stderr);
    return 2;
}
