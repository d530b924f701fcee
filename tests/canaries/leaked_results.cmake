# Results that are still queued when a stream is destroyed are not returned.
set(source src/context/multishot_source.cpp)
set(old [==[
    while (!results_.empty()) {
        discard(results_.pop());
    }]==])
set(new [==[
]==])
