#pragma once

#include <coil/context/dispatcher.hpp>
#include <coil/context/options.hpp>
#include <coil/context/processors.hpp>

namespace coil {

/// Options of a runtime.
struct runtime_options {
    /// The number of contexts; 0: usable_processors().
    unsigned contexts = 0;
    /// Applies to each context. The name is extended by the context's number (by default "coil-0",
    /// ...).
    io_context_options context = {};
    /// Whether to pin each context to one of the processors that the process may use.
    bool pin = false;
    /// With `pin`: the order in which the processors are used.
    processor_order pin_order = processor_order::ascending;
    /// Selects the context of a new top-level task: round_robin(), least_loaded(), or any function.
    /// Empty: round_robin().
    dispatcher_function dispatcher = {};
};

} // namespace coil
