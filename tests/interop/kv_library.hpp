// A client library for tests, in the style of c-ares and of libcurl's multi interface: it has no
// threads and no loop, watches descriptors through its user, and calls back.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>

#include <unistd.h>

// [library]
struct kv_client;
using kv_watch = void (*)(int fd, bool reads, bool writes, void* user); // neither: stop watching
using kv_answer = void (*)(int status, const char* value, void* user);  // once for each kv_get()

constexpr int kv_timed_out = 1;
constexpr int kv_closed = 2;

kv_client* kv_open(int fd, kv_watch watch, void* user);
void kv_get(kv_client* of, const char* key, kv_answer answer, void* user);
void kv_process(kv_client* of, int fd, bool readable, bool writable);
long kv_next_timeout(const kv_client* of); // in milliseconds; -1: none
void kv_process_timeouts(kv_client* of);
void kv_close(kv_client* of); // answers all outstanding calls with kv_closed
// [/library]

using kv_clock = std::chrono::steady_clock;

constexpr auto kv_limit = std::chrono::milliseconds(30);

struct kv_call {
    kv_answer answer; // null: it has timed out
    void* user;
    kv_clock::time_point deadline;
};

struct kv_client {
    int fd;
    kv_watch watch;
    void* user;
    std::deque<kv_call> calls; // in the order of the answers
    std::string to_send;
    std::string received;

    void finish_first(int status, const char* value) {
        const kv_call first = calls.front();
        calls.pop_front();
        if (first.answer != nullptr) {
            first.answer(status, value, first.user);
        }
    }
};

inline kv_client* kv_open(int fd, kv_watch watch, void* user) {
    watch(fd, true, false, user);
    return new kv_client{fd, watch, user, {}, {}, {}};
}

inline void kv_get(kv_client* of, const char* key, kv_answer answer, void* user) {
    of->to_send += std::string(key) + '\n';
    of->calls.push_back({answer, user, kv_clock::now() + kv_limit});
    of->watch(of->fd, true, true, of->user);
}

inline void kv_process(kv_client* of, int fd, bool readable, bool writable) {
    if (writable && !of->to_send.empty()) {
        const ::ssize_t n = ::write(fd, of->to_send.data(), of->to_send.size());
        of->to_send.erase(0, static_cast<std::size_t>(std::max<::ssize_t>(n, 0)));
        if (of->to_send.empty()) {
            of->watch(fd, true, false, of->user);
        }
    }
    if (!readable) {
        return;
    }
    char buf[256];
    const ::ssize_t n = ::read(fd, buf, sizeof buf);
    if (n <= 0) {
        of->watch(fd, false, false, of->user);
        return;
    }
    of->received.append(buf, static_cast<std::size_t>(n));
    for (std::size_t end = 0; (end = of->received.find('\n')) != std::string::npos;) {
        const std::string line = of->received.substr(0, end);
        of->received.erase(0, end + 1);
        of->finish_first(0, line.c_str());
    }
}

inline long kv_next_timeout(const kv_client* of) {
    for (const kv_call& each : of->calls) {
        if (each.answer != nullptr) {
            const auto left =
                std::chrono::ceil<std::chrono::milliseconds>(each.deadline - kv_clock::now());
            return std::max<long>(static_cast<long>(left.count()), 0);
        }
    }
    return -1;
}

inline void kv_process_timeouts(kv_client* of) {
    const auto now = kv_clock::now();
    for (kv_call& each : of->calls) {
        if (each.answer != nullptr && each.deadline <= now) {
            const kv_answer answer = each.answer;
            each.answer = nullptr;
            answer(kv_timed_out, "", each.user);
        }
    }
}

inline void kv_close(kv_client* of) {
    of->watch(of->fd, false, false, of->user);
    while (!of->calls.empty()) {
        of->finish_first(kv_closed, "");
    }
    delete of;
}
