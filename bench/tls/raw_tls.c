/*
 * A TLS server by hand: OpenSSL over blocking sockets, one connection at a time.
 *
 *     raw_tls PORT CERTIFICATE KEY receive        reads one connection to its end
 *     raw_tls PORT CERTIFICATE KEY send MIB       writes that much into one connection
 *     raw_tls PORT CERTIFICATE KEY handshakes     accepts and closes
 *     raw_tls PORT CERTIFICATE KEY idle           answers one byte per connection, and keeps them
 */
#include "tls_peer.h"

static SSL* accept_one(SSL_CTX* ctx, int listener) {
    const int fd = accept(listener, NULL, NULL);
    if (fd < 0) {
        die("accept", errno);
    }
    no_delay(fd);
    SSL* const ssl = SSL_new(ctx);
    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1) {
        die_of_tls("SSL_new");
    }
    if (SSL_accept(ssl) != 1) {
        die_of_tls("SSL_accept");
    }
    return ssl;
}

static void finish(SSL* ssl) {
    const int fd = SSL_get_fd(ssl);
    SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
}

static void receive(SSL* ssl) {
    static char block[BLOCK];
    int n = 0;
    while ((n = SSL_read(ssl, block, BLOCK)) > 0) {
        continue;
    }
    if (SSL_get_error(ssl, n) != SSL_ERROR_ZERO_RETURN) {
        die_of_tls("SSL_read");
    }
}

static void send_block(SSL* ssl, unsigned long long mib) {
    static char block[BLOCK];
    for (unsigned long long i = 0; i < mib * 16; ++i) {
        if (SSL_write(ssl, block, BLOCK) != BLOCK) {
            die_of_tls("SSL_write");
        }
    }
}

int main(int argc, char** argv) {
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: raw_tls PORT CERTIFICATE KEY receive|send MIB|handshakes|idle\n");
        return 2;
    }
    shift_heap();
    SSL_CTX* const ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL || SSL_CTX_use_certificate_chain_file(ctx, argv[2]) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, argv[3], SSL_FILETYPE_PEM) != 1) {
        die_of_tls("certificate");
    }
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    raise_descriptor_limit();
    const int listener = listen_on(parse_number(argv[1], 65535), 0);
    const char* const mode = argv[4];
    if (strcmp(mode, "receive") == 0) {
        SSL* const ssl = accept_one(ctx, listener);
        receive(ssl);
        finish(ssl);
    } else if (strcmp(mode, "send") == 0 && argc == 6) {
        SSL* const ssl = accept_one(ctx, listener);
        send_block(ssl, parse_number(argv[5], 1u << 24));
        finish(ssl);
    } else if (strcmp(mode, "handshakes") == 0) {
        for (;;) {
            finish(accept_one(ctx, listener));
        }
    } else if (strcmp(mode, "idle") == 0) {
        for (;;) {
            SSL* const ssl = accept_one(ctx, listener);
            char byte = 0;
            if (SSL_read(ssl, &byte, 1) != 1 || SSL_write(ssl, &byte, 1) != 1) {
                die_of_tls("one byte");
            }
        }
    } else {
        return 2;
    }
    SSL_CTX_free(ctx);
    return 0;
}
