# An await ends before the completions of its cancellation requests, and again with them.
set(source src/context/io_op.cpp)
set(old [==[
    if (cancels_due_ > 0) {
        return; // their user_data is the address of this operation
    }
]==])
set(new [==[
]==])
