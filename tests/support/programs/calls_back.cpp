// A library for tests of symbols, with a function that calls another one.

extern "C" void calls_back(void (*function)(void*), void* argument) {
    function(argument);
    asm volatile("" ::: "memory"); // no tail call
}
