# A zero-copy send ends with its result, and again with its notification.
set(source src/context/io_op.cpp)
set(old [==[
    } else {
        entry.store_result(completion);
    }]==])
set(new [==[
    } else {
        entry.complete(completion);
        on_completion(entry);
    }]==])
