#pragma once

#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/detail/result.hpp>
#include <coil/interleave/detail/frame_array.hpp>
#include <coil/interleave/detail/lookup_arena.hpp>
#include <coil/interleave/detail/lookup_loop.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

// Where the results of lookups go: the sinks of lookup_loop.

namespace coil::detail {

/// Assigns the result of key i to `first[i]`.
template <class R, class I>
class store_at {
public:
    explicit store_at(I first) : first_(std::move(first)) {}
    void deliver(std::size_t index, result<R>& outcome) {
        first_[static_cast<std::iter_difference_t<I>>(index)] = outcome.take();
    }
    [[nodiscard]] bool accepts(std::size_t) const noexcept { return true; }

private:
    I first_;
};

/// The same for a range, whose end is checked before a lookup starts.
template <class R, class Range>
class store_in {
public:
    explicit store_in(Range& range)
        : store_(std::ranges::begin(range)), size_(std::ranges::size(range)) {}
    void deliver(std::size_t index, result<R>& outcome) { store_.deliver(index, outcome); }
    [[nodiscard]] bool accepts(std::size_t index) const noexcept {
        if (index >= size_) [[unlikely]] {
            end_with_misuse("the range for the results of interleave has fewer elements than "
                            "there are keys.");
        }
        return true;
    }

private:
    store_at<R, std::ranges::iterator_t<Range>> store_;
    std::size_t size_;
};

/// Brings results into the order of the keys. Keeps at most 4 results per slot, rounded up to a
/// power of two, so that one slow lookup stops the others only when they are that far ahead.
template <class R>
class in_order_window {
public:
    explicit in_order_window(std::size_t slots) : cells_(std::bit_ceil(4 * slots)) {}

    void deliver(std::size_t index,
                 result<R>& outcome) noexcept(std::is_nothrow_move_constructible_v<R> ||
                                              !std::is_object_v<R>) {
        cell& c = at(index);
        c.outcome.move_from(outcome);
        c.arrived = true;
    }
    [[nodiscard]] bool accepts(std::size_t index) const noexcept {
        return index - next_ < cells_.size();
    }

    [[nodiscard]] bool has_next() const noexcept { return at(next_).arrived; }
    /// Returns the result of the next key, or rethrows its exception.
    R take_next() {
        cell& c = at(next_);
        struct renewed {
            cell& taken;
            ~renewed() { renew(taken.outcome); }
        } const guard{c};
        c.arrived = false;
        ++next_;
        return c.outcome.take();
    }

private:
    struct cell {
        result<R> outcome;
        bool arrived = false;
    };
    cell& at(std::size_t index) const noexcept { return cells_[index & (cells_.size() - 1)]; }

    frame_array<cell> cells_;
    std::size_t next_ = 0; // the index of the key whose result comes next
};

/// Writes results to an output iterator, in the order of the keys.
template <class R, class I>
class write_in_order {
public:
    write_in_order(std::size_t slots, I out) : window_(slots), out_(std::move(out)) {}
    void deliver(std::size_t index, result<R>& outcome) {
        window_.deliver(index, outcome);
        while (window_.has_next()) {
            *out_ = window_.take_next();
            ++out_;
        }
    }
    [[nodiscard]] bool accepts(std::size_t index) const noexcept { return window_.accepts(index); }

private:
    in_order_window<R> window_;
    I out_;
};

/// Calls a function with each result as it arrives.
template <class R, class Consume>
class pass_to {
public:
    explicit pass_to(Consume& consume) noexcept : consume_(consume) {}
    void deliver(std::size_t index, result<R>& outcome) {
        if constexpr (std::is_void_v<R>) {
            outcome.take();
            consume_(index);
        } else {
            consume_(index, outcome.take());
        }
    }
    [[nodiscard]] bool accepts(std::size_t) const noexcept { return true; }

private:
    Consume& consume_;
};

/// For lookups without a result.
class rethrow_only {
public:
    static void deliver(std::size_t, result<void>& outcome) { outcome.take(); }
    [[nodiscard]] static bool accepts(std::size_t) noexcept { return true; }
};

/// Whether results can be written to the argument `out` of interleave. True for void, so that only
/// the message of sink_for() appears.
template <class R, class Out>
constexpr bool can_take_results() noexcept {
    using out_t = std::remove_cv_t<Out>;
    if constexpr (std::is_void_v<R> || std::random_access_iterator<out_t> ||
                  (std::ranges::random_access_range<Out> && std::ranges::sized_range<Out>)) {
        return true;
    } else {
        return std::weakly_incrementable<out_t> && std::indirectly_writable<out_t, R>;
    }
}
template <class R, class Out>
inline constexpr bool takes_results = can_take_results<R, Out>();

/// The sink for the argument `out` of interleave.
template <class R, class Out>
auto sink_for(std::size_t slots, Out& out) {
    using out_t = std::remove_cv_t<Out>;
    static_assert(!std::is_void_v<R>,
                  "these lookups have no result to write: call interleave(width, keys, f)");
    if constexpr (std::random_access_iterator<out_t>) {
        return store_at<R, out_t>(out);
    } else if constexpr (std::ranges::random_access_range<Out> && std::ranges::sized_range<Out>) {
        return store_in<R, Out>(out);
    } else {
        static_assert(takes_results<R, Out>,
                      "interleave writes its results to a random access range (a vector, a span) "
                      "or to an iterator to which they can be assigned");
        return write_in_order<R, out_t>(slots, out);
    }
}

} // namespace coil::detail
