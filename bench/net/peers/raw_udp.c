/*
 * UDP echo by hand: receives up to 64 messages with recvmmsg(2) and sends them back with
 * sendmmsg(2), both blocking. `raw_udp PORT [--offload]`: with --offload, UDP_GRO and UDP_SEGMENT.
 */
#include "ping_peer.h"

#include <netinet/udp.h>

enum { BATCH = 64, PLAIN = 2048, LARGE = 65535, CONTROL = 64 };

static struct mmsghdr messages[BATCH];
static struct iovec parts[BATCH];
static struct sockaddr_in peers[BATCH];
static union {
    struct cmsghdr align;
    char bytes[CONTROL];
} controls[BATCH];

static void prepare(char* data, size_t size, int offload) {
    for (int i = 0; i < BATCH; ++i) {
        struct msghdr* const m = &messages[i].msg_hdr;
        parts[i].iov_base = data + (size_t)i * size;
        parts[i].iov_len = size;
        m->msg_name = &peers[i];
        m->msg_namelen = sizeof peers[i];
        m->msg_iov = &parts[i];
        m->msg_iovlen = 1;
        m->msg_control = offload ? controls[i].bytes : NULL;
        m->msg_controllen = offload ? CONTROL : 0;
        m->msg_flags = 0;
    }
}

/* Turns a received message into its answer. */
static void answer(int i) {
    struct msghdr* const m = &messages[i].msg_hdr;
    parts[i].iov_len = messages[i].msg_len;
    unsigned short segment = 0;
    for (struct cmsghdr* c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int size = 0;
            memcpy(&size, CMSG_DATA(c), sizeof size);
            segment = (unsigned short)size;
        }
    }
    m->msg_control = NULL;
    m->msg_controllen = 0;
    if (segment != 0 && segment < messages[i].msg_len) {
        struct cmsghdr* const c = &controls[i].align;
        m->msg_control = c;
        m->msg_controllen = CMSG_SPACE(sizeof segment);
        c->cmsg_level = IPPROTO_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof segment);
        memcpy(CMSG_DATA(c), &segment, sizeof segment);
    }
}

int main(int argc, char** argv) {
    const int offload = argc == 3 && strcmp(argv[2], "--offload") == 0;
    if (argc != 2 && !offload) {
        fprintf(stderr, "usage: raw_udp PORT [--offload]\n");
        return 2;
    }
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)parse_number(argv[1], 65535));
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    if (fd < 0 || bind(fd, (struct sockaddr*)&address, sizeof address) != 0) {
        die("bind", errno);
    }
    const int room = 4 << 20;
    const int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (offload && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof one) != 0) {
        die("UDP_GRO", errno);
    }
    const size_t size = offload ? LARGE : PLAIN;
    char* const data = malloc(BATCH * size);
    if (data == NULL) {
        die("malloc", ENOMEM);
    }
    for (;;) {
        prepare(data, size, offload);
        const int n = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);
        if (n < 0) {
            die("recvmmsg", errno);
        }
        for (int i = 0; i < n; ++i) {
            answer(i);
        }
        for (int done = 0; done < n;) {
            const int m = sendmmsg(fd, messages + done, (unsigned)(n - done), 0);
            if (m < 0) {
                die("sendmmsg", errno);
            }
            done += m;
        }
    }
}
