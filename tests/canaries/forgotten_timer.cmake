# The limit of a next() that is destroyed goes on.
set(source src/context/multishot.cpp)
set(old [==[
        stop_observing();
        loop().disarm(*this);]==])
set(new [==[
        stop_observing();]==])
