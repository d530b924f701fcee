#pragma once

#include <cstdint>
#include <utility>

namespace coil::sim::detail {

/// A reference-counted object. Single-threaded.
class object { // NOLINT(cppcoreguidelines-virtual-class-destructor): release() alone ends it
public:
    object(const object&) = delete;
    object& operator=(const object&) = delete;

    void retain() noexcept { ++references_; }
    void release() noexcept {
        if (--references_ == 0) {
            delete this;
        }
    }

protected:
    object() noexcept = default;
    virtual ~object() = default;

private:
    std::uint32_t references_ = 0;
};

// NOLINTBEGIN(clang-analyzer-cplusplus.NewDelete): the analyzer does not follow the count
template <class T>
class ref {
public:
    ref() noexcept = default;
    ref(T* target) noexcept : target_(target) { // NOLINT: a pointer that counts
        if (target_ != nullptr) {
            target_->retain();
        }
    }
    ref(const ref& other) noexcept : ref(other.target_) {}
    ref(ref&& other) noexcept : target_(std::exchange(other.target_, nullptr)) {}
    template <class U>
    ref(const ref<U>& other) noexcept : ref(other.get()) {} // NOLINT: as pointers
    ref& operator=(ref other) noexcept {
        std::swap(target_, other.target_);
        return *this;
    }
    ~ref() {
        if (target_ != nullptr) {
            target_->release();
        }
    }

    [[nodiscard]] T* get() const noexcept { return target_; }
    T& operator*() const noexcept { return *target_; }
    T* operator->() const noexcept { return target_; }
    explicit operator bool() const noexcept { return target_ != nullptr; }
    friend bool operator==(const ref& a, const ref& b) noexcept { return a.target_ == b.target_; }

private:
    T* target_ = nullptr;
};
// NOLINTEND(clang-analyzer-cplusplus.NewDelete)

template <class T, class... Args>
ref<T> make(Args&&... args) {
    return ref<T>(new T(std::forward<Args>(args)...));
}

/// A node in a list of waiters. Removal needs no search.
struct list_link {
    list_link* before = nullptr;
    list_link* behind = nullptr;

    list_link() noexcept = default;
    list_link(const list_link&) = delete;
    list_link& operator=(const list_link&) = delete;
    ~list_link() { unlink(); }

    [[nodiscard]] bool is_linked() const noexcept { return before != nullptr; }
    void unlink() noexcept {
        if (before != nullptr) {
            before->behind = behind;
            behind->before = before;
            before = behind = nullptr;
        }
    }
};

/// A FIFO list.
template <class T>
class waiting_list {
public:
    waiting_list() noexcept { clear(); }
    waiting_list(const waiting_list&) = delete;
    waiting_list& operator=(const waiting_list&) = delete;
    ~waiting_list() {
        while (!empty()) {
            head_.behind->unlink();
        }
        head_.before = nullptr; // makes its own destructor a no-op
    }

    [[nodiscard]] bool empty() const noexcept { return head_.behind == &head_; }
    [[nodiscard]] T* first() const noexcept { return of(head_.behind); }
    [[nodiscard]] T* last() const noexcept { return of(head_.before); }
    [[nodiscard]] T* after(const T& one) const noexcept {
        return of(static_cast<const list_link&>(one).behind);
    }
    void push(T& one) noexcept {
        list_link& link = one;
        link.before = head_.before;
        link.behind = &head_;
        head_.before->behind = &link;
        head_.before = &link;
    }

private:
    void clear() noexcept { head_.before = head_.behind = &head_; }
    [[nodiscard]] T* of(list_link* link) const noexcept {
        return link == &head_ ? nullptr : static_cast<T*>(link);
    }
    list_link head_;
};

} // namespace coil::sim::detail
