#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// Switching between stacks. On x86-64 with a few instructions, because swapcontext() makes two
// system calls, and AddressSanitizer prints a warning when it is used; elsewhere, and with a shadow
// stack (CET), with swapcontext().

#if defined(__x86_64__) && defined(__LP64__) && !(defined(__CET__) && (__CET__ & 2) != 0)
#define COIL_SWITCHES_STACKS 1
#else
#define COIL_SWITCHES_STACKS 0
#include <ucontext.h>
#endif

#if defined(__clang__)
#define COIL_OPAQUE_CALL gnu::noinline
#else // GCC would use registers that the body seems not to change
#define COIL_OPAQUE_CALL gnu::noinline, gnu::noipa
#endif

namespace coil::detail {

#if COIL_SWITCHES_STACKS

/// A suspended stack: the registers that a call preserves are on it.
class stack_position {
public:
    /// Makes the first switch_to() this position call `f(argument)` on the stack in `memory`.
    void prepare(std::byte* memory, std::size_t size, void (*f)(void*) noexcept,
                 void* argument) noexcept {
        const initial_content content{.r13 = f, .r12 = argument, .start = &start};
        std::byte* const end = memory + (size & ~std::size_t{15});
        top_ = end - sizeof content;
        std::memcpy(top_, &content, sizeof content);
    }
    /// Leaves the current stack, until another one switches to this position.
    [[gnu::always_inline]] void switch_to(stack_position& other) noexcept {
        exchange_stacks(&top_, other.top_);
    }

private:
    /// What exchange_stacks() pops, then what start() finds. The size keeps the stack aligned.
    struct initial_content {
        std::uint32_t mxcsr = 0x1f80;
        std::uint32_t x87_control = 0x37f;
        void* r15 = nullptr;
        void* r14 = nullptr;
        void (*r13)(void*) noexcept;
        void* r12;
        void* rbx = nullptr;
        void* rbp = nullptr;
        void (*start)() noexcept;
        void* end_of_stack[2] = {};
    };
    static_assert(sizeof(initial_content) % 16 == 0);

    [[gnu::naked, COIL_OPAQUE_CALL]] static void exchange_stacks(void** /*from*/,
                                                                 void* /*to*/) noexcept {
        asm volatile("pushq %rbp\n\t"
                     "pushq %rbx\n\t"
                     "pushq %r12\n\t"
                     "pushq %r13\n\t"
                     "pushq %r14\n\t"
                     "pushq %r15\n\t"
                     "subq $8, %rsp\n\t"
                     "stmxcsr (%rsp)\n\t"
                     "fnstcw 4(%rsp)\n\t"
                     "movq %rsp, (%rdi)\n\t"
                     "movq %rsi, %rsp\n\t"
                     "ldmxcsr (%rsp)\n\t"
                     "fldcw 4(%rsp)\n\t"
                     "addq $8, %rsp\n\t"
                     "popq %r15\n\t"
                     "popq %r14\n\t"
                     "popq %r13\n\t"
                     "popq %r12\n\t"
                     "popq %rbx\n\t"
                     "popq %rbp\n\t"
                     "retq");
    }
    [[gnu::naked, COIL_OPAQUE_CALL]] static void start() noexcept {
        asm volatile(".cfi_undefined %rip\n\t" // the end, for debuggers
                     "movq %r12, %rdi\n\t"
                     "callq *%r13\n\t"
                     "ud2");
    }

    void* top_ = nullptr;
};

#else

class stack_position {
public:
    void prepare(std::byte* memory, std::size_t size, void (*f)(void*) noexcept,
                 void* argument) noexcept {
        function_ = f;
        argument_ = argument;
        ::getcontext(&context_);
        context_.uc_stack.ss_sp = memory;
        context_.uc_stack.ss_size = size;
        context_.uc_link = nullptr;
        // makecontext() passes int arguments only.
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        ::makecontext(&context_, reinterpret_cast<void (*)()>(&start), 2,
                      static_cast<unsigned>(self), static_cast<unsigned>(self >> 16U >> 16U));
    }
    [[gnu::always_inline]] void switch_to(stack_position& other) noexcept {
        ::swapcontext(&context_, &other.context_);
    }

private:
    static void start(unsigned low, unsigned high) noexcept {
        const auto& self = *reinterpret_cast<const stack_position*>(
            std::uintptr_t{low} | std::uintptr_t{high} << 16U << 16U);
        self.function_(self.argument_);
    }

    ::ucontext_t context_{};
    void (*function_)(void*) noexcept = nullptr;
    void* argument_ = nullptr;
};

#endif

} // namespace coil::detail
