# An await ends before the completions of its cancellation requests, and again with them.
set(source src/context/io_op.cpp)
set(old [==[
    if (cancels_due_ > 0) {
        return; // their completions carry this wait's address
    }
]==])
set(new [==[
]==])
