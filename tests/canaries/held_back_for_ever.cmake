# Operations queued by back-pressure are not submitted when space becomes available.
set(source src/context/event_loop_ring.cpp)
set(old [==[
void event_loop::admit_queued() noexcept {
    while (!queued_.empty()) {]==])
set(new [==[
void event_loop::admit_queued() noexcept {
    while (false) {]==])
