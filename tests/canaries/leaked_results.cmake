# What a stream has and nobody takes is not given back.
set(source src/context/multishot.cpp)
set(old [==[
    while (!results_.empty()) {
        discard(results_.pop());
    }]==])
set(new [==[
]==])
