#include "set_aside.hpp"
#include "stack_switch.hpp"

#include <coil/base/minmax.hpp>
#include <coil/base/page_size.hpp>
#include <coil/context/detail/side_stacks.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>

#include <sys/mman.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__)
#define COIL_ASAN_STACKS 1
#elif defined(__SANITIZE_THREAD__)
#define COIL_TSAN_STACKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COIL_ASAN_STACKS 1
#elif __has_feature(thread_sanitizer)
#define COIL_TSAN_STACKS 1
#endif
#endif

#if defined(COIL_ASAN_STACKS)
#include <sanitizer/common_interface_defs.h>
#elif defined(COIL_TSAN_STACKS)
#include <sanitizer/tsan_interface.h>
#endif

namespace coil::detail {

namespace {

std::int64_t now_ns() noexcept {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// As large as the stack of a thread usually is, because destructors of the program run here. Only
/// pages that are used take memory.
std::size_t stack_size() noexcept {
    constexpr std::size_t usual = std::size_t{8} << 20U;
    constexpr std::size_t least = std::size_t{256} << 10U;
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > usual) {
        return usual;
    }
    const std::size_t page = page_size();
    return coil::detail::max(static_cast<std::size_t>(limit.rlim_cur) / page * page, least);
}

#if defined(COIL_ASAN_STACKS)

/// Tells AddressSanitizer about the switches between the host's stack and a side stack.
class sanitizer_stack {
public:
    sanitizer_stack(const void* bottom, std::size_t size) noexcept : bottom_(bottom), size_(size) {}

    void before_entry() noexcept { __sanitizer_start_switch_fiber(&host_fake_, bottom_, size_); }
    void entered() noexcept { __sanitizer_finish_switch_fiber(fake_, &host_bottom_, &host_size_); }
    void before_exit(bool ends) noexcept {
        __sanitizer_start_switch_fiber(ends ? nullptr : &fake_, host_bottom_, host_size_);
    }
    void exited() noexcept { __sanitizer_finish_switch_fiber(host_fake_, nullptr, nullptr); }

private:
    const void* const bottom_;
    const std::size_t size_;
    const void* host_bottom_ = nullptr;
    std::size_t host_size_ = 0;
    void* fake_ = nullptr;
    void* host_fake_ = nullptr;
};

#elif defined(COIL_TSAN_STACKS)

/// The same for ThreadSanitizer, which also records calls and returns: so no function returns on
/// another stack than the one on which it was called.
class sanitizer_stack {
public:
    sanitizer_stack(const void*, std::size_t) noexcept {}
    sanitizer_stack(const sanitizer_stack&) = delete;
    sanitizer_stack& operator=(const sanitizer_stack&) = delete;
    ~sanitizer_stack() { __tsan_destroy_fiber(fiber_); }

    [[gnu::always_inline]] void before_entry() noexcept {
        host_ = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(fiber_, 0);
    }
    void entered() noexcept {}
    [[gnu::always_inline]] void before_exit(bool) noexcept { __tsan_switch_to_fiber(host_, 0); }
    void exited() noexcept {}

private:
    void* const fiber_ = __tsan_create_fiber(0);
    void* host_ = nullptr;
};

#else

class sanitizer_stack {
public:
    sanitizer_stack(const void*, std::size_t) noexcept {}
    void before_entry() noexcept {}
    void entered() noexcept {}
    void before_exit(bool) noexcept {}
    void exited() noexcept {}
};

#endif

} // namespace

/// A stack in memory of its own. This object lies at the upper end of that memory, a page without
/// access at the lower end.
class side_stacks::stack {
public:
    /// Null without memory.
    static stack* create() noexcept {
        const std::size_t size = stack_size() + page_size();
        void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory == MAP_FAILED) {
            return nullptr;
        }
        if (::mprotect(memory, page_size(), PROT_NONE) != 0) {
            ::munmap(memory, size);
            return nullptr;
        }
        auto* const end = static_cast<std::byte*>(memory) + size;
        return new (end - room_for_this) stack(memory, size);
    }
    static void destroy(stack* one) noexcept {
        void* const memory = one->memory_;
        const std::size_t size = one->size_;
        one->~stack();
        ::munmap(memory, size);
    }

    /// Called before the first switch to the stack.
    void prepare(function f, void* argument) noexcept {
        function_ = f;
        argument_ = argument;
        ended_ = false;
        std::construct_at(&sanitizer_.value, bottom(), usable());
        here_.prepare(bottom(), usable(), &begin, this);
    }
    /// Called by the host: returns when the stack waits or has ended.
    void enter() noexcept {
        const set_aside hosts;
        sanitizer_.value.before_entry();
        host_.switch_to(here_);
        sanitizer_.value.exited();
        if (ended_) {
            std::destroy_at(&sanitizer_.value);
        }
    }
    /// Called on this stack: returns when the host enters it again.
    void leave(predicate is_over, const void* argument) noexcept {
        const set_aside own;
        is_over_ = is_over;
        waits_for_ = argument;
        sanitizer_.value.before_exit(false);
        here_.switch_to(host_);
        sanitizer_.value.entered();
    }
    [[nodiscard]] bool is_over() const noexcept { return is_over_(waits_for_); }
    [[nodiscard]] bool has_ended() const noexcept { return ended_; }
    /// Returns the memory of an unused stack to the system, except for what most destructors need.
    void shrink() noexcept {
        constexpr std::size_t kept = std::size_t{64} << 10U;
        ::madvise(bottom(), (usable() - kept) / page_size() * page_size(), MADV_DONTNEED);
    }

    stack* next = nullptr;

private:
    static constexpr std::size_t room_for_this = 4096;

    stack(void* memory, std::size_t size) noexcept : memory_(memory), size_(size) {
        static_assert(sizeof(stack) <= room_for_this);
    }
    ~stack() = default;

    [[nodiscard]] std::byte* bottom() const noexcept {
        return static_cast<std::byte*>(memory_) + page_size();
    }
    [[nodiscard]] std::size_t usable() const noexcept {
        return size_ - page_size() - room_for_this;
    }
    static void begin(void* argument) noexcept {
        auto& self = *static_cast<stack*>(argument);
        self.sanitizer_.value.entered();
        self.function_(self.argument_);
        self.ended_ = true;
        self.sanitizer_.value.before_exit(true);
        self.here_.switch_to(self.host_);
    }

    /// Exists while the stack is in use.
    union sanitizer {
        sanitizer() noexcept {}
        ~sanitizer() {}
        sanitizer_stack value;
    };

    void* const memory_;
    const std::size_t size_;
    stack_position here_;
    stack_position host_;
    function function_ = nullptr;
    void* argument_ = nullptr;
    predicate is_over_ = nullptr;
    const void* waits_for_ = nullptr; // the argument of is_over_
    sanitizer sanitizer_;
    bool ended_ = false;
};

side_stacks::~side_stacks() {
    COIL_ASSERT(waiting_ == nullptr && running_ == nullptr);
    if (free_ != nullptr) {
        stack::destroy(free_);
    }
}

/// Returns a stack that is not in use, or null.
side_stacks::stack* side_stacks::take() noexcept {
    // Each takes two mappings, of which a process has 65 530 by default.
    constexpr std::size_t most = 10'000;
    if (free_ != nullptr) {
        return std::exchange(free_, nullptr);
    }
    stack* const one = count_ < most ? stack::create() : nullptr;
    count_ += one != nullptr ? 1 : 0;
    return one;
}

void side_stacks::run(function f, void* argument) noexcept {
    stack* const one = is_here() ? nullptr : take();
    if (one == nullptr) {
        f(argument);
        return;
    }
    one->prepare(f, argument);
    enter(*one);
}

void side_stacks::enter(stack& one) noexcept {
    COIL_ASSERT(running_ == nullptr);
    running_ = &one;
    one.enter();
    running_ = nullptr;
    if (!one.has_ended()) {
        one.next = std::exchange(waiting_, &one);
    } else if (free_ == nullptr) {
        one.shrink();
        free_ = &one;
    } else {
        stack::destroy(&one);
        --count_;
    }
}

void side_stacks::wait(predicate is_over, const void* argument) noexcept {
    COIL_ASSERT(is_here());
    running_->leave(is_over, argument);
}

void side_stacks::resume() noexcept {
    constexpr std::int64_t least_ns = 125'000; // an eighth of the shortest pause
    if (waiting_ == nullptr) {
        return;
    }
    const std::int64_t begin = now_ns();
    const bool all = visits_.is_due(begin);
    enter_each(all);
    if (all) {
        visits_.visited(begin, coil::detail::max(now_ns(), begin + least_ns));
    }
}

void side_stacks::enter_each(bool all) noexcept {
    COIL_ASSERT(!is_here());
    stack* one = std::exchange(waiting_, nullptr);
    while (one != nullptr) {
        stack* const next = one->next;
        if (all || one->is_over()) {
            enter(*one);
        } else {
            one->next = std::exchange(waiting_, one);
        }
        one = next;
    }
}

} // namespace coil::detail
