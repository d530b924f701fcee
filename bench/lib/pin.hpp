// Pins threads to CPUs.
#pragma once

#include <concepts>
#include <cstdio>
#include <cstdlib>

#include <sched.h>

// Also applies to threads that this one starts later.
template <std::same_as<int>... Cpus>
void pin_this_thread(Cpus... cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : {cpus...}) {
        CPU_SET(static_cast<unsigned>(cpu), &set);
    }
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        std::perror("sched_setaffinity");
        std::exit(1);
    }
}
