// Where a thread runs.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <sched.h>

inline void pin_this_thread(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(cpu), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) {
        std::perror("sched_setaffinity");
        std::exit(1);
    }
}
