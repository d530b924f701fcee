#pragma once

#include <cassert>
#include <coroutine>
#include <cstddef>

namespace coil::detail {

/// A coroutine_handle whose resume() calls a function, for an await by something that is not a
/// coroutine and must not allocate a frame.
///
/// All compilers for Linux begin a frame with the addresses of the resume and destroy functions,
/// followed by the promise; standard libraries build noop_coroutine in the same way. The awaiter
/// sees a promise like any other.
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
            // The frame is the first member of the callback_coroutine.
            auto& self = *reinterpret_cast<callback_coroutine*>(f);
            self.function_(self);
        };
        void (*destroy)(frame*) noexcept = [](frame*) noexcept {}; // the owner destroys it
        Promise promise;
    };

    frame frame_;
    callback function_;
};

} // namespace coil::detail
