#pragma once

namespace coil::detail {

/// The deleter of a std::unique_ptr for an object of a C library, which `Free` destroys.
template <auto Free>
struct freed_by {
    template <class T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};

} // namespace coil::detail
