# A zero-copy send ends with its result, and again with its notification.
set(source src/context/io_op.cpp)
set(old [==[
    } else {
        entry.answer(completion);
    }]==])
set(new [==[
    } else {
        entry.answer(completion);
        on_completion(entry);
    }]==])
