#pragma once

// Every builder of submission entries: `prep::read(fd, buf, len, offset)` and its like. They return
// an sqe by value and compile to plain stores:
//
//     if (sqe* s = ring.acquire()) {
//         *s = prep::recv(fd, buf, sizeof buf, 0);
//         s->user_data = 42;
//         ring.commit(s);
//     }

#include <coil/uring/prep_core.hpp>
#include <coil/uring/prep_file.hpp>
#include <coil/uring/prep_net.hpp>
