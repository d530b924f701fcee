// Wakes a thread without a runtime, through an eventfd.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <sys/eventfd.h>
#include <unistd.h>

class eventfd_counter {
public:
    eventfd_counter() : fd_(eventfd(0, EFD_CLOEXEC)) {
        if (fd_ < 0) {
            std::perror("eventfd");
            std::exit(1);
        }
    }
    ~eventfd_counter() { close(fd_); }
    eventfd_counter(const eventfd_counter&) = delete;
    eventfd_counter& operator=(const eventfd_counter&) = delete;

    void send() const {
        const std::uint64_t one = 1;
        if (write(fd_, &one, sizeof one) != sizeof one) {
            std::perror("write");
            std::exit(1);
        }
    }
    void await() const {
        std::uint64_t count = 0;
        if (read(fd_, &count, sizeof count) != sizeof count || count != 1) {
            std::perror("read");
            std::exit(1);
        }
    }

private:
    int fd_;
};
