#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/exception_chain.hpp>
#include <coil/core/detail/promise_base.hpp>

#include <cstdint>
#include <cstring>

#include <cxxabi.h>

namespace coil::detail {

namespace {

/// An exception is recognised by its address, which may be that of an earlier exception whose
/// memory was used again. So a chain continues only with the coroutine that was waiting, and only
/// if that one has not thrown the exception itself.
struct noted_exception {
    const void* object = nullptr;
    const void* awaiting = nullptr; // the frame of the coroutine that receives it next, or null
    exception_chain chain;
};

/// Several exceptions are noted, because a coroutine with several children may receive the
/// exception of one child after others have ended with exceptions of their own.
struct noted_exceptions {
    std::array<noted_exception, 4> list{};
    std::size_t next = 0; // the one to overwrite

    [[nodiscard]] noted_exception* find(const void* object) noexcept {
        for (noted_exception& one : list) {
            if (one.object == object) {
                return &one;
            }
        }
        return nullptr;
    }
};
constinit thread_local noted_exceptions noted;

const void* object_of(const std::exception_ptr& error) noexcept {
    static_assert(sizeof error == sizeof(void*), "the address of the exception");
    const void* object = nullptr;
    std::memcpy(&object, static_cast<const void*>(&error), sizeof object);
    return object;
}

/// Whether the current exception was thrown by the code that has caught it, and not passed on by an
/// await. In the Itanium C++ ABI, the header of an exception is right in front of it, and
/// std::rethrow_exception(), which awaits call, makes another header elsewhere.
bool is_thrown_here(const void* object) noexcept {
    constexpr std::uintptr_t largest_header = 144;
    const void* const caught = *reinterpret_cast<const void* const*>(abi::__cxa_get_globals());
    return reinterpret_cast<std::uintptr_t>(object) - reinterpret_cast<std::uintptr_t>(caught) <=
           largest_header;
}

const void* awaiting_frame(promise_base& promise) noexcept {
    if (!promise.is_root()) {
        return promise.coroutine.address();
    }
    promise_base* const by = promise.owner().awaiting_task();
    return by != nullptr ? frame_of(*by) : nullptr;
}

} // namespace

std::exception_ptr note_unhandled(promise_base& promise, const void* frame) noexcept {
    std::exception_ptr error = std::current_exception();
    const void* const object = object_of(error);
    if (object == nullptr) {
        return error;
    }
    noted_exception* one = noted.find(object);
    if (one == nullptr) {
        one = &noted.list[noted.next];
        noted.next = (noted.next + 1) % noted.list.size();
    }
    if (one->object != object || one->awaiting != frame || is_thrown_here(object)) {
        one->object = object;
        one->chain.size = 0;
    }
    one->awaiting = awaiting_frame(promise);
    if (one->chain.size < exception_chain::most) {
        one->chain.functions[one->chain.size] = resume_function(frame);
    }
    ++one->chain.size;
    return error;
}

std::exception_ptr note_unhandled(promise_base& task) noexcept {
    return note_unhandled(task, frame_of(task));
}

exception_chain chain_of(const std::exception_ptr& error) noexcept {
    const noted_exception* const one = noted.find(object_of(error));
    return one != nullptr ? one->chain : exception_chain{};
}

} // namespace coil::detail
