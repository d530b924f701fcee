#pragma once

#include <gtest/gtest.h>

// Limits, users and mounts are changed in a child process, which has a new blocking pool.
#if defined(__SANITIZE_THREAD__)
#define FS_TEST_FORKS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FS_TEST_FORKS 0
#endif
#endif
#if !defined(FS_TEST_FORKS)
#define FS_TEST_FORKS 1
#endif
#define FS_TEST_NEEDS_FORK()                                                                       \
    if (FS_TEST_FORKS == 0)                                                                        \
    GTEST_SKIP() << "ThreadSanitizer does not support threads in a child of a process with "       \
                    "threads"
