"""Programs that measure mutexes, channels and events."""

from .variants import Variant


def variants(build, cpus, count):
    """`count` operations of the cheapest program take a few hundred milliseconds."""
    return [Variant(build, "sync", cpus, *variant) for variant in
            (("free", "coil::mutex, free", "locks", "free", count),
             ("std_free", "std::mutex, free", "locks", "std_free", count),
             ("contended", "coil::mutex, 4 coroutines on 2 contexts", "locks", "contended", count // 10),
             ("std_contended", "std::mutex, 2 threads", "locks", "std_contended", count // 10),
             ("one", "coil::channel, one context", "channels", "one", count // 4),
             ("batch", "coil::channel, one context, batches of 64", "channels", "batch", count),
             ("many", "coil::channel, one context, 4 senders, 4 receivers", "channels", "many", count // 4),
             ("turn", "a turn in an intrusive list, by hand", "channels", "turn", count),
             ("asio", "asio channel, one context", "asio_channel", "one", count // 4),
             ("across", "coil::channel, two contexts", "channels", "across", count // 4),
             ("batched_across", "coil::channel, two contexts, batches of 64", "channels", "batched_across", count // 4),
             ("ring", "ring by hand, two threads", "channels", "ring", count // 4),
             ("wake", "100,000 coroutines woken by one event", "waiters", "wake", 100_000),
             ("spawn", "100,000 coroutines spawned", "waiters", "spawn", 100_000))]
