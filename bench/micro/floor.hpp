#pragma once

// The floors: the same mechanisms written by hand for a single purpose, with only the compiler's
// coroutines, an intrusive queue and malloc. No shutdown, no exceptions, no threads.

#include <coroutine>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <utility>

namespace floor_ {

struct node {
    node* next = nullptr;
    std::coroutine_handle<> handle;
};

struct queue {
    node* head = nullptr;
    node** tail = &head;

    void push(node& n) noexcept {
        n.next = nullptr;
        *tail = &n;
        tail = &n.next;
    }
    void run() {
        while (head != nullptr) {
            node& n = *head;
            head = n.next;
            if (head == nullptr) {
                tail = &head;
            }
            n.handle.resume();
        }
    }
};

inline queue ready;

struct yield : node {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept {
        handle = h;
        ready.push(*this);
    }
    void await_resume() const noexcept {}
};

struct malloc_frames {
    static void* operator new(std::size_t bytes) { return std::malloc(bytes); }
    static void operator delete(void* frame) noexcept { std::free(frame); }
};

/// A coroutine that is started from the queue and destroys itself.
struct detached {
    struct promise_type : malloc_frames, node {
        detached get_return_object() noexcept {
            handle = std::coroutine_handle<promise_type>::from_promise(*this);
            return {this};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() { std::terminate(); }
    };
    promise_type* promise;
    void start() const noexcept { ready.push(*promise); }
};

/// A lazy coroutine with an int result, awaited by symmetric transfer.
struct [[nodiscard]] task {
    struct promise_type : malloc_frames {
        task get_return_object() noexcept {
            return task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        struct final_awaiter {
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> h) const noexcept {
                return h.promise().continuation;
            }
            void await_resume() const noexcept {}
        };
        final_awaiter final_suspend() noexcept { return {}; }
        void return_value(int v) noexcept { value = v; }
        void unhandled_exception() { std::terminate(); }

        std::coroutine_handle<> continuation;
        int value = 0;
    };

    explicit task(std::coroutine_handle<promise_type> h) noexcept : handle(h) {}
    task(task&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    ~task() {
        if (handle) {
            handle.destroy();
        }
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) noexcept {
        handle.promise().continuation = parent;
        return handle;
    }
    int await_resume() const noexcept { return handle.promise().value; }

    std::coroutine_handle<promise_type> handle;
};

} // namespace floor_
