#pragma once

#include <coil/asio/config.hpp>
#include <coil/asio/gate.hpp>

#include COIL_ASIO_HEADER(system_executor.hpp)

#include <memory>
#include <utility>

namespace coil::inline COIL_ASIO_ABI {

class asio_context;

/// An Asio executor that runs functions and completion handlers on a coil context. Returned by
/// asio_context::get_executor(); use_coil creates one for the handlers of the operation that it
/// awaits.
///
///     coil::asio_context asio_side(ctx);
///     asio::post(asio_side.get_executor(), [] { ... });       // runs on the thread of ctx
///     asio::ip::tcp::socket socket(asio_side.get_executor()); // so do its handlers
///
/// It converts to asio::any_io_executor. Of the properties of asio::io_context's executor it
/// supports these:
///
/// - blocking: with `possibly`, the default, execute() calls a function immediately if it is called
///   on the context's thread. With `never`, every function runs later.
/// - outstanding_work: `tracked` keeps the coil context's run() from returning.
/// - mapping (always `thread`) and context, both for queries.
///
/// Threading: all members may be called on any thread. Functions run on the context's thread; those
/// that one thread has submitted run in the order of submission, except that a function called
/// immediately runs before those that are queued.
///
/// Errors: an exception that escapes a function is passed to the context's on_unhandled_exception,
/// or to the caller if execute() has called the function immediately.
///
/// Lifetime: an executor may outlive its asio_context and the coil context. Functions submitted
/// after the end of the asio_context are destroyed uncalled.
class asio_executor {
public:
    /// Submits a function.
    template <class F>
    void execute(F&& f) const {
        gate_.get()->execute(std::forward<F>(f), !never_);
    }

    // The properties, used by asio::require(), asio::prefer() and asio::query().

    [[nodiscard]] asio_executor
    require(detail_asio::library::execution::blocking_t::never_t) const noexcept {
        return {gate_, context_, true};
    }
    [[nodiscard]] asio_executor
    require(detail_asio::library::execution::blocking_t::possibly_t) const noexcept {
        return {gate_, context_, false};
    }
    [[nodiscard]] asio_executor
    require(detail_asio::library::execution::outstanding_work_t::tracked_t) const noexcept {
        return {detail_asio::gate_ref(gate_.get(), true), context_, never_};
    }
    [[nodiscard]] asio_executor
    require(detail_asio::library::execution::outstanding_work_t::untracked_t) const noexcept {
        return {detail_asio::gate_ref(gate_.get(), false), context_, never_};
    }
    [[nodiscard]] detail_asio::library::execution::blocking_t
    query(detail_asio::library::execution::blocking_t) const noexcept {
        using detail_asio::library::execution::blocking;
        return never_ ? detail_asio::library::execution::blocking_t(blocking.never)
                      : detail_asio::library::execution::blocking_t(blocking.possibly);
    }
    [[nodiscard]] detail_asio::library::execution::outstanding_work_t
    query(detail_asio::library::execution::outstanding_work_t) const noexcept {
        using property = detail_asio::library::execution::outstanding_work_t;
        using detail_asio::library::execution::outstanding_work;
        return gate_.tracked() ? property(outstanding_work.tracked)
                               : property(outstanding_work.untracked);
    }
    [[nodiscard]] static constexpr detail_asio::library::execution::mapping_t
    query(detail_asio::library::execution::mapping_t) noexcept {
        return detail_asio::library::execution::mapping_t::thread_t();
    }
    /// The asio_context; for the executor of use_coil's handlers, Asio's system_context.
    [[nodiscard]] detail_asio::library::execution_context&
    query(detail_asio::library::execution::context_t) const noexcept {
        if (context_ != nullptr) {
            return *context_;
        }
        return detail_asio::library::query(detail_asio::library::system_executor(),
                                           detail_asio::library::execution::context);
    }

    /// Whether both submit to the same asio_context with the same properties.
    friend bool operator==(const asio_executor& a, const asio_executor& b) noexcept {
        return a.gate_.get() == b.gate_.get() && a.never_ == b.never_ &&
               a.gate_.tracked() == b.gate_.tracked();
    }
    friend bool operator!=(const asio_executor& a, const asio_executor& b) noexcept {
        return !(a == b);
    }

    /// Used by use_coil.
    explicit asio_executor(std::shared_ptr<detail_asio::gate> gate) noexcept
        : asio_executor(detail_asio::gate_ref(std::move(gate)), nullptr, false) {}

private:
    friend class asio_context;

    asio_executor(detail_asio::gate_ref gate, detail_asio::library::execution_context* context,
                  bool never) noexcept
        : gate_(std::move(gate)), context_(context), never_(never) {}

    detail_asio::gate_ref gate_;
    detail_asio::library::execution_context* context_;
    bool never_; // blocking.never
};

} // namespace coil::inline COIL_ASIO_ABI
