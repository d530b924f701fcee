#pragma once

#include <coil/pq/value.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil::pq {

/// The values of a statement's $1, $2, ..., converted to text; the server derives their types from
/// the statement. query() constructs a `parameters` from its arguments. Build one yourself if the
/// number of parameters is known only at run time:
///
///     pq::parameters values;
///     for (const auto& f : filters) values.add(f.text);
///     co_await c.query(sql, std::move(values));
///
/// A parameter may be of any type that has a pq::value, a string literal, or a std::optional of
/// such a type; std::nullopt and nullptr are NULL. Strings must not contain the character NUL:
/// add() throws std::invalid_argument.
class parameters {
public:
    parameters() = default;
    template <class... T>
    static parameters of(const T&... values) {
        parameters all;
        all.values_.reserve(sizeof...(T));
        (all.add(values), ...);
        return all;
    }

    template <class T>
    void add(const T& v) {
        if constexpr (writable_value<T>) {
            push(value<T>::to_text(v));
        } else if constexpr (std::is_null_pointer_v<T> || std::same_as<T, std::nullopt_t>) {
            values_.emplace_back();
        } else if constexpr (std::convertible_to<const T&, std::string_view>) {
            push(std::string(std::string_view(v)));
        } else {
            static_assert(detail::is_optional<T>,
                          "this type has no pq::value: specialize it, or pass text");
            v ? add(*v) : add(nullptr);
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    /// The arguments for PQsendQueryParams(); valid until the parameters are changed.
    [[nodiscard]] std::vector<const char*> pointers() const {
        std::vector<const char*> all;
        all.reserve(values_.size());
        for (const auto& v : values_) {
            all.push_back(v ? v->c_str() : nullptr);
        }
        return all;
    }

private:
    void push(std::string text) {
        if (text.find('\0') != std::string::npos) {
            throw std::invalid_argument("pq: a parameter contains the character NUL");
        }
        values_.emplace_back(std::move(text));
    }

    std::vector<std::optional<std::string>> values_;
};

} // namespace coil::pq
