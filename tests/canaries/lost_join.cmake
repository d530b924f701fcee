# Whoever joins a task is not told of its end.
set(source src/context/join_handle.cpp)
set(old [==[
    if (waiter* w = handshake_.mark_done()) {
        w->notify(*w);
    }]==])
set(new [==[
    static_cast<void>(handshake_.mark_done());]==])
