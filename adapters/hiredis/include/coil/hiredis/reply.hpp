#pragma once

#include <coil/base/freed_by.hpp>
#include <coil/hiredis/reply_view.hpp>

#include <memory>
#include <utility>

#include <hiredis/hiredis.h>

namespace coil::hiredis {

/// A reply that owns its memory. Move-only.
class reply : public reply_view {
public:
    /// A nil reply.
    reply() noexcept : reply_view(nullptr) {}
    /// Takes ownership of hiredis' object.
    explicit reply(::redisReply* owned) noexcept : reply_view(owned), owner_(owned) {}

    reply(reply&& other) noexcept : reply(other.owner_.release()) {
        static_cast<reply_view&>(other) = reply_view(nullptr);
    }
    reply& operator=(reply&& other) noexcept {
        owner_ = std::move(other.owner_);
        static_cast<reply_view&>(*this) = reply_view(owner_.get());
        static_cast<reply_view&>(other) = reply_view(other.owner_.get());
        return *this;
    }
    reply(const reply&) = delete;
    reply& operator=(const reply&) = delete;
    ~reply() = default;

private:
    std::unique_ptr<::redisReply, coil::detail::freed_by<&::freeReplyObject>> owner_;
};

} // namespace coil::hiredis
