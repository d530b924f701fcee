#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coil::curl {

/// Header fields in their order. Names are compared without regard to case.
class header_list {
public:
    using field = std::pair<std::string, std::string>;

    header_list() = default;
    header_list(std::initializer_list<field> fields) : fields_(fields) {}

    void add(std::string name, std::string value) {
        fields_.emplace_back(std::move(name), std::move(value));
    }
    void clear() noexcept { fields_.clear(); }
    /// The value of the first field of that name.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;

    [[nodiscard]] auto begin() const noexcept { return fields_.begin(); }
    [[nodiscard]] auto end() const noexcept { return fields_.end(); }
    [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }

private:
    std::vector<field> fields_;
};

} // namespace coil::curl
