// Found before <assert.h>: a failed assertion is reported, and the test continues, so that the rest
// of it is judged, too.

#undef assert
#define assert(...)                                                                                \
    ((__VA_ARGS__) ? static_cast<void>(0) : ::coil_report_failure(#__VA_ARGS__, __FILE__, __LINE__))

/// Defined in main.cpp.
extern "C" void coil_report_failure(const char* what, const char* file, int line) noexcept;
