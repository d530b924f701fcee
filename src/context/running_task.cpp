#include "running_task.hpp"

#include "copy_memory.hpp"
#include "utf8.hpp"

#include <coil/context/io_context.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/task_owner.hpp>

#include <algorithm>
#include <string_view>
#include <typeinfo>

#if defined(__SANITIZE_ADDRESS__)
#define COIL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COIL_ASAN 1
#endif
#endif
#ifdef COIL_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace coil::detail {

namespace {

/// Whether `size` bytes at `at` can be read. AddressSanitizer does not let freed memory be read.
bool is_readable(const void* at, std::size_t size) noexcept {
#ifdef COIL_ASAN
    if (__asan_region_is_poisoned(const_cast<void*>(at), size) != nullptr) {
        return false;
    }
#endif
    std::array<std::byte, 128> copy; // NOLINT(*-member-init)
    return reinterpret_cast<std::uintptr_t>(at) % alignof(void*) == 0 && size <= copy.size() &&
           copy_memory(at, copy.data(), size) == size;
}

/// A copy of the bytes at an address where an object, perhaps destroyed by now, is expected. Call
/// only member functions that read nothing but the object's own members.
template <class T>
class copied {
public:
    [[nodiscard]] bool from(const T* at) noexcept {
        return is_readable(at, sizeof(T)) && copy_memory(at, bytes_.data(), sizeof(T)) == sizeof(T);
    }
    T* operator->() noexcept { return reinterpret_cast<T*>(bytes_.data()); }

private:
    alignas(T) std::array<std::byte, sizeof(T)> bytes_; // NOLINT(*-member-init)
};

template <std::size_t Words>
bool read(const void* at, std::array<const void*, Words>& to) noexcept {
    return reinterpret_cast<std::uintptr_t>(at) % alignof(void*) == 0 &&
           copy_memory(at, to.data(), sizeof to) == sizeof to;
}

const void* first_word(const std::type_info& type) noexcept {
    return *reinterpret_cast<const void* const*>(&type);
}

/// Whether a type is or derives from task_owner. The layout of a std::type_info is that of the
/// Itanium C++ ABI: two words; then the base, or a word with the number of bases in its upper half
/// and two words for each.
bool is_owner_type(const void* type, int levels = 4) noexcept {
    if (type == &typeid(task_owner)) {
        return true;
    }
    std::array<const void*, 3> words{};
    if (levels == 0 || !read(type, words)) {
        return false;
    }
    if (words[0] == first_word(typeid(detached_owner))) { // one base
        return is_owner_type(words[2], levels - 1);
    }
    if (words[0] != first_word(typeid(named_detached_owner))) { // several bases
        return false;
    }
    constexpr std::size_t most_bases = 4;
    const auto bases = reinterpret_cast<std::uintptr_t>(words[2]) >> 32;
    for (std::size_t i = 0; i < std::min<std::size_t>(bases, most_bases); ++i) {
        std::array<const void*, 2> base{};
        if (read(static_cast<const std::byte*>(type) + (3 + 2 * i) * sizeof(void*), base) &&
            is_owner_type(base[0], levels - 1)) {
            return true;
        }
    }
    return false;
}

/// Whether the address is that of an object whose class derives from task_owner.
bool is_owner(const void* object) noexcept {
    std::array<const void*, 1> table{};
    std::array<const void*, 1> type{};
    return is_readable(object, sizeof(task_owner)) && read(object, table) &&
           read(static_cast<const std::byte*>(table[0]) - sizeof(void*), type) &&
           is_owner_type(type[0]);
}

} // namespace

bool running_task::is_verified_root(const promise_base* root) noexcept {
    copied<promise_base> copy;
    if (!copy.from(root) || !copy->is_root() || !is_owner(&copy->owner())) {
        return false;
    }
    if (copied<task_owner> owner; owner.from(&copy->owner()) && owner->bound) {
        return true;
    }
    std::array<const void*, 1> link{}; // the owner of a task that ends may have been freed
    return copy->link.is_in_list() && read(copy->link.at(), link) && link[0] == root;
}

/// The root of the tree of awaits that the coroutine belongs to, or null.
promise_base* running_task::root_of(const void* frame) noexcept {
    const auto* const promise = reinterpret_cast<const promise_base*>(
        static_cast<const std::byte*>(frame) + 2 * sizeof(void*));
    copied<promise_base> copy;
    if (!copy.from(promise)) {
        return nullptr;
    }
    promise_base* root = nullptr;
    switch (copy->kind()) {
    case promise_base::is_owner:
        root = const_cast<promise_base*>(promise);
        break;
    case promise_base::is_root_promise:
        root = copy->as<promise_base>();
        break;
    case promise_base::is_detour:
        if (copied<stop_detour> detour; detour.from(copy->as<stop_detour>())) {
            root = detour->root;
        }
        break;
    default:
        break;
    }
    return root != nullptr && is_verified_root(root) ? root : nullptr;
}

void running_task::find(const void* resumed_frame) noexcept {
    if (promise_base* const root = root_of(resumed_frame)) {
        find_tree(*root);
    }
}

void running_task::find_below(const promise_base* root) noexcept {
    copied<promise_base> copy;
    if (root != nullptr && copy.from(root) && copy->is_root() && is_owner(&copy->owner())) {
        find_tree(const_cast<promise_base&>(*root));
    }
}

void running_task::find_tree(promise_base& of) noexcept {
    root_ = &of;
    // Downwards from the root. The chain ends with the coroutine that runs.
    copied<promise_base> copy;
    for (promise_base* at = &of; at != nullptr && awaits_count < most_awaits && copy.from(at);) {
        std::array<const void*, 1> function{};
        static_cast<void>(read(frame_of(*at), function));
        awaits[awaits_count++] = function[0];
        at = copy->nested_below() == nullptr ? copy->task_below() : nullptr;
    }
    // Upwards: a child without a name belongs to the task that waits for it.
    promise_base* root = &of;
    for (int levels = 16; levels > 0 && root != nullptr; --levels) {
        describe(*root);
        promise_base* const above = name_size == 0 ? root->owner().awaiting_root() : nullptr;
        root = above != nullptr && is_verified_root(above) ? above : nullptr;
    }
}

void running_task::find_callers() noexcept {
    if (root_ == nullptr) {
        return;
    }
    copied<promise_base> copy;
    const promise_base* at = root_->owner().awaiting_task();
    while (at != nullptr && callers_count < most_awaits && copy.from(at)) {
        std::array<const void*, 1> function{};
        static_cast<void>(read(frame_of(const_cast<promise_base&>(*at)), function));
        callers[callers_count++] = function[0];
        if (!copy->is_root()) {
            at = copy->parent;
        } else {
            at = is_owner(&copy->owner()) ? copy->owner().awaiting_task() : nullptr;
        }
    }
}

void running_task::describe(promise_base& root) noexcept {
    const task_owner& owner = root.owner();
    const std::string_view given = owner.name();
    name_size = copy_memory(given.data(), name.data(), std::min(given.size(), name.size()));
    if (given.size() > name.size()) {
        name_size = size_of_whole_sequences({name.data(), name_size});
    }
    if (const std::source_location* const where = owner.spawned_at()) {
        spawned_at = *where;
        has_spawned_at = true;
    }
}

} // namespace coil::detail
