/*
 * The same reads without io_uring: a pool of threads that block in pread(2), as one would write it
 * by hand in C. Requests and completions go through two queues under one mutex; the main thread
 * takes all completions that are there and asks for as many new blocks. Options: see workload.h.
 */
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 16 };

struct slot {
    uint64_t offset;
    int result;
};

static struct workload work;
static struct slot* slots;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static unsigned *requests, *completions; /* slots: a ring, and a heap of those that are done */
static unsigned first, waiting, done;
static int ends;

static void* serve(void* nothing) {
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (waiting == 0 && !ends)
            pthread_cond_wait(&asked, &mutex);
        if (waiting == 0)
            break;
        const unsigned slot = requests[first];
        first = (first + 1) % work.depth;
        --waiting;
        pthread_mutex_unlock(&mutex);
        const ssize_t n =
            pread(work.fd, workload_buffer(&work, slot), READ_SIZE, (off_t)slots[slot].offset);
        slots[slot].result = n < 0 ? -errno : (int)n;
        pthread_mutex_lock(&mutex);
        completions[done++] = slot;
        if (done == 1)
            pthread_cond_signal(&answered);
    }
    pthread_mutex_unlock(&mutex);
    return nothing;
}

/* With the mutex. */
static void ask(unsigned slot) {
    slots[slot].offset = workload_next_offset(&work);
    requests[(first + waiting++) % work.depth] = slot;
    pthread_cond_signal(&asked);
}

int main(int argc, char** argv) {
    workload_open(&work, argc, argv);
    if (work.registered)
        workload_refuse(&work, "a pool of threads has nothing to register");
    slots = calloc(work.depth, sizeof *slots);
    requests = calloc(work.depth, sizeof *requests);
    completions = calloc(work.depth, sizeof *completions);
    unsigned* const taken = calloc(work.depth, sizeof *taken);
    if (slots == NULL || requests == NULL || completions == NULL || taken == NULL)
        workload_fail(&work, "memory", ENOMEM);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        const int error = pthread_create(&threads[i], NULL, serve, NULL);
        if (error != 0)
            workload_fail(&work, "pthread_create", error);
    }

    workload_begin(&work);
    unsigned under_way = 0;
    pthread_mutex_lock(&mutex);
    for (; under_way < work.depth && work.left > 0; ++under_way)
        ask(under_way);
    while (under_way > 0) {
        while (done == 0)
            pthread_cond_wait(&answered, &mutex);
        const unsigned count = done;
        memcpy(taken, completions, count * sizeof *taken);
        done = 0;
        pthread_mutex_unlock(&mutex);
        for (unsigned i = 0; i < count; ++i)
            workload_took(&work, workload_buffer(&work, taken[i]), slots[taken[i]].result);
        pthread_mutex_lock(&mutex);
        for (unsigned i = 0; i < count; ++i) {
            if (work.left > 0)
                ask(taken[i]);
            else
                --under_way;
        }
    }
    ends = 1;
    pthread_cond_broadcast(&asked);
    pthread_mutex_unlock(&mutex);
    const int status = workload_end(&work, 0, "16 threads");
    for (int i = 0; i < THREADS; ++i)
        pthread_join(threads[i], NULL);
    return status;
}
