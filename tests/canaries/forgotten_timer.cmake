# The timeout of a destroyed next() stays armed.
set(source src/context/multishot_source.cpp)
set(old [==[
        stop_observing();
        loop().disarm(*this);]==])
set(new [==[
        stop_observing();]==])
