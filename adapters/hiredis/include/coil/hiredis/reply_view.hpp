#pragma once

#include <cstddef>
#include <string_view>

#include <hiredis/hiredis.h>

namespace coil::hiredis {

/// A reply of the server, or an element of one. A view: it is valid as long as the reply that owns
/// it.
///
///     const hiredis::reply pair = co_await c.call("MGET", "a", "b");
///     if (!pair[0].is_nil()) use(pair[0].text());
///
/// Thread-compatible, like a container.
class reply_view {
public:
    explicit reply_view(const ::redisReply* reply) noexcept : reply_(reply) {}

    /// Whether the value is missing: a key that does not exist, a transaction that was not
    /// executed.
    [[nodiscard]] bool is_nil() const noexcept {
        return reply_ == nullptr || reply_->type == REDIS_REPLY_NIL;
    }
    /// Whether the server refused the command. Such replies come only from pipelines or as elements
    /// of an array; a single command throws command_error.
    [[nodiscard]] bool is_error() const noexcept {
        return reply_ != nullptr && reply_->type == REDIS_REPLY_ERROR;
    }
    /// The text of a string, a status or an error. Throws hiredis::error for other types, nil
    /// included.
    [[nodiscard]] std::string_view text() const;
    /// The value of an integer. Throws hiredis::error for other types.
    [[nodiscard]] long long integer() const;

    /// The number of elements of an array; 0 for other types.
    [[nodiscard]] std::size_t size() const noexcept {
        return reply_ == nullptr || reply_->element == nullptr ? 0 : reply_->elements;
    }
    /// An element of an array. Throws std::out_of_range.
    [[nodiscard]] reply_view operator[](std::size_t index) const;

    /// hiredis' structure; null for a reply that was moved from.
    [[nodiscard]] const ::redisReply* native_handle() const noexcept { return reply_; }

private:
    const ::redisReply* reply_;
};

} // namespace coil::hiredis
