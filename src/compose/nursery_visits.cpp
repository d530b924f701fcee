// Visits the children of a scope or supervisor, for a list of all tasks.

#include <coil/compose/detail/nursery.hpp>

#include <utility>

namespace coil::detail {

/// A position in a nursery's list of children.
class child_cursor final : public child_state_base, public children_cursor {
public:
    child_cursor() : child_state_base({}) { owners_ = 0; }
    ~child_cursor() override {
        if (is_placed()) {
            unlink();
        }
    }

    [[nodiscard]] bool is_placed() const noexcept override { return is_linked(); }
    void place_after(child_state_base& child) noexcept { insert_after(child); }
    void place_before(child_state_base& child) noexcept { insert_before(child); }
    [[nodiscard]] child_state_base* leave() noexcept {
        child_state_base* const next = next_sibling();
        unlink();
        return next;
    }

private:
    // A cursor is never started.
    std::pair<promise_base*, std::coroutine_handle<>> begin() noexcept override { return {}; }
    [[nodiscard]] promise_base& promise() const noexcept override { __builtin_unreachable(); }
    void finished(promise_base&) noexcept override {}
    void destroy_coroutine(event_loop&) noexcept override {}
    void destroy_state() noexcept override {}
};

namespace {

/// The cursor at `place`, created at the first interruption.
child_cursor& cursor_in(owned<children_cursor>& place) {
    if (!place) {
        place.reset(new child_cursor);
    }
    return static_cast<child_cursor&>(*place);
}

} // namespace

void nursery::visit_children(child_visitor& visitor, owned<children_cursor>& place) {
    auto* const cursor = static_cast<child_cursor*>(place.get());
    child_state_base* child = cursor != nullptr ? cursor->leave() : children_;
    for (; child != nullptr; child = child->next_sibling()) {
        if (child->is_cursor()) { // the cursor of another visit
            continue;
        }
        visitor.visit(child->promise());
        if (visitor.is_full()) {
            cursor_in(place).place_after(*child);
            return;
        }
    }
    place.reset();
}

void nursery::visit_oldest(child_visitor& visitor, owned<children_cursor>& place,
                           const children_cursor& end) {
    auto* const cursor = static_cast<child_cursor*>(place.get());
    child_state_base* child = oldest_;
    if (cursor != nullptr) {
        child = cursor->previous(children_);
        cursor->unlink();
    }
    const child_state_base* const stop = &static_cast<const child_cursor&>(end);
    const child_state_base* behind = stop->next_sibling();
    while (behind != nullptr && behind->is_cursor()) {
        behind = behind->next_sibling();
    }
    if (behind == nullptr) {
        place.reset();
        return;
    }
    for (; child != nullptr && child != stop; child = child->previous(children_)) {
        if (child->is_cursor()) { // the cursor of another visit
            continue;
        }
        visitor.visit(child->promise());
        if (visitor.is_full()) {
            cursor_in(place).place_before(*child);
            return;
        }
    }
    place.reset();
}

} // namespace coil::detail
