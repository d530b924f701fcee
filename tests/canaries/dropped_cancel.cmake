# A request to cancel that came too early is not made again.
set(source src/context/io_wait.cpp)
set(old [==[
        loop().retry_cancel_later(*this);]==])
set(new [==[
]==])
