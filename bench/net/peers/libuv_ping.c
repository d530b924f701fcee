/* A ping server on libuv, one thread. `libuv_ping PORT`. Replies are sent directly; only what the
 * socket does not accept immediately is queued. */
#include "ping_peer.h"

#include <uv.h>

struct connection {
    uv_tcp_t tcp;
    char buffer[RECEIVE_SIZE];
};

struct queued_reply {
    uv_write_t request;
};

static void check(const char* what, int status) {
    if (status < 0) {
        fprintf(stderr, "libuv_ping: %s: %s\n", what, uv_strerror(status));
        exit(1);
    }
}

static void on_closed(uv_handle_t* handle) { free(handle->data); }

static void drop(struct connection* c) {
    if (!uv_is_closing((uv_handle_t*)&c->tcp)) {
        uv_close((uv_handle_t*)&c->tcp, on_closed);
    }
}

static void on_alloc(uv_handle_t* handle, size_t suggested, uv_buf_t* buffer) {
    (void)suggested;
    struct connection* c = handle->data;
    *buffer = uv_buf_init(c->buffer, RECEIVE_SIZE);
}

static void on_written(uv_write_t* request, int status) {
    if (status < 0) {
        drop(request->handle->data);
    }
    free(request);
}

static void on_read(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
    (void)buffer;
    struct connection* c = stream->data;
    if (count < 0) {
        drop(c);
        return;
    }
    if (count == 0) {
        return;
    }
    uv_buf_t out = uv_buf_init((char*)reply, REPLY_SIZE);
    const int written = uv_try_write(stream, &out, 1);
    if (written == REPLY_SIZE) {
        return;
    }
    if (written > 0) {
        out = uv_buf_init((char*)reply + written, REPLY_SIZE - (unsigned)written);
    }
    if (written < 0 && written != UV_EAGAIN) {
        drop(c);
        return;
    }
    struct queued_reply* queued = malloc(sizeof *queued);
    if (queued == NULL) {
        die("malloc", ENOMEM);
    }
    if (uv_write(&queued->request, stream, &out, 1, on_written) < 0) {
        free(queued);
        drop(c);
    }
}

static void on_connection(uv_stream_t* listener, int status) {
    if (status < 0) {
        return;
    }
    struct connection* c = malloc(sizeof *c);
    if (c == NULL) {
        die("malloc", ENOMEM);
    }
    check("uv_tcp_init", uv_tcp_init(listener->loop, &c->tcp));
    c->tcp.data = c;
    if (uv_accept(listener, (uv_stream_t*)&c->tcp) != 0 ||
        uv_read_start((uv_stream_t*)&c->tcp, on_alloc, on_read) != 0) {
        drop(c);
    }
}

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: libuv_ping PORT\n");
        return 2;
    }
    raise_descriptor_limit();
    signal(SIGPIPE, SIG_IGN);
    uv_loop_t* loop = uv_default_loop();
    uv_tcp_t listener;
    struct sockaddr_in address;
    check("uv_tcp_init", uv_tcp_init(loop, &listener));
    check("uv_ip4_addr", uv_ip4_addr("127.0.0.1", (int)parse_number(argv[1], 65535), &address));
    check("uv_tcp_bind", uv_tcp_bind(&listener, (const struct sockaddr*)&address, 0));
    check("uv_listen", uv_listen((uv_stream_t*)&listener, 4096, on_connection));
    printf("libuv_ping: listening on port %s\n", argv[1]);
    fflush(stdout);
    return uv_run(loop, UV_RUN_DEFAULT);
}
