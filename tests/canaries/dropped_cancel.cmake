# A request to cancel that came too early is not made again.
set(source src/context/io_wait.cpp)
set(old [==[
        loop().cancellations().retry_later(*this);]==])
set(new [==[
]==])
