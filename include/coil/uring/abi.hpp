#pragma once

// The io_uring ABI as of Linux 6.18 (and getsockname of 6.19), declared here rather than taken from
// <linux/io_uring.h>, because distributions ship a header that is years older than the kernel they
// run. Names are the kernel's, without its prefixes. That a constant is declared does not mean that
// the running kernel supports it (see probe.hpp). tests/uring/abi_test.cpp compares every value
// that the system's header defines. See io_uring(7), io_uring_setup(2), io_uring_enter(2),
// io_uring_register(2).

#include <coil/uring/abi/flags.hpp>
#include <coil/uring/abi/query.hpp>
#include <coil/uring/abi/register.hpp>
#include <coil/uring/abi/setup.hpp>
#include <coil/uring/abi/sqe.hpp>
#include <coil/uring/abi/zcrx.hpp>
