# A cancellation that was submitted too early is not retried.
set(source src/context/io_wait.cpp)
set(old [==[
        loop().retry_cancel_later(*this);]==])
set(new [==[
]==])
