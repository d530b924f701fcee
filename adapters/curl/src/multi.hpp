#pragma once

#include <coil/compose/scope.hpp>
#include <coil/curl/client.hpp>
#include <coil/interop/foreign_loop.hpp>
#include <coil/sync/event.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <curl/curl.h>

namespace coil::curl::detail {

/// A multi handle and the task that runs it. libcurl is called by that task and by the tasks that
/// use transfers, all on one context, and never inside one of its callbacks, since coroutines do
/// not resume there.
class multi {
public:
    explicit multi(const client_options& options);
    multi(const multi&) = delete;
    multi& operator=(const multi&) = delete;
    ~multi();

    /// Starts a transfer. Its end is reported by easy::end().
    void add(easy& e);
    /// Ends a transfer early.
    void remove(easy& e) noexcept;
    /// Called by a task after calls of libcurl: runs actions that are due, and reports the
    /// transfers that have ended.
    void settle() noexcept;
    /// Ends all transfers and the task.
    void close() noexcept;

    /// An easy handle with the options that all transfers share. Throws std::bad_alloc.
    [[nodiscard]] ::CURL* take_handle();
    /// Takes back a handle of which no other options were changed than those that each transfer
    /// sets, or also the method and the body: then it is reset.
    void give_back(::CURL* handle, bool is_get) noexcept;

    [[nodiscard]] std::size_t active() const noexcept { return active_.size(); }

private:
    static int on_socket(::CURL* easy, ::curl_socket_t fd, int what, void* self, void* of) noexcept;
    static int on_open(void* self, ::curl_socket_t fd, ::curlsocktype kind) noexcept;
    static int on_close(void* self, ::curl_socket_t fd) noexcept;
    static int on_timer(::CURLM* multi, long ms, void* self) noexcept;

    /// A descriptor that libcurl has asked to watch.
    struct watched {
        std::uint32_t wanted = 0; // the events that libcurl waits for; 0: none
        std::uint32_t in_set = 0; // those in the epoll set
        bool is_followed = false; // on_close() will be called for it
    };

    task<> run();
    task<> start_transfers();
    void set_shared_options(::CURL* handle) noexcept;
    void set_timer() noexcept;
    [[nodiscard]] watched& entry(::curl_socket_t fd);
    void report(::curl_socket_t fd, std::uint32_t events) noexcept;
    void act(::curl_socket_t fd, int events) noexcept;
    void reap() noexcept;
    void fail_all(::CURLcode code, const char* reason) noexcept;

    foreign_loop loop_;
    ::CURLM* handle_;
    std::vector<easy*> active_;
    std::vector<watched> sockets_; // indexed by descriptor
    std::vector<::CURL*> spare_;   // easy handles
    auto_reset_event due_;         // libcurl wants to be called when other tasks have run
    std::optional<long> timer_ms_; // what libcurl has set its timer to; -1: it is stopped
    bool is_due_ = false;          // libcurl wants to be called immediately
    bool timer_set_ = false;       // libcurl has set its timer since the flag was cleared
    bool is_running_ = false;
    std::optional<std::string> failure_; // why the task has ended, if it has failed
    std::optional<scope> task_;          // last: it uses the other members
};

/// A transfer.
class easy {
public:
    easy(std::shared_ptr<multi> on, request what, bool collects);
    easy(const easy&) = delete;
    easy& operator=(const easy&) = delete;
    ~easy();

    /// Called by multi: the transfer has ended and was removed from the multi handle.
    void end(::CURLcode code, const char* reason) noexcept;

    /// Whether the header of the last response, after redirects, is complete.
    [[nodiscard]] bool has_head() const noexcept { return has_head_; }
    [[nodiscard]] bool has_ended() const noexcept { return ended_.has_value(); }
    [[nodiscard]] const header_list& headers() const noexcept { return headers_; }
    /// The handle, of which the user may change options from now on.
    [[nodiscard]] ::CURL* expose() noexcept {
        is_reusable_ = false;
        return handle_;
    }
    [[nodiscard]] long status() const noexcept;

    [[nodiscard]] std::size_t take(std::span<char> to) noexcept;
    [[nodiscard]] std::size_t put(std::span<const char> from);
    void end_body() noexcept;
    /// Keeps the whole body from here on, instead of pausing.
    void collect() noexcept;
    [[nodiscard]] response take_response();
    /// Throws if the transfer has failed.
    void check() const;
    [[noreturn]] void fail(::CURLcode code, const std::string& reason) const;

    // CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION
    static std::size_t on_header(char* line, std::size_t, std::size_t size, void* self) noexcept;
    static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) noexcept;

    auto_reset_event readable; // something was received, or it has ended
    auto_reset_event writable;

private:
    friend class multi;

    static std::size_t on_read(char* to, std::size_t size, std::size_t n, void* self) noexcept;

    void set_up();
    void set_method();
    /// Whether no option of set_method() has been set.
    [[nodiscard]] bool is_plain_get() const noexcept {
        return !request_.upload && request_.body.empty() && request_.method == "GET";
    }
    void add_header(std::string_view line);
    void update_pauses() noexcept;

    std::shared_ptr<multi> multi_;
    request request_;
    ::CURL* handle_;
    ::curl_slist* fields_ = nullptr;
    std::array<char, CURL_ERROR_SIZE> reason_{};
    header_list headers_;
    std::string input_;
    std::size_t input_taken_ = 0;
    std::string output_;
    std::size_t output_sent_ = 0;
    std::optional<::CURLcode> ended_;
    std::size_t index_ = 0;    // in multi::active_
    bool is_reusable_ = false; // a reset would keep cookies and shares that the user has set
    bool collects_;
    bool has_head_ = false;
    bool too_large_ = false;
    bool output_ended_ = false;
    bool receiving_paused_ = false;
    bool sending_paused_ = false;
};

/// The maximum number of bytes that a transfer buffers in each direction.
inline constexpr std::size_t buffer_limit = 256UL * 1024;

} // namespace coil::curl::detail
