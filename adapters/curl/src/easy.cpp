#include "multi.hpp"

#include <coil/curl/error.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include <strings.h>

namespace coil::curl {

namespace detail {

namespace {

/// The URL without user and password.
std::string without_credentials(const std::string& url) {
    const std::size_t scheme = url.find("://");
    const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
    const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
    const std::size_t at = url.rfind('@', end);
    return at == std::string::npos || at < begin || at >= end
               ? url
               : url.substr(0, begin) + url.substr(at + 1);
}

const char* default_method(const request& r) noexcept {
    return r.upload ? "PUT" : r.body.empty() ? "GET" : "POST";
}

} // namespace

easy::easy(std::shared_ptr<multi> on, request what, bool collects)
    : multi_(std::move(on)), request_(std::move(what)), handle_(multi_->take_handle()),
      collects_(collects) {
    if (request_.method.empty()) {
        request_.method = default_method(request_);
    }
    try {
        set_up();
        multi_->add(*this);
    } catch (...) {
        ::curl_easy_cleanup(handle_);
        ::curl_slist_free_all(fields_);
        throw;
    }
}

easy::~easy() {
    if (!ended_) {
        multi_->remove(*this);
        multi_->settle();
    }
    if (is_reusable_) {
        multi_->give_back(handle_, is_plain_get());
    } else {
        ::curl_easy_cleanup(handle_);
    }
    ::curl_slist_free_all(fields_);
}

// NOLINTBEGIN(*-vararg): libcurl's interface
void easy::set_up() {
    ::curl_easy_setopt(handle_, CURLOPT_PRIVATE, this);
    ::curl_easy_setopt(handle_, CURLOPT_ERRORBUFFER, reason_.data());
    ::curl_easy_setopt(handle_, CURLOPT_URL, request_.url.c_str());
    ::curl_easy_setopt(handle_, CURLOPT_HEADERDATA, this);
    ::curl_easy_setopt(handle_, CURLOPT_WRITEDATA, this);
    ::curl_easy_setopt(handle_, CURLOPT_FOLLOWLOCATION, request_.max_redirects > 0 ? 1L : 0L);
    ::curl_easy_setopt(handle_, CURLOPT_MAXREDIRS, static_cast<long>(request_.max_redirects));
    ::curl_easy_setopt(handle_, CURLOPT_CONNECTTIMEOUT_MS,
                       static_cast<long>(request_.connect_timeout.count()));
    ::curl_easy_setopt(handle_, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
    set_method();
    for (const auto& [name, value] : request_.headers) {
        // "Name;" is libcurl's form of a field without a value.
        std::string line = name;
        line += value.empty() ? ";" : ": ";
        line += value;
        ::curl_slist* const longer = ::curl_slist_append(fields_, line.c_str());
        if (longer == nullptr) {
            throw std::bad_alloc();
        }
        fields_ = longer;
    }
    ::curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, fields_);
    if (request_.configure) {
        // It may set one of these, and multi needs both or none.
        ::curl_easy_setopt(handle_, CURLOPT_SOCKOPTFUNCTION, nullptr);
        ::curl_easy_setopt(handle_, CURLOPT_CLOSESOCKETFUNCTION, nullptr);
        request_.configure(handle_);
    } else {
        is_reusable_ = true;
    }
}

/// Names the method (CURLOPT_CUSTOMREQUEST) only if no other option of libcurl selects it, because
/// a name also applies to the requests after redirects.
void easy::set_method() {
    const std::string& method = request_.method;
    const char* implied = "GET";
    if (request_.upload) {
        implied = "PUT";
        ::curl_easy_setopt(handle_, CURLOPT_UPLOAD, 1L);
        ::curl_easy_setopt(handle_, CURLOPT_INFILESIZE_LARGE, ::curl_off_t{*request_.upload});
        ::curl_easy_setopt(handle_, CURLOPT_READFUNCTION, &on_read);
        ::curl_easy_setopt(handle_, CURLOPT_READDATA, this);
    } else if (!request_.body.empty() || method == "POST") {
        implied = "POST";
        ::curl_easy_setopt(handle_, CURLOPT_POSTFIELDS, request_.body.c_str());
        ::curl_easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE,
                           static_cast<::curl_off_t>(request_.body.size()));
    } else if (method == "HEAD") {
        implied = "HEAD";
        ::curl_easy_setopt(handle_, CURLOPT_NOBODY, 1L);
    }
    if (method != implied) {
        ::curl_easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, method.c_str());
    }
}

long easy::status() const noexcept {
    long code = 0;
    ::curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

response easy::take_response() {
    check();
    const char* url = nullptr;
    ::curl_easy_getinfo(handle_, CURLINFO_EFFECTIVE_URL, &url);
    input_.erase(0, std::exchange(input_taken_, 0));
    return {status(), std::move(headers_), std::move(input_), url != nullptr ? url : ""};
}
// NOLINTEND(*-vararg)

void easy::add_header(std::string_view line) {
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) {
        line.remove_suffix(1);
    }
    if (line.starts_with("HTTP/")) {
        headers_.clear(); // drops those of an interim response or of a redirect
    } else if (line.empty()) {
        const long code = status();
        const bool another_follows =
            code < 200 || code == 401 || code == 407 ||
            (code >= 300 && code < 400 && request_.max_redirects > 0 && headers_.find("Location"));
        has_head_ = has_head_ || !another_follows;
        readable.set();
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
        const std::size_t begin = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
        headers_.add(std::string(line.substr(0, colon)), std::string(line.substr(begin)));
    }
}

std::size_t easy::on_header(char* line, std::size_t, std::size_t size, void* self) noexcept try {
    static_cast<easy*>(self)->add_header({line, size});
    return size;
} catch (const std::exception&) {
    return 0; // CURLE_WRITE_ERROR
}

std::size_t easy::on_body(char* data, std::size_t, std::size_t size, void* self) noexcept try {
    easy& e = *static_cast<easy*>(self);
    const std::size_t kept = e.input_.size() - e.input_taken_;
    e.has_head_ = true;
    if (e.collects_ && size > e.request_.max_body - std::min(kept, e.request_.max_body)) {
        e.too_large_ = true;
        return 0;
    }
    if (!e.collects_ && kept >= buffer_limit) {
        e.receiving_paused_ = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (e.input_taken_ > kept) {
        e.input_.erase(0, std::exchange(e.input_taken_, 0));
    }
    e.input_.append(data, size);
    if (!e.collects_) {
        e.readable.set();
    }
    return size;
} catch (const std::exception&) {
    return 0;
}

std::size_t easy::on_read(char* to, std::size_t size, std::size_t n, void* self) noexcept {
    easy& e = *static_cast<easy*>(self);
    const std::size_t ready = std::min(size * n, e.output_.size() - e.output_sent_);
    if (ready == 0) {
        e.sending_paused_ = !e.output_ended_;
        return e.output_ended_ ? 0 : CURL_READFUNC_PAUSE;
    }
    std::copy_n(e.output_.data() + e.output_sent_, ready, to);
    e.output_sent_ += ready;
    if (e.output_sent_ == e.output_.size()) {
        e.output_.clear();
        e.output_sent_ = 0;
    }
    e.writable.set();
    return ready;
}

void easy::end(::CURLcode code, const char* reason) noexcept {
    ended_ = too_large_ ? CURLE_FILESIZE_EXCEEDED : code;
    if (reason != nullptr) {
        const std::string_view text(reason);
        std::copy_n(text.data(), std::min(text.size(), reason_.size() - 1), reason_.data());
    }
    readable.set();
    writable.set();
}

void easy::check() const {
    if (ended_ && *ended_ != CURLE_OK) {
        fail(*ended_, too_large_
                          ? "the body exceeds " + std::to_string(request_.max_body) + " bytes"
                          : reason_.data());
    }
}

void easy::fail(::CURLcode code, const std::string& reason) const {
    std::string what = "coil: curl: " + request_.method + ' ' + without_credentials(request_.url);
    if (!reason.empty()) {
        what += ": " + reason;
    }
    throw error(code, what);
}

/// libcurl may call on_body() and on_read() before this returns.
void easy::update_pauses() noexcept {
    if (!ended_) {
        ::curl_easy_pause(handle_, (receiving_paused_ ? CURLPAUSE_RECV : 0) |
                                       (sending_paused_ ? CURLPAUSE_SEND : 0));
        multi_->settle();
    }
}

std::size_t easy::take(std::span<char> to) noexcept {
    const std::size_t n = std::min(to.size(), input_.size() - input_taken_);
    std::copy_n(input_.data() + input_taken_, n, to.data());
    input_taken_ += n;
    if (input_taken_ == input_.size()) {
        input_.clear();
        input_taken_ = 0;
    }
    if (receiving_paused_ && input_.size() - input_taken_ <= buffer_limit / 2) {
        receiving_paused_ = false;
        update_pauses();
    }
    return n;
}

std::size_t easy::put(std::span<const char> from) {
    const std::size_t kept = output_.size() - output_sent_;
    const std::size_t n = std::min(from.size(), buffer_limit - std::min(kept, buffer_limit));
    if (n > 0) {
        if (output_sent_ > kept) {
            output_.erase(0, std::exchange(output_sent_, 0));
        }
        output_.append(from.data(), n);
        if (std::exchange(sending_paused_, false)) {
            update_pauses();
        }
    }
    return n;
}

void easy::end_body() noexcept {
    output_ended_ = true;
    if (std::exchange(sending_paused_, false)) {
        update_pauses();
    }
}

void easy::collect() noexcept {
    collects_ = true;
    if (std::exchange(receiving_paused_, false)) {
        update_pauses();
    }
}

} // namespace detail

// ---- transfer

transfer::transfer(std::unique_ptr<detail::easy> e) noexcept : easy_(std::move(e)) {}
transfer::transfer(transfer&&) noexcept = default;
transfer& transfer::operator=(transfer&&) noexcept = default;
transfer::~transfer() = default;

task<long> transfer::status() {
    while (!easy_->has_head() && !easy_->has_ended()) {
        co_await easy_->readable.wait();
    }
    if (!easy_->has_head()) {
        easy_->check();
    }
    co_return easy_->status();
}

const header_list& transfer::headers() const noexcept { return easy_->headers(); }

task<io_result> transfer::read_some(mutable_buffer to) {
    const std::span<char> bytes(static_cast<char*>(to.data()), to.size());
    while (!bytes.empty()) {
        if (const std::size_t n = easy_->take(bytes); n > 0) {
            co_return io_result(static_cast<int>(n));
        }
        if (easy_->has_ended()) {
            easy_->check();
            break;
        }
        co_await easy_->readable.wait();
    }
    co_return io_result(0);
}

task<io_result> transfer::write_some(const_buffer from) {
    const std::span<const char> bytes(static_cast<const char*>(from.data()), from.size());
    for (;;) {
        if (easy_->has_ended()) {
            easy_->check();
            easy_->fail(CURLE_SEND_ERROR, "the response has ended before the request's body");
        }
        if (const std::size_t n = easy_->put(bytes); n > 0 || bytes.empty()) {
            co_return io_result(static_cast<int>(n));
        }
        co_await easy_->writable.wait();
    }
}

task<io_result> transfer::shutdown_write() {
    easy_->end_body();
    co_return io_result(0);
}

task<response> transfer::finish() {
    easy_->end_body();
    easy_->collect();
    while (!easy_->has_ended()) {
        co_await easy_->readable.wait();
    }
    co_return easy_->take_response();
}

::CURL* transfer::native_handle() const noexcept { return easy_->expose(); }

// ---- header fields and errors

std::optional<std::string_view> header_list::find(std::string_view name) const noexcept {
    for (const auto& [each, value] : fields_) {
        if (each.size() == name.size() &&
            ::strncasecmp(each.data(), name.data(), name.size()) == 0) {
            return value;
        }
    }
    return std::nullopt;
}

namespace {

class curl_category final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "curl"; }
    [[nodiscard]] std::string message(int code) const override {
        return ::curl_easy_strerror(static_cast<::CURLcode>(code));
    }
    [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
        switch (code) {
        case CURLE_OPERATION_TIMEDOUT:
            return std::errc::timed_out;
        case CURLE_COULDNT_CONNECT:
            return std::errc::connection_refused;
        case CURLE_OUT_OF_MEMORY:
            return std::errc::not_enough_memory;
        default:
            return {code, *this};
        }
    }
};

} // namespace

const std::error_category& category() noexcept {
    static const curl_category instance;
    return instance;
}

} // namespace coil::curl
