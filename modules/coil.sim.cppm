// A simulated world for tests.
// Written by generate.py from the headers, which say what each name is: ./dev modules.
export module coil.sim;

import coil;
export import coil.core;
export import coil.task;
export import coil.io;

export namespace coil::sim {
using coil::sim::disk_options;
using coil::sim::fault_plan;
using coil::sim::for_each_seed;
using coil::sim::host;
using coil::sim::link_options;
using coil::sim::random_source;
using coil::sim::seed_from_environment;
using coil::sim::violation;
using coil::sim::world;
using coil::sim::world_options;
} // namespace coil::sim
