# A frame is destroyed while the kernel still owns its buffer.
set(source src/context/io_wait.cpp)
set(old [==[
    cancel();
    loop().drain(*this);]==])
set(new [==[
    cancel();]==])
