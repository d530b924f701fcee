/*
 * The reads on libuv's thread pool, a usual way to read files without io_uring. Options: see
 * workload.h; UV_THREADPOOL_SIZE in the environment (by default like pool_reads: four times the
 * number of processors, 8 to 64).
 */
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

struct read {
    uv_fs_t request;
    uv_buf_t buffer;
};

static struct workload work;

static void took(uv_fs_t* request);

static void begin(struct read* r) {
    const int error = uv_fs_read(uv_default_loop(), &r->request, work.fd, &r->buffer, 1,
                                 (int64_t)workload_next_offset(&work), took);
    if (error != 0) {
        workload_fail(&work, "uv_fs_read", -error);
    }
}

static void took(uv_fs_t* request) {
    struct read* r = request->data;
    const int result = (int)request->result;
    uv_fs_req_cleanup(request);
    workload_took(&work, r->buffer.base, result);
    if (work.left > 0) {
        begin(r);
    }
}

/* Counts all processors, even if this program is pinned to one, as the other pools do. */
static void choose_threads(void) {
    char text[16];
    long threads = 4 * sysconf(_SC_NPROCESSORS_ONLN);
    threads = threads < 8 ? 8 : threads > 64 ? 64 : threads;
    snprintf(text, sizeof text, "%ld", threads);
    setenv("UV_THREADPOOL_SIZE", text, 0);
}

int main(int argc, char** argv) {
    choose_threads();
    workload_open(&work, argc, argv);
    if (work.registered) {
        workload_refuse(&work, "libuv does not support registered files and buffers");
    }
    struct read* reads = calloc(work.depth, sizeof *reads);
    if (reads == NULL) {
        workload_fail(&work, "memory", ENOMEM);
    }
    workload_begin(&work);
    for (unsigned slot = 0; slot < work.depth && work.left > 0; ++slot) {
        reads[slot].request.data = &reads[slot];
        reads[slot].buffer = uv_buf_init(workload_buffer(&work, slot), READ_SIZE);
        begin(&reads[slot]);
    }
    const int error = uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    if (error != 0) {
        workload_fail(&work, "uv_run", 0);
    }
    const int code = workload_end(&work, 0, "libuv");
    free(reads);
    return code;
}
