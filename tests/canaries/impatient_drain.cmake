# A frame that is destroyed waits for the kernel once, and not until it has let go.
set(source src/context/event_loop_ring.cpp)
set(old [==[
void event_loop::drain(const io_wait& wait) noexcept {
    while (wait.pending()) {]==])
set(new [==[
void event_loop::drain(const io_wait& wait) noexcept {
    if (wait.pending()) {]==])
