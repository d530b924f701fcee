#include "bio.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace coil::tls::detail {

struct bio_functions {
    static engine& engine_of(BIO* bio) noexcept { return *static_cast<engine*>(BIO_get_data(bio)); }

    static int read(BIO* bio, char* to, std::size_t size, std::size_t* done) noexcept {
        engine& e = engine_of(bio);
        BIO_clear_retry_flags(bio);
        const std::size_t n = std::min<std::size_t>(size, e.input_end_ - e.input_begin_);
        if (n == 0) {
            if (!e.input_ended_) {
                BIO_set_retry_read(bio);
            }
            *done = 0;
            return 0;
        }
        const std::byte* const from = e.large_ ? e.large_.get() : e.small_.data();
        std::memcpy(to, from + e.input_begin_, n);
        e.input_begin_ += static_cast<std::uint32_t>(n);
        *done = n;
        return 1;
    }

    static int write(BIO* bio, const char* from, std::size_t size, std::size_t* done) noexcept {
        engine& e = engine_of(bio);
        BIO_clear_retry_flags(bio);
        if (!e.append_output(from, size)) {
            *done = 0;
            return 0;
        }
        *done = size;
        return 1;
    }

    // How OpenSSL hands sending over to the kernel. <openssl/bio.h> lists the numbers as taken, but
    // has names for the queries only. They are the same in all versions of OpenSSL 3.
    enum : int {
        set_keys = 72,         // number: 0 for receiving; pointer: the structure for TLS_TX
        set_record_type = 74,  // number: the type of the next write
        clear_record_type = 75 // the next write is application data
    };

    static long control(BIO* bio, int command, long number, void* pointer) noexcept {
        engine& e = engine_of(bio);
        switch (command) {
        case set_keys:
            return number != 0 && e.start_kernel_sending(pointer) ? 1 : 0;
        case BIO_CTRL_GET_KTLS_SEND:
            return e.kernel_sends() ? 1 : 0;
        case set_record_type:
        case clear_record_type:
            if (e.kernel_) {
                e.kernel_->set_next_type(command == set_record_type
                                             ? static_cast<unsigned char>(number)
                                             : static_cast<unsigned char>(0));
            }
            return 0;
        case BIO_CTRL_EOF:
            return e.input_ended_ && e.input_begin_ == e.input_end_ ? 1 : 0;
        case BIO_CTRL_FLUSH:
            return 1;
        case BIO_CTRL_PENDING:
            return static_cast<long>(e.input_end_ - e.input_begin_);
        default:
            return 0;
        }
    }

    static BIO_METHOD* make_method() noexcept {
        BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "coil");
        if (method != nullptr) {
            BIO_meth_set_read_ex(method, read);
            BIO_meth_set_write_ex(method, write);
            BIO_meth_set_ctrl(method, control);
        }
        return method;
    }
};

BIO* make_bio(engine& of) noexcept {
    // One for the whole process: OpenSSL has at most 127 method indices.
    static BIO_METHOD* const method = bio_functions::make_method();
    BIO* const bio = method == nullptr ? nullptr : BIO_new(method);
    if (bio != nullptr) {
        BIO_set_data(bio, &of);
        BIO_set_init(bio, 1);
    }
    return bio;
}

} // namespace coil::tls::detail
