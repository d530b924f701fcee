# A frame is destroyed while the backend still owns its buffer.
set(source src/context/io_op.cpp)
set(old [==[
    cancel();
    loop().drain(*this);]==])
set(new [==[
    cancel();]==])
