#pragma once

// Shared by the models of a loop: its nodes and its wake-up descriptor.

#include "model/check.hpp"

#include <coil/context/inbox.hpp>

#include <memory>

namespace coil_model {

struct letter {
    plain<letter*> next{nullptr};
    plain<int> sender{0};
    plain<int> number{0};
};

/// An object that can be destroyed in the middle of a model; relacy fails the test if its atomics
/// are used after that.
template <class T>
class mortal {
public:
    mortal() : it_(std::construct_at(reinterpret_cast<T*>(memory_))) {}
    mortal(const mortal&) = delete;
    mortal& operator=(const mortal&) = delete;
    ~mortal() {
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
using inbox = inbox_of<letter, Change>;

/// An eventfd. The kernel orders accesses to it, so it is never weakened.
class bell {
public:
    void ring() {
        count_.fetch_add(1);
        count_.wake();
    }
    /// Sleeps until it was rung; returns how often.
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
