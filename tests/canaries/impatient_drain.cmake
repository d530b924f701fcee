# A destroyed frame waits for the backend once, but not until its operation has completed.
set(source src/context/event_loop_ring.cpp)
set(old [==[
void event_loop::drain(const io_op& wait) noexcept {
    while (wait.pending()) {]==])
set(new [==[
void event_loop::drain(const io_op& wait) noexcept {
    if (wait.pending()) {]==])
