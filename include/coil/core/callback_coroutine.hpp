#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>

namespace coil::detail {

/// A coroutine_handle that, when it is resumed, calls a function: for an await by something that is
/// no coroutine and shall not cost a frame.
///
/// Every compiler for Linux begins a frame with the addresses of what resume() and destroy() call,
/// followed by the promise; standard libraries build their noop_coroutine the same way. Whoever is
/// awaited sees a promise like any other.
template <class Promise>
class callback_coroutine {
public:
    using callback = void (*)(callback_coroutine&) noexcept;

    explicit callback_coroutine(callback f) noexcept : function_(f) {
        assert(&handle().promise() == &frame_.promise);
    }
    callback_coroutine(const callback_coroutine&) = delete;
    callback_coroutine& operator=(const callback_coroutine&) = delete;
    ~callback_coroutine() = default;

    [[nodiscard]] std::coroutine_handle<Promise> handle() noexcept {
        return std::coroutine_handle<Promise>::from_address(&frame_);
    }
    [[nodiscard]] Promise& promise() noexcept { return frame_.promise; }

private:
    struct frame {
        void (*resume)(frame*) noexcept = [](frame* f) noexcept {
            // The frame is the first member of what contains it.
            auto& self = *reinterpret_cast<callback_coroutine*>(f);
            self.function_(self);
        };
        void (*destroy)(frame*) noexcept = [](frame*) noexcept {}; // its owner does that
        Promise promise;
    };

    frame frame_;
    callback function_;
};

} // namespace coil::detail
