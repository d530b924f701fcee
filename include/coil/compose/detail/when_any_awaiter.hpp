#pragma once

#include <coil/compose/detail/children.hpp>
#include <coil/compose/detail/when_all_awaiter.hpp>
#include <coil/compose/when_any_result.hpp>

#include <cstddef>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace coil::detail {

template <class... Kept>
class when_any_pack final : public joined_children<child_pack<Kept...>> {
    using result = when_any_result<in_vector<stored_result<Kept&&>>...>;

public:
    explicit when_any_pack(std::tuple<Kept...>& awaitables) noexcept
        : joined_children<child_pack<Kept...>>(child_group::decided_by::first_end, awaitables) {}

    result await_resume() {
        this->group_.resumed();
        this->group_.rethrow();
        return take<0>();
    }

private:
    template <std::size_t I>
    result take() {
        if constexpr (I + 1 < sizeof...(Kept)) {
            if (&this->children_.template get<I>() != this->group_.winner()) {
                return take<I + 1>();
            }
        }
        using value = decltype(result::value);
        return {I, value(std::in_place_index<I>, take_from(this->children_.template get<I>()))};
    }
};

template <class Kept>
class when_any_range final : public joined_children<child_array<Kept>> {
public:
    template <class Awaitables>
    explicit when_any_range(Awaitables& awaitables)
        : joined_children<child_array<Kept>>(child_group::decided_by::first_end, awaitables) {}

    [[nodiscard]] bool has_failed() const noexcept {
        return this->group_.has_failed() || this->group_.winner() == nullptr;
    }

    when_any_element<in_vector<stored_result<Kept&&>>> await_resume() {
        this->group_.resumed();
        this->group_.rethrow();
        for (std::size_t i = 0; i < this->children_.size(); ++i) {
            if (auto& child = this->children_.begin()[i]; &child == this->group_.winner()) {
                return {i, take_from(child)};
            }
        }
        throw std::invalid_argument("coil: when_any() of an empty range would wait forever");
    }
};

} // namespace coil::detail
