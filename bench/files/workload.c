#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

void workload_fail(const struct workload* w, const char* what, int error) {
    fprintf(stderr, "%s: %s: %s\n", w->program, what,
            error != 0 ? strerror(error) : "fewer bytes than asked for");
    exit(1);
}

void workload_refuse(const struct workload* w, const char* why) {
    fprintf(stderr, "%s: %s\n", w->program, why);
    exit(CANNOT_RUN_HERE);
}

static _Noreturn void misuse(const char* program) {
    fprintf(stderr, "usage: %s FILE [--depth N] [--reads N] [--seed N] [--direct] [--registered]\n",
            program);
    exit(2);
}

static const char* parse(struct workload* w, int argc, char** argv) {
    const char* path = NULL;
    for (int i = 1; i < argc; ++i) {
        if (argv[i][0] != '-') {
            path = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--direct") == 0) {
            w->direct = true;
            continue;
        }
        if (strcmp(argv[i], "--registered") == 0) {
            w->registered = true;
            continue;
        }
        char* end = NULL;
        const char* text = i + 1 < argc ? argv[i + 1] : "";
        const unsigned long long value = strtoull(text, &end, 10);
        if (end == text || *end != '\0' || value == 0) {
            misuse(argv[0]);
        }
        if (strcmp(argv[i], "--depth") == 0 && value <= 4096) {
            w->depth = (unsigned)value;
        } else if (strcmp(argv[i], "--reads") == 0) {
            w->reads = value;
        } else if (strcmp(argv[i], "--seed") == 0) {
            w->random = value;
        } else {
            misuse(argv[0]);
        }
        ++i;
    }
    if (path == NULL) {
        misuse(argv[0]);
    }
    return path;
}

void workload_open(struct workload* w, int argc, char** argv) {
    memset(w, 0, sizeof *w);
    const char* slash = strrchr(argv[0], '/');
    w->program = slash != NULL ? slash + 1 : argv[0];
    w->depth = 32;
    w->reads = 1000000;
    w->random = 88172645463325252u;
    const char* path = parse(w, argc, argv);
    w->left = w->reads;

    w->fd = open(path, O_RDONLY | O_CLOEXEC | (w->direct ? O_DIRECT : 0));
    if (w->fd < 0) {
        workload_fail(w, path, errno);
    }
    struct stat status;
    if (fstat(w->fd, &status) != 0) {
        workload_fail(w, path, errno);
    }
    w->blocks = (uint64_t)status.st_size / READ_SIZE;
    if (w->blocks == 0 || w->blocks > UINT32_MAX) {
        workload_refuse(w, "the file must hold at least one block and less than 16 TiB");
    }

    void* memory = NULL;
    const size_t size = (size_t)w->depth * READ_SIZE;
    if (posix_memalign(&memory, READ_SIZE, size) != 0) {
        workload_fail(w, "posix_memalign", ENOMEM);
    }
    memset(memory, 0xff, size); /* touched here, so that no read pays for a page fault */
    w->buffers = memory;
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

static double seconds_since(clockid_t clock, struct timespec begin) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) * 1e-9;
}

void workload_begin(struct workload* w) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    w->user_s = -seconds_of(usage.ru_utime);
    w->system_s = -seconds_of(usage.ru_stime);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &w->cpu);
    clock_gettime(CLOCK_MONOTONIC, &w->wall);
}

int workload_end(struct workload* w, uint64_t enters, const char* setup) {
    struct rusage usage;
    const double wall = seconds_since(CLOCK_MONOTONIC, w->wall);
    const double cpu = seconds_since(CLOCK_PROCESS_CPUTIME_ID, w->cpu);
    getrusage(RUSAGE_SELF, &usage);
    w->user_s += seconds_of(usage.ru_utime);
    w->system_s += seconds_of(usage.ru_stime);
    if (w->left != 0 || w->asked_for != w->found) {
        fprintf(stderr,
                "%s: wrong blocks: asked for a sum of %llu, found %llu, %llu reads not made\n",
                w->program, (unsigned long long)w->asked_for, (unsigned long long)w->found,
                (unsigned long long)w->left);
        return 1;
    }
    printf("{\"program\": \"%s\", \"setup\": \"%s\", \"depth\": %u, \"direct\": %s, "
           "\"registered\": %s, "
           "\"reads\": %llu, \"checksum\": %llu, \"seconds\": %.6f, \"reads_per_s\": %.1f, "
           "\"cpu_s\": %.6f, "
           "\"user_s\": %.6f, \"system_s\": %.6f, \"enters\": %llu}\n",
           w->program, setup, w->depth, w->direct ? "true" : "false",
           w->registered ? "true" : "false", (unsigned long long)w->reads,
           (unsigned long long)w->found, wall, (double)w->reads / wall, cpu, w->user_s, w->system_s,
           (unsigned long long)enters);
    return 0;
}
