#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/inplace_stop_token.hpp>

#include <concepts>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <version>

#ifdef __cpp_lib_senders
#include <execution>
#endif
#ifndef COIL_HAS_STDEXEC
#if __has_include(<stdexec/execution.hpp>)
#define COIL_HAS_STDEXEC 1
#else
#define COIL_HAS_STDEXEC 0
#endif
#endif
#if COIL_HAS_STDEXEC
#include <stdexec/execution.hpp>
#endif

namespace coil {

/// Selects the vocabulary (see member_vocabulary) of a sender type that is awaited. It is defined
/// for the senders of std::execution and stdexec, and for senders whose nested
/// `completion_signatures` is that of member_vocabulary; specialise it for the senders of another
/// library. Awaitables, which some libraries accept as senders, do not count as senders here.
///
///     template <other::sender S>
///     struct coil::sender_vocabulary<S> { using type = other_vocabulary; };
template <class S>
struct sender_vocabulary {};

/// A vocabulary: the names of a sender/receiver library that coil uses. These are the types of its
/// customisation point objects (set_value_t, ...), which coil calls, the tag types of its concepts,
/// and its completion signatures. coil's own senders, receivers and schedulers have the members of
/// C++26 and the tag_invoke() functions of P2300R5 to R9, so a library may use either.
///
/// This vocabulary needs no library: it calls the members of C++26.
struct member_vocabulary {
    struct set_value_t {
        template <class R, class... Args>
        void operator()(R&& receiver, Args&&... args) const noexcept {
            std::forward<R>(receiver).set_value(std::forward<Args>(args)...);
        }
    };
    struct set_error_t {
        template <class R, class E>
        void operator()(R&& receiver, E&& error) const noexcept {
            std::forward<R>(receiver).set_error(std::forward<E>(error));
        }
    };
    struct set_stopped_t {
        template <class R>
        void operator()(R&& receiver) const noexcept {
            std::forward<R>(receiver).set_stopped();
        }
    };
    struct connect_t {
        template <class S, class R>
        auto operator()(S&& sender, R&& receiver) const {
            return std::forward<S>(sender).connect(std::forward<R>(receiver));
        }
    };
    struct start_t {
        template <class O>
        void operator()(O& operation) const noexcept {
            operation.start();
        }
    };
    struct schedule_t {
        template <class S>
        auto operator()(S&& scheduler) const {
            return std::forward<S>(scheduler).schedule();
        }
    };
    struct empty_env {};
    struct get_env_t {
        template <class T>
        decltype(auto) operator()(const T& of) const noexcept {
            if constexpr (requires { of.get_env(); }) {
                return of.get_env();
            } else {
                return empty_env{};
            }
        }
    };
    struct get_stop_token_t {
        template <class Env>
        decltype(auto) operator()(const Env& env) const noexcept {
            if constexpr (requires { env.query(*this); }) {
                return env.query(*this);
            } else {
                return inplace_stop_token();
            }
        }
    };
    struct get_scheduler_t {};
    template <class Tag>
    struct get_completion_scheduler_t {};

    struct sender_tag {};
    struct receiver_tag {};
    struct operation_state_tag {};
    struct scheduler_tag {};

    template <class... Signatures>
    struct completion_signatures {};
    template <class S, class Env>
    using completion_signatures_of = typename std::remove_cvref_t<S>::completion_signatures;

    /// Whether the library calls tag_invoke() rather than members.
    static constexpr bool uses_tag_invoke = false;
    template <class S>
    static constexpr bool is_sender =
        requires { typename std::remove_cvref_t<S>::completion_signatures; };
};

namespace detail {

/// Detects whether a library's queries call members rather than tag_invoke().
template <class Query>
struct query_probe {
    inplace_stop_token query(Query) const noexcept { return {}; }
};
template <class Query>
inline constexpr bool calls_members =
    std::is_same_v<std::remove_cvref_t<std::invoke_result_t<Query, query_probe<Query>>>,
                   inplace_stop_token>;

/// The vocabulary of a library that has the names of C++26.
#define COIL_SENDER_VOCABULARY(vocabulary, library, queries, suffix)                               \
    struct vocabulary {                                                                            \
        using set_value_t = library::set_value_t;                                                  \
        using set_error_t = library::set_error_t;                                                  \
        using set_stopped_t = library::set_stopped_t;                                              \
        using connect_t = library::connect_t;                                                      \
        using start_t = library::start_t;                                                          \
        using schedule_t = library::schedule_t;                                                    \
        using get_env_t = library::get_env_t;                                                      \
        using get_stop_token_t = queries::get_stop_token_t;                                        \
        using get_scheduler_t = library::get_scheduler_t;                                          \
        template <class Tag>                                                                       \
        using get_completion_scheduler_t = library::get_completion_scheduler_t<Tag>;               \
        using sender_tag = library::sender_##suffix;                                               \
        using receiver_tag = library::receiver_##suffix;                                           \
        using operation_state_tag = library::operation_state_##suffix;                             \
        using scheduler_tag = library::scheduler_##suffix;                                         \
        template <class... Signatures>                                                             \
        using completion_signatures = library::completion_signatures<Signatures...>;               \
        template <class S, class Env>                                                              \
        using completion_signatures_of = library::completion_signatures_of_t<S, Env>;              \
        static constexpr bool uses_tag_invoke = !detail::calls_members<queries::get_stop_token_t>; \
        template <class S>                                                                         \
        static constexpr bool is_sender = library::sender<S>;                                      \
    }

} // namespace detail

#ifdef __cpp_lib_senders
COIL_SENDER_VOCABULARY(std_vocabulary, std::execution, std, t);
using default_vocabulary = std_vocabulary;
#endif
#if COIL_HAS_STDEXEC
COIL_SENDER_VOCABULARY(stdexec_vocabulary, stdexec, stdexec, t);
#ifndef __cpp_lib_senders
using default_vocabulary = stdexec_vocabulary;
#endif
#endif
#if !COIL_HAS_STDEXEC && !defined(__cpp_lib_senders)
/// The default vocabulary of as_sender() and scheduler(): that of std::execution if the standard
/// library has it, else that of stdexec, else member_vocabulary.
using default_vocabulary = member_vocabulary;
#endif

#undef COIL_SENDER_VOCABULARY

#ifdef __cpp_lib_senders
template <class S>
    requires(std_vocabulary::is_sender<S> && !awaitable<S>)
struct sender_vocabulary<S> {
    using type = std_vocabulary;
};
#endif
#if COIL_HAS_STDEXEC
template <class S>
    requires(stdexec_vocabulary::is_sender<S> && !awaitable<S>)
struct sender_vocabulary<S> {
    using type = stdexec_vocabulary;
};
#endif

namespace detail {

template <class T, template <class...> class Template>
inline constexpr bool is_instance = false;
template <template <class...> class Template, class... Args>
inline constexpr bool is_instance<Template<Args...>, Template> = true;

template <class S>
concept member_sender = requires { typename std::remove_cvref_t<S>::completion_signatures; } &&
                        is_instance<typename std::remove_cvref_t<S>::completion_signatures,
                                    member_vocabulary::completion_signatures>;

} // namespace detail

template <detail::member_sender S>
struct sender_vocabulary<S> {
    using type = member_vocabulary;
};

namespace detail {

/// The callback type of any stop token.
template <class Token, class F>
struct stop_callback_of {
    using type = typename Token::template callback_type<F>;
};
template <class F>
struct stop_callback_of<std::stop_token, F> {
    using type = std::stop_callback<F>;
};

} // namespace detail

} // namespace coil
