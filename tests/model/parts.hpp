#pragma once

// Shared by the models of a loop: its nodes and its wake-up descriptor.

#include "model/check.hpp"

#include <coil/context/detail/inbox.hpp>

#include <memory>

namespace coil_model {

struct message {
    plain<message*> next{nullptr};
    plain<int> sender{0};
    plain<int> number{0};
};

/// An object that can be destroyed in the middle of a model; relacy fails the test if its atomics
/// are used after that.
template <class T>
class destroyable {
public:
    destroyable() : it_(std::construct_at(reinterpret_cast<T*>(memory_))) {}
    destroyable(const destroyable&) = delete;
    destroyable& operator=(const destroyable&) = delete;
    ~destroyable() {
        if (alive_) {
            destroy();
        }
    }

    T* operator->() { return it_; }
    T& operator*() { return *it_; }
    void destroy() {
        alive_ = false;
        it_->~T();
    }

private:
    alignas(T) unsigned char memory_[sizeof(T)];
    T* it_;
    bool alive_ = true;
};

template <class Node, class Change>
using inbox_of = coil::detail::basic_inbox<Node, atomics<Change>>;
template <class Change>
using inbox = inbox_of<message, Change>;

/// An eventfd. The kernel orders accesses to it, so it is never weakened.
class wake_up_fd {
public:
    void write() {
        count_.fetch_add(1);
        count_.wake();
    }
    /// Sleeps until it was written to; returns how often that was.
    unsigned wait() {
        for (;;) {
            if (const unsigned count = count_.exchange(0)) {
                return count;
            }
            count_.sleep();
        }
    }

private:
    atomic<unsigned, as_written> count_{0};
};

} // namespace coil_model
