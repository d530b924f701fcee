# An await that is cancelled while it is queued by back-pressure stays in the queue.
set(source src/context/io_op.cpp)
set(old [==[
        loop().submissions().dequeue(*this);
        fail]==])
set(new [==[
        state_.dequeue();
        fail]==])
