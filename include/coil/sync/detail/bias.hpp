#pragma once

#include <coil/core/detail/atomics.hpp>

#include <atomic>
#include <cstdint>

namespace coil::detail {

/// Biases an object to its first user, usually an event loop: as long as no other user comes, the
/// owner uses the object without atomic read-modify-write operations. The first other user revokes
/// the bias, once and for all; from then on the object is shared.
///
///     owner_     meaning
///     --------   ------------------------------------------------------------------------
///     unused     no user has come yet
///     (a user)   biased: only this user accesses the object, in sections
///     revoking   another user waits for the owner's section to end and converts the object
///     shared     accessed as if there was no bias
///
/// The owner sets `inside_`, executes a light fence and checks `owner_` again. A thread that
/// revokes the bias changes `owner_`, executes a heavy fence and then waits while `inside_` is
/// set. So either the owner sees that it is no longer the owner, or the other thread sees that it
/// is inside. A section is short and never waits.
///
/// Nothing is biased if the kernel has no heavy fence, or if the process had several threads when
/// it created its first context, and has no thread_pool (prepare_heavy_fence_if_cheap()).
///
/// A user is a pointer whose two low bits are clear, or null, which never becomes the owner. At any
/// time, at most one thread acts as a given user.
template <class Atomics = std_atomics>
class basic_bias {
public:
    using user = std::uintptr_t;

    /// If not `possible`, the object is shared from the beginning.
    explicit basic_bias(bool possible) noexcept : owner_(possible ? unused : shared) {}

    /// Begins a section of the owner if the last one has allowed the fast path. If it returns
    /// false, enter() decides.
    [[nodiscard, gnu::always_inline]] bool try_enter_fast(user me) noexcept {
        return fast_.load(std::memory_order_relaxed) == me && try_enter(me);
    }
    /// Whether try_enter_fast() succeeds, unless another user comes.
    [[nodiscard]] bool is_fast(user me) const noexcept {
        return fast_.load(std::memory_order_relaxed) == me;
    }
    /// Begins a section of the owner and returns true, or returns false if the object is shared.
    /// `convert` prepares the object for being shared; it is called at most once.
    template <class Convert>
    [[nodiscard]] bool enter(user me, Convert convert) noexcept {
        user seen = owner_.load(std::memory_order_acquire);
        while (seen != shared) {
            if (seen == me && me != unused) {
                if (try_enter(me)) {
                    return true;
                }
            } else if (seen == unused && me != unused && Atomics::can_bias()) {
                if (owner_.compare_exchange_weak(seen, me, std::memory_order_relaxed,
                                                 std::memory_order_relaxed)) {
                    seen = me;
                    continue;
                }
            } else if (seen == revoking) {
                Atomics::yield();
            } else if (revoke(seen, convert)) {
                return false;
            }
            seen = owner_.load(std::memory_order_acquire);
        }
        return false;
    }
    [[gnu::always_inline]] void leave() noexcept { inside_.store(0, std::memory_order_release); }
    /// Called in a section: whether try_enter_fast() may begin the next ones.
    void allow_fast(user me, bool allowed) noexcept {
        fast_.store(allowed ? me : nobody, std::memory_order_relaxed);
    }

    /// If true, everything that was done before the object was shared is visible.
    [[nodiscard, gnu::always_inline]] bool is_shared() const noexcept {
        return owner_.load(std::memory_order_acquire) == shared;
    }

private:
    static constexpr user unused = 0;
    static constexpr user shared = 1;
    static constexpr user revoking = 2;
    static constexpr user nobody = 3;

    [[nodiscard, gnu::always_inline]] bool try_enter(user me) noexcept {
        inside_.store(1, std::memory_order_relaxed);
        Atomics::light_fence();
        if (owner_.load(std::memory_order_relaxed) == me) [[likely]] {
            return true;
        }
        leave();
        return false;
    }
    template <class Convert>
    [[nodiscard]] bool revoke(user from, Convert& convert) noexcept {
        if (!owner_.compare_exchange_strong(from, revoking, std::memory_order_relaxed)) {
            return false;
        }
        if (from != unused) {
            Atomics::heavy_fence();
            while (inside_.load(std::memory_order_acquire) != 0) {
                Atomics::yield();
            }
        }
        convert();
        fast_.store(nobody, std::memory_order_relaxed);
        owner_.store(shared, std::memory_order_release);
        return true;
    }

    template <class V>
    using atomic = typename Atomics::template atomic<V>;

    atomic<user> fast_{nobody};
    atomic<user> owner_;
    atomic<user> inside_{0}; // written by the owner only
};

} // namespace coil::detail
