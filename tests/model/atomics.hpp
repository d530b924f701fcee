#pragma once

// Relacy's atomics with the interface that coil's handshakes use (coil/core/detail/atomics.hpp),
// and plain variables that it checks for data races.

#include <atomic>
#include <source_location>

// The parts of <relacy/relacy.hpp> that do not redefine keywords by macros.
// clang-format off
#define RL_DO_ASSERT 1
#include <relacy/base.hpp>
#include <relacy/context.hpp>
#include <relacy/context_base_impl.hpp>
#include <relacy/backoff.hpp>
#include <relacy/atomic_fence.hpp>
#include <relacy/atomic.hpp>
#include <relacy/var.hpp>
#include <relacy/test_suite.hpp>
#include <relacy/stdlib/mutex.hpp>
#include <relacy/stdlib/condition_variable.hpp>
#include <relacy/stdlib/semaphore.hpp>
#include <relacy/stdlib/event.hpp>
// clang-format on

namespace coil_model {

inline rl::debug_info place(const std::source_location& at) {
    return {at.function_name(), at.file_name(), at.line()};
}

inline void require(bool holds, const char* what,
                    std::source_location at = std::source_location::current()) {
    if (!holds) {
        rl::ctx().fail_test(what, rl::test_result_user_assert_failed, place(at));
    }
}

enum class call { load, store, exchange, compare_weak, compare_strong, fetch_add, fetch_or };

/// The default `Change`: the memory orders are those of the code.
struct as_written {
    static constexpr std::memory_order order(call, std::memory_order said) { return said; }
    static constexpr bool is_torn(call) { return false; }
    static constexpr bool fails_without_cause = true; // compare_exchange_weak
};

/// Bounds a search that would not end otherwise.
struct without_spurious_failures : as_written {
    static constexpr bool fails_without_cause = false;
};

/// Makes each `Call` relaxed.
template <call Call>
struct relaxed : as_written {
    static constexpr std::memory_order order(call made, std::memory_order said) {
        return made == Call ? std::memory_order_relaxed : said;
    }
};

/// Replaces each `Call` by a load and a store.
template <call Call>
struct in_two_steps : as_written {
    static constexpr bool is_torn(call made) { return made == Call; }
};

template <class T, class Change>
class atomic {
public:
    using where = std::source_location;

    atomic(T value) : word_(value) {} // NOLINT(*-explicit-*)
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    T load(std::memory_order order = std::memory_order_seq_cst, where at = where::current()) const {
        return word_.load(weaken(call::load, order), place(at));
    }
    void store(T value, std::memory_order order = std::memory_order_seq_cst,
               where at = where::current()) {
        word_.store(value, weaken(call::store, order), place(at));
    }
    T exchange(T value, std::memory_order order = std::memory_order_seq_cst,
               where at = where::current()) {
        return word_.exchange(value, weaken(call::exchange, order), place(at));
    }
    bool compare_exchange_weak(T& expected, T desired, std::memory_order success,
                               std::memory_order failure, where at = where::current()) {
        return word_.compare_exchange(rl::bool_t<Change::fails_without_cause>(), expected, desired,
                                      weaken(call::compare_weak, success),
                                      weaken(call::compare_weak, failure), place(at));
    }
    bool compare_exchange_strong(T& expected, T desired,
                                 std::memory_order order = std::memory_order_seq_cst,
                                 where at = where::current()) {
        if (Change::is_torn(call::compare_strong)) {
            const T found = load(std::memory_order_seq_cst, at);
            if (found != expected) {
                expected = found;
                return false;
            }
            store(desired, std::memory_order_seq_cst, at);
            return true;
        }
        return word_.compare_exchange(rl::bool_t<false>(), expected, desired,
                                      weaken(call::compare_strong, order), place(at));
    }
    T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst,
                where at = where::current()) {
        if (Change::is_torn(call::fetch_add)) {
            const T found = load(std::memory_order_seq_cst, at);
            store(found + value, std::memory_order_seq_cst, at);
            return found;
        }
        return word_.fetch_add(value, weaken(call::fetch_add, order), place(at));
    }
    T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst,
                where at = where::current()) {
        return fetch_add(T{} - value, order, at);
    }
    T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst,
               where at = where::current()) {
        return word_.fetch_or(value, weaken(call::fetch_or, order), place(at));
    }
    T fetch_and(T value, std::memory_order order = std::memory_order_seq_cst,
                where at = where::current()) {
        return word_.fetch_and(value, weaken(call::fetch_or, order), place(at));
    }

    /// Sleeps until another thread calls wake(). No other thread runs between this thread's last
    /// access and the sleep.
    void sleep(where at = where::current()) { word_.wait(rl::ctx(), false, false, place(at)); }
    void wake(where at = where::current()) { word_.wake(rl::ctx(), 1, place(at)); }
    void wake_all(where at = where::current()) {
        word_.wake(rl::ctx(), rl::thread_id_t(-1), place(at));
    }

private:
    static rl::memory_order weaken(call made, std::memory_order said) {
        switch (Change::order(made, said)) {
        case std::memory_order_relaxed:
            return rl::mo_relaxed;
        case std::memory_order_consume:
        case std::memory_order_acquire:
            return rl::mo_acquire;
        case std::memory_order_release:
            return rl::mo_release;
        case std::memory_order_acq_rel:
            return rl::mo_acq_rel;
        case std::memory_order_seq_cst:
            break;
        }
        return rl::mo_seq_cst;
    }

    rl::atomic<T> word_;
};

/// A plain variable: relacy fails the test if two threads access it without ordering.
template <class T>
class plain {
public:
    plain() : value_(T{}) {}
    plain(T value) : value_(value) {} // NOLINT(*-explicit-*)
    plain(const plain&) = delete;
    plain& operator=(const plain& other) { // NOLINT(*-unhandled-self-assignment)
        set(other.get());
        return *this;
    }

    plain& operator=(T value) {
        set(value);
        return *this;
    }
    operator T() const { return get(); } // NOLINT(*-explicit-*)
    T operator->() const { return get(); }

    T get(std::source_location at = std::source_location::current()) const {
        return value_(place(at)).load();
    }
    void set(T value, std::source_location at = std::source_location::current()) {
        value_(place(at)).store(value);
    }

private:
    rl::var<T> value_;
};

/// The policy that replaces coil::detail::std_atomics.
template <class Change = as_written>
struct atomics {
    template <class T>
    using atomic = coil_model::atomic<T, Change>;

    using thread_id = plain<unsigned>;
    static unsigned this_thread() { return rl::thread_index() + 1; }
    static void yield(std::source_location at = std::source_location::current()) {
        rl::yield(1, place(at));
    }
};

} // namespace coil_model
