#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/minmax.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/detail/result.hpp>
#include <coil/interleave/detail/frame_array.hpp>
#include <coil/interleave/lookup.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// How the keys of a range are passed. A reference into the memory of a range is passed unchanged;
/// anything else is stored in the slot, where it lives until the lookup has ended.
template <class I>
struct key_passing {
    using reference = std::iter_reference_t<I>;
    static constexpr bool is_stored = !(std::forward_iterator<I> && std::is_reference_v<reference>);
    using stored = std::conditional_t<std::is_reference_v<reference>, std::iter_value_t<I>,
                                      std::remove_cv_t<reference>>;
    using type = std::conditional_t<is_stored, stored&&, reference>;
};

/// Whether interleave can call f with the keys, and the calls return lookups.
template <class F, class Key>
constexpr bool makes_lookup() noexcept {
    if constexpr (std::is_invocable_v<F&, Key>) {
        return is_lookup<std::remove_cvref_t<std::invoke_result_t<F&, Key>>>;
    }
    return false;
}
template <class F, class Keys>
inline constexpr bool makes_lookups =
    makes_lookup<std::remove_reference_t<F>,
                 typename key_passing<std::ranges::iterator_t<Keys>>::type>();

template <class F, class Key>
struct lookup_result {
    static_assert(std::is_invocable_v<F&, Key>,
                  "interleave calls f(key) with each key of the range");
    using returned = std::remove_cvref_t<std::invoke_result_t<F&, Key>>;
    static_assert(is_lookup<returned>,
                  "the function of interleave returns a lookup: make it a coroutine "
                  "lookup<R> f(key)");
    using type = typename returned::value_type;
};
template <class F, class Keys>
using lookup_result_t =
    typename lookup_result<std::remove_reference_t<F>,
                           typename key_passing<std::ranges::iterator_t<Keys>>::type>::type;

template <class R>
void renew(result<R>& outcome) noexcept {
    std::destroy_at(&outcome);
    std::construct_at(&outcome);
}

/// One of the `width` lookups that run at a time.
template <class R, class Key>
struct lookup_slot {
    std::coroutine_handle<> current; // to be resumed; null: the slot is free
    lookup_promise_base* innermost;  // the promise of `current`
    std::size_t index;               // of the key
    frame_place place;
    result<R> outcome;
    [[no_unique_address]] Key key;
};

struct no_key {};

/// Runs the lookups of a range of keys, `width` at a time, by resuming them in turn. A Sink has:
/// - deliver(index, outcome): takes a result. An exception ends the loop.
/// - accepts(index): whether the lookup of that key may start.
/// The destructor destroys the lookups that have not ended.
template <class I, class S, class F, class Sink>
class lookup_loop {
    using passing = key_passing<I>;
    using R = typename lookup_result<F, typename passing::type>::type;
    using slot = lookup_slot<
        R, std::conditional_t<passing::is_stored, std::optional<typename passing::stored>, no_key>>;

public:
    /// `f` and `sink` must outlive the loop.
    lookup_loop(std::size_t slots, I first, S last, F& f, Sink& sink)
        : it_(std::move(first)), last_(std::move(last)), f_(f), sink_(sink), arena_(slots),
          slots_(slots), order_(slots) {
        for (std::size_t i = 0; i < slots; ++i) {
            slots_[i].place.arena = &arena_;
            slots_[i].place.index = i;
            order_[i] = &slots_[i];
        }
    }
    lookup_loop(const lookup_loop&) = delete;
    lookup_loop& operator=(const lookup_loop&) = delete;
    ~lookup_loop() {
        for (slot& s : slots_) {
            if (s.current) {
                lookup_promise_base::destroy_chain(s.innermost);
            }
            if (s.place.occupied) [[unlikely]] {
                end_with_misuse("a lookup that the function of interleave created is kept beyond "
                                "the call.");
            }
        }
    }

    /// Resumes coroutines, at most `steps` times. Returns whether any lookup is left.
    bool run(std::size_t steps) {
        for (;;) {
            while (active_ < order_.size() && can_start()) {
                start(*order_[active_]);
                ++active_;
            }
            if (active_ == 0) {
                return false;
            }
            std::size_t at = at_;
            while (at < active_) {
                if (steps == 0) [[unlikely]] {
                    at_ = at;
                    return true;
                }
                --steps;
                order_[at]->current.resume();
                if (!handover_.requested) {
                    ++at;
                } else {
                    follow(at);
                }
            }
            at_ = 0;
        }
    }

    /// Whether every lookup has ended.
    [[nodiscard]] bool done() const { return active_ == 0 && it_ == last_; }
    /// The number of lookups started so far.
    [[nodiscard]] std::size_t started() const noexcept { return next_index_; }

private:
    [[nodiscard]] bool can_start() const { return it_ != last_ && sink_.accepts(next_index_); }

    /// Puts the coroutine that is to be resumed next into a slot, or removes the slot from the
    /// active ones.
    void follow(std::size_t at) {
        slot& s = *order_[at];
        handover_.requested = false;
        if (handover_.next != nullptr) { // a nested lookup has started or ended
            s.innermost = handover_.next;
            s.current = s.innermost->self();
            return;
        }
        s.current = nullptr;
        sink_.deliver(s.index, s.outcome);
        renew(s.outcome);
        if (can_start()) {
            start(s);
        } else {
            order_[at] = coil::detail::exchange(order_[--active_], &s);
        }
    }

    void start(slot& s) {
        s.index = next_index_;
        const auto coroutine = call(s).release();
        coroutine.promise().outcome = &s.outcome;
        coroutine.promise().begin(coroutine, handover_);
        s.innermost = &coroutine.promise();
        s.current = coroutine;
        ++next_index_;
        ++it_;
    }

    lookup<R> call(slot& s) {
        if constexpr (passing::is_stored) {
            s.key.emplace(*it_);
            const place_offer offer(s.place);
            return f_(std::move(*s.key));
        } else {
            const place_offer offer(s.place);
            return f_(*it_);
        }
    }

    I it_;
    [[no_unique_address]] S last_;
    F& f_;
    Sink& sink_;
    lookup_handover handover_;
    std::size_t next_index_ = 0;
    std::size_t active_ = 0; // the slots in use come first in order_
    std::size_t at_ = 0;     // where run() continues
    lookup_arena arena_;
    frame_array<slot> slots_;
    frame_array<slot*> order_;
};

/// The number of slots for a range of keys.
template <class Keys>
std::size_t slots_for(std::size_t width, Keys& keys) {
    width = max<std::size_t>(width, 1);
    if constexpr (std::ranges::sized_range<Keys>) {
        width = min(width, static_cast<std::size_t>(std::ranges::size(keys)));
    }
    return width;
}

template <class Keys, class F, class Sink>
auto make_lookup_loop(std::size_t slots, Keys& keys, F& f, Sink& sink) {
    using I = std::ranges::iterator_t<Keys>;
    using S = std::ranges::sentinel_t<Keys>;
    return lookup_loop<I, S, F, Sink>(slots, std::ranges::begin(keys), std::ranges::end(keys), f,
                                      sink);
}

} // namespace coil::detail
