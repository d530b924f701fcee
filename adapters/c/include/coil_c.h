#ifndef COIL_C_H
#define COIL_C_H

/**
 * \file
 * coil's event loop for C, and through it for the event loops of other languages: descriptors,
 * timers, and functions that other threads post. Link with coil::c (pkg-config: coil-c) and the
 * C++ standard library.
 *
 *     static void readable(coil_context* ctx, int fd, unsigned events, void* user) { ... }
 *
 *     coil_context* ctx;
 *     if (coil_context_create(&ctx) < 0) { ... }
 *     coil_watch(ctx, fd, COIL_READABLE, readable, NULL);
 *     coil_context_run(ctx);
 *     coil_context_destroy(ctx);
 *
 * Errors: functions that return an int return 0 or a positive number, or a negated errno(3) number.
 * Each may return -ENOMEM or -EINVAL. No function throws, sets errno, or calls abort().
 *
 * Threading: coil_context_post() and coil_context_stop() may be called on any thread at any time
 * between the creation and the destruction of the context. All other functions may be called by
 * one thread at a time: while the context runs, only by its callbacks.
 *
 * Callbacks run on the thread that runs the context, one at a time. They may call every function
 * except coil_context_run(), coil_context_run_once() and coil_context_destroy(), which then return
 * -EBUSY. They must neither throw nor longjmp(3) out of the callback.
 *
 * Stability: the types are opaque, and functions are only ever added. coil_c_version() returns the
 * version of the library.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this header: major * 10000 + minor * 100 + patch. */
#define COIL_C_VERSION 10000

/** The COIL_C_VERSION with which the library was built. */
int coil_c_version(void);

/** An event loop. */
typedef struct coil_context coil_context;

/** A timer's or a posted function's callback. */
typedef void (*coil_callback)(coil_context* ctx, void* user);

/* ---- contexts */

/** Creates a context. -EMFILE, -ENFILE: the process or the system has no descriptor left; -EPERM,
 *  -ENOSYS and others: neither io_uring nor epoll(7) can be used. */
int coil_context_create(coil_context** ctx);

/** Destroys a context, with its timers, watches and posted functions that have not run; does not
 *  close the watched descriptors. -EBUSY: the context is running. NULL: no effect. */
int coil_context_destroy(coil_context* ctx);

/** Calls callbacks until no timer, watch, posted function or hold is left, or until
 *  coil_context_stop(). Returns 0. -EBUSY: it is already running. Other errors are those of the
 *  kernel; the context can be run again. */
int coil_context_run(coil_context* ctx);

/** Waits until a callback is due, for at most timeout_ms milliseconds (0: not at all; negative:
 *  without a limit), and calls every callback that is due, once each. Returns their number; 0: the
 *  timeout has expired, or coil_context_stop() was called. Errors are those of coil_context_run().
 */
int coil_context_run_once(coil_context* ctx, int timeout_ms);

/** Makes coil_context_run() or coil_context_run_once() return after the current callback; if
 *  neither is running, the next call of one of them returns immediately. Callbacks that are due are
 *  not lost: they are called when the context runs again. Any thread. */
int coil_context_stop(coil_context* ctx);

/** Calls f(ctx, user) once on the thread that runs the context, after the functions that the
 *  calling thread has posted earlier. What the calling thread has done before the call happens
 *  before f. Any thread. */
int coil_context_post(coil_context* ctx, coil_callback f, void* user);

/** While there have been more holds than releases, coil_context_run() does not return for lack of
 *  work. For programs that wait for coil_context_post(). -EINVAL: a release without a hold. */
int coil_context_hold(coil_context* ctx);
int coil_context_release(coil_context* ctx);

/* ---- timers */

/** Calls f(ctx, user) after delay_ns nanoseconds and then, if interval_ns is not 0, every
 *  interval_ns nanoseconds; intervals that have already passed are skipped. With a delay of 0 it is
 *  called in the next iteration of the loop. If `id` is not NULL, *id is set to the number of the
 *  timer, which is never 0 and never reused. */
int coil_timer_start(coil_context* ctx, uint64_t delay_ns, uint64_t interval_ns, coil_callback f,
                     void* user, uint64_t* id);

/** Ends a timer: it is not called again, even if it is due. -ENOENT: there is no such timer, or it
 *  has been called and has no interval. */
int coil_timer_cancel(coil_context* ctx, uint64_t id);

/* ---- descriptors */

enum {
    COIL_READABLE = 1, /**< read(2), accept(2) and so on do not block */
    COIL_WRITABLE = 2, /**< write(2) does not block; connect(2) has completed or failed */
    COIL_ERROR = 4,    /**< an error is pending, or the peer has closed both directions */
    COIL_HANG_UP = 8   /**< the peer sends no more; data that has arrived can still be read */
};

/** The callback of a descriptor that is ready. `events` holds the requested events that have
 *  occurred. COIL_ERROR and, with COIL_READABLE, COIL_HANG_UP are reported without being requested.
 */
typedef void (*coil_watch_callback)(coil_context* ctx, int fd, unsigned events, void* user);

/** Watches a descriptor for COIL_READABLE, COIL_WRITABLE, or both. Level-triggered: f is called in
 *  each iteration of the loop in which the descriptor is ready. A descriptor can have one watch;
 *  call coil_unwatch() before closing it. -EEXIST: it is watched already; -EBADF: it is not open;
 *  -EPERM: it cannot be watched, for example because it is a regular file, which is always ready.
 */
int coil_watch(coil_context* ctx, int fd, unsigned events, coil_watch_callback f, void* user);

/** Replaces the events of a watch; 0 pauses it, except for COIL_ERROR. -ENOENT: it is not watched.
 */
int coil_watch_change(coil_context* ctx, int fd, unsigned events);

/** Ends a watch: its callback is not called again. -ENOENT: it is not watched. */
int coil_unwatch(coil_context* ctx, int fd);

#ifdef __cplusplus
}
#endif

#endif
