# A message that arrives between the last poll and the sleep does not keep the loop awake.
set(source src/context/event_loop_turns.cpp)
set(old [==[
        if (!inbox_.try_park()) {
            return {.what = busy};
        }]==])
set(new [==[
        static_cast<void>(inbox_.try_park());]==])
