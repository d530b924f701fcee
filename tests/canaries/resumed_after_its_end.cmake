# A coroutine that is destroyed in the ready queue stays there.
set(source src/context/awaiter_base.cpp)
set(old [==[
    if (node().coroutine) {
        loop().withdraw(node(), node().coroutine);
    }]==])
set(new [==[
]==])
