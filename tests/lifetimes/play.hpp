#pragma once

#include "lifetimes/compose_steps.hpp"
#include "lifetimes/exec_steps.hpp"
#include "lifetimes/group_steps.hpp"
#include "lifetimes/io_steps.hpp"
#include "lifetimes/net_steps.hpp"
#include "lifetimes/ring_steps.hpp"
#include "lifetimes/sync_steps.hpp"

#include <array>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace lifetime_test {

/// All kinds of steps: a new kind is one function and one line here.
inline constexpr std::array step_kinds{
    kind{"nop", 3, 0, 0, &nop_step},
    kind{"sleep", 8, 0, 0, &sleep_step},
    kind{"yield", 3, 0, 0, &yield_step},
    kind{"read", 6, 0, 0, &read_step},
    kind{"write", 4, 0, 0, &write_step},
    kind{"poll", 3, 0, 0, &poll_step},
    kind{"eager", 3, 0, 0, &eager_step},
    kind{"recv_multishot", 3, 0, 0, &recv_multishot_step},
    kind{"poll_multishot", 2, 0, 0, &poll_multishot_step},
    kind{"ticks", 2, 0, 0, &ticks_step},
    kind{"mutex", 3, 0, 0, &mutex_step},
    kind{"shared_mutex", 2, 0, 0, &shared_mutex_step},
    kind{"semaphore", 3, 0, 0, &semaphore_step},
    kind{"condition_variable", 3, 0, 0, &condition_variable_step},
    kind{"event", 4, 0, 0, &event_step},
    kind{"latch", 2, 0, 0, &latch_step},
    kind{"barrier", 2, 0, 0, &barrier_step},
    kind{"wait_group", 2, 1, 1, &wait_group_step},
    kind{"channel", 5, 0, 0, &channel_step},
    kind{"oneshot", 2, 1, 1, &oneshot_step},
    kind{"broadcast", 3, 0, 0, &broadcast_step},
    kind{"call", 6, 1, 1, &call_step},
    kind{"throw", 2, 0, 0, &throw_step},
    kind{"scope", 6, 1, 4, &scope_step},
    kind{"scope_left", 6, 1, 4, &scope_left_step},
    kind{"scope_reset", 4, 1, 3, &scope_reset_step},
    kind{"supervisor", 4, 1, 4, &supervisor_step},
    kind{"child_handle", 3, 1, 2, &child_handle_step},
    kind{"for_each_concurrent", 3, 1, 4, &for_each_concurrent_step},
    kind{"when_all", 5, 1, 4, &when_all_step},
    kind{"when_any", 5, 1, 4, &when_any_step},
    kind{"time_limit", 4, 1, 1, &time_limit_step},
    kind{"deadline", 3, 1, 1, &deadline_step},
    kind{"shield", 3, 1, 1, &shield_step},
    kind{"with_token", 2, 1, 1, &with_token_step},
    kind{"generator", 1, 0, 0, &generator_step},
    kind{"async_generator", 4, 1, 3, &async_generator_step},
    kind{"on", 16, 1, 1, &on_step, true},
    kind{"chain", 2, 1, 1, &chain_step},
    kind{"resume_on", 8, 0, 0, &resume_on_step, true},
    kind{"schedule", 6, 0, 0, &schedule_step, true},
    kind{"async_task", 6, 1, 1, &async_task_step, true},
    kind{"asyncify", 4, 0, 0, &asyncify_step},
    kind{"asyncify_on", 5, 0, 0, &asyncify_on_step, true},
    kind{"blocking", 5, 0, 0, &blocking_step},
    kind{"join", 6, 1, 1, &join_step},
    kind{"spawn", 4, 1, 1, &spawn_step},
    kind{"loop_spawn", 3, 1, 1, &loop_spawn_step, false, true},
    kind{"foreign", 3, 0, 0, &foreign_step},
    kind{"connect", 2, 0, 0, &connect_step, false, true},
    kind{"lines", 2, 0, 0, &lines_step, false, true},
    kind{"duplex", 2, 0, 0, &duplex_step, false, true},
    kind{"files", 2, 0, 0, &files_step, false, true},
    kind{"resolve", 1, 0, 0, &resolve_step, false, true},
    kind{"process", 1, 0, 0, &process_step, false, true},
    kind{"watch", 1, 0, 0, &watch_step, false, true},
    kind{"post", 4, 0, 0, &post_step, true},
    kind{"modifiers", 3, 0, 0, &modifiers_step},
    kind{"cancel_call", 2, 0, 0, &cancel_step},
    kind{"futex", 2, 0, 0, &futex_step},
    kind{"descriptors", 3, 0, 0, &descriptors_step, false, true},
    kind{"splice", 2, 0, 0, &splice_step},
    kind{"read_multishot", 2, 0, 0, &read_multishot_step},
    kind{"datagrams", 2, 0, 0, &datagrams_step, false, true},
    kind{"epoll", 1, 0, 0, &epoll_step, false, true},
    kind{"signals", 2, 0, 0, &signals_step, false, true},
    kind{"incoming", 2, 0, 0, &incoming_step, false, true},
    kind{"serve", 2, 1, 1, &serve_step, false, true},
    kind{"task_group", 4, 1, 4, &task_group_step},
    kind{"scope_taken", 4, 1, 3, &scope_taken_step},
    kind{"parallel", 3, 1, 4, &parallel_step},
    kind{"restarting", 2, 1, 1, &restarting_step},
    kind{"callback", 3, 0, 0, &callback_step, true},
    kind{"foreign_loop", 2, 0, 0, &foreign_loop_step, false, true},
    kind{"interleave", 1, 0, 0, &interleave_step},
    kind{"defaults", 1, 0, 0, &defaults_step, false, true},
};

/// Whether a step can be made by a coroutine outside of a context.
inline bool works_anywhere(const kind& k) {
    for (const std::string_view each :
         {"call", "throw", "generator", "async_generator", "with_token", "shield", "on",
          "resume_on", "schedule", "async_task", "asyncify_on", "blocking", "spawn", "loop_spawn",
          "post", "callback", "defaults"}) {
        if (each == k.name) {
            return true;
        }
    }
    return false;
}

/// Whether a random program may throw this exception.
inline bool is_expected(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const planned&) {
        return true;
    } catch (const std::system_error& e) {
        return e.code() == std::errc::operation_canceled || e.code() == std::errc::timed_out ||
               e.code() == std::errc::broken_pipe;
    } catch (const std::logic_error& e) {
        // A child of a combination, or a task of a run_loop, cannot move.
        return std::string_view(e.what()).find("coil: ") == 0;
    } catch (...) {
        return false;
    }
}

/// One task.
inline task<> play(world& w, const body& b) {
    const witness here(w);
    for (const step& s : b.steps) {
        w.made_step();
        if (!on_a_context() && !works_anywhere(*s.what)) {
            continue;
        }
        try {
            co_await s.what->run(w, s);
        } catch (...) {
            if (!s.catches || !is_expected(std::current_exception())) {
                throw;
            }
        }
    }
}

inline void report(const std::exception_ptr& error) {
    if (!is_expected(error)) {
        try {
            std::rethrow_exception(error);
        } catch (const std::exception& e) {
            ADD_FAILURE() << "an unexpected exception: " << e.what();
        }
    }
}

} // namespace lifetime_test
