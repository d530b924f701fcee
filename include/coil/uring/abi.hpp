#pragma once

// The io_uring ABI as of Linux 6.18, declared here and not taken from <linux/io_uring.h>:
// distributions ship that header years behind the kernel they run. Names are the kernel's, without
// its prefixes; a constant's being declared says nothing about the running kernel (see probe.hpp).
// tests/uring/abi_test.cpp holds every value against the system's header as far as that goes.
// See io_uring(7), io_uring_setup(2), io_uring_enter(2), io_uring_register(2).

#include <coil/uring/abi/flags.hpp>
#include <coil/uring/abi/register.hpp>
#include <coil/uring/abi/setup.hpp>
#include <coil/uring/abi/sqe.hpp>
