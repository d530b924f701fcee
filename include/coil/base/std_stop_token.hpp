#pragma once

// Declares std::stop_token and std::stop_callback, for templates that accept them: a program that
// has a std::stop_token has included <stop_token>. That header also defines threads and semaphores,
// and takes several times as long to compile as the functions that accept a token. In libstdc++ the
// two are plain classes of namespace std.

#include <version>

#if defined(__GLIBCXX__) && !_GLIBCXX_INLINE_VERSION
namespace std { // NOLINT(cert-dcl58-cpp): declares what <stop_token> defines
class stop_token;
template <class Callback>
class stop_callback;
} // namespace std
#else
#include <stop_token> // IWYU pragma: export
#endif
