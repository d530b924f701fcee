/*
 * The client of the TLS servers: OpenSSL over blocking sockets, TLS 1.3, AES-128-GCM.
 *
 *     tls_client PORT send MIB
 *     tls_client PORT receive
 *     tls_client PORT handshakes PID SECONDS      full handshakes, one after the other
 *     tls_client PORT requests PID SECONDS COUNT  HTTP, one request in flight on COUNT connections
 *     tls_client PORT idle COUNT                  one byte on each; prints a line and waits to be
 *                                                 killed
 *
 * With a PID it prints the number of handshakes or requests in SECONDS, after a warm-up, and the
 * CPU time that the process used meanwhile, as one JSON object.
 */
#include "tls_peer.h"

static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

static SSL* connect_to(SSL_CTX* ctx, unsigned port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr*)&address, sizeof address) != 0) {
        die("connect", errno);
    }
    no_delay(fd);
    SSL* const ssl = SSL_new(ctx);
    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || SSL_connect(ssl) != 1) {
        die_of_tls("SSL_connect");
    }
    return ssl;
}

/* Reads until the peer's close_notify. */
static unsigned long long drain(SSL* ssl) {
    static char block[BLOCK];
    unsigned long long total = 0;
    int n = 0;
    while ((n = SSL_read(ssl, block, BLOCK)) > 0) {
        total += (unsigned long long)n;
    }
    if (SSL_get_error(ssl, n) != SSL_ERROR_ZERO_RETURN) {
        die_of_tls("SSL_read");
    }
    return total;
}

static void finish(SSL* ssl) {
    const int fd = SSL_get_fd(ssl);
    SSL_free(ssl);
    close(fd);
}

static void send_all(SSL* ssl, unsigned long long mib) {
    static char block[BLOCK];
    for (unsigned long long i = 0; i < mib * 16; ++i) {
        if (SSL_write(ssl, block, BLOCK) != BLOCK) {
            die_of_tls("SSL_write");
        }
    }
    SSL_shutdown(ssl);
}

static long one_handshake(SSL_CTX* ctx, unsigned port) {
    SSL* const ssl = connect_to(ctx, port);
    drain(ssl);
    SSL_shutdown(ssl);
    finish(ssl);
    return 1;
}

/* One request on each connection. */
static long one_round(SSL** connections, unsigned count) {
    char answer[4096];
    for (unsigned i = 0; i < count; ++i) {
        if (SSL_write(connections[i], request, sizeof request - 1) <= 0) {
            die_of_tls("SSL_write");
        }
    }
    for (unsigned i = 0; i < count; ++i) {
        if (SSL_read(connections[i], answer, sizeof answer) <= 12 ||
            memcmp(answer, "HTTP/1.1 200", 12) != 0) {
            die_of_tls("no answer");
        }
    }
    return (long)count;
}

int main(int argc, char** argv) {
    if (argc < 3) {
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    SSL_CTX* const ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") != 1) {
        die_of_tls("SSL_CTX");
    }
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    const unsigned port = parse_number(argv[1], 65535);
    const char* const mode = argv[2];
    if (strcmp(mode, "send") == 0 && argc == 4) {
        SSL* const ssl = connect_to(ctx, port);
        send_all(ssl, parse_number(argv[3], 1u << 24));
        drain(ssl);
        finish(ssl);
        return 0;
    }
    if (strcmp(mode, "receive") == 0) {
        SSL* const ssl = connect_to(ctx, port);
        printf("%llu\n", drain(ssl));
        SSL_shutdown(ssl);
        finish(ssl);
        return 0;
    }
    if (strcmp(mode, "idle") == 0 && argc == 4) {
        for (unsigned left = parse_number(argv[3], 100000); left > 0; --left) {
            SSL* const ssl = connect_to(ctx, port);
            char byte = 'x';
            if (SSL_write(ssl, &byte, 1) != 1 || SSL_read(ssl, &byte, 1) != 1) {
                die_of_tls("one byte");
            }
        }
        printf("ready\n");
        fflush(stdout);
        for (;;) {
            pause();
        }
    }
    const int requests = strcmp(mode, "requests") == 0 && argc == 6;
    if (!requests && (strcmp(mode, "handshakes") != 0 || argc != 5)) {
        return 2;
    }
    clockid_t server;
    if (clock_getcpuclockid((pid_t)parse_number(argv[3], 1u << 30), &server) != 0) {
        die("clock_getcpuclockid", ESRCH);
    }
    const double seconds = strtod(argv[4], NULL);
    const unsigned count = requests ? parse_number(argv[5], 10000) : 0;
    SSL** const connections = calloc(count + 1, sizeof *connections);
    for (unsigned i = 0; i < count; ++i) {
        connections[i] = connect_to(ctx, port);
    }
    long done = 0;
    double begin = 0, cpu = 0;
    const double start = clock_of(CLOCK_MONOTONIC);
    for (;;) {
        const long n = requests ? one_round(connections, count) : one_handshake(ctx, port);
        const double now = clock_of(CLOCK_MONOTONIC);
        if (begin == 0) {
            if (now - start >= 0.2) {
                begin = now;
                cpu = clock_of(server);
            }
            continue;
        }
        done += n;
        if (now - begin >= seconds) {
            printf("{\"count\": %ld, \"seconds\": %.6f, \"server_cpu_s\": %.6f}\n", done,
                   now - begin, clock_of(server) - cpu);
            return 0;
        }
    }
}
