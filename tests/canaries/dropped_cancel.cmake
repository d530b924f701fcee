# A cancellation that was submitted too early is not retried.
set(source src/context/io_op.cpp)
set(old [==[
        loop().cancellations().retry_later(*this);]==])
set(new [==[
]==])
