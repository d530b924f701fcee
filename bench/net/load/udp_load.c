/*
 * The client of the UDP echo servers: `udp_load PORT PID SECONDS WINDOW [--offload]` keeps up to
 * WINDOW datagrams of 64 bytes in flight, sends them in bursts of 64, and checks that each comes
 * back unchanged. Prints one JSON object: the datagrams that came back in SECONDS, after a warm-up,
 * and the CPU time that process PID used meanwhile. With --offload it sends a burst as one piece
 * (UDP_SEGMENT) and receives pieces (UDP_GRO).
 */
#include "../peers/ping_peer.h"

#include <netinet/udp.h>
#include <time.h>

enum { SIZE = 64, BURST = 64, LARGE = 65535, ROOM = 64 };

static char sent_bytes[BURST * SIZE];
static char got_bytes[BURST][LARGE];
static struct mmsghdr out[BURST], in[BURST];
static struct iovec out_parts[BURST], in_parts[BURST];

static double clock_of(clockid_t clock) {
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) {
        die("clock_gettime", errno);
    }
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int connect_to(unsigned port, int offload) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr*)&address, sizeof address) != 0) {
        die("connect", errno);
    }
    const int room = 4 << 20;
    const int on = 1;
    const int segment = SIZE;
    /* When none has come back for this time, the datagrams in flight count as lost. */
    const struct timeval patience = {0, 20000};
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (offload && (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0 ||
                    setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0)) {
        die("offload", errno);
    }
    return fd;
}

static void send_burst(int fd, int offload) {
    if (offload) {
        if (send(fd, sent_bytes, sizeof sent_bytes, 0) < 0 && errno != ECONNREFUSED) {
            die("send", errno);
        }
        return;
    }
    for (int done = 0; done < BURST;) {
        const int n = sendmmsg(fd, out + done, (unsigned)(BURST - done), 0);
        if (n < 0 && errno != ECONNREFUSED) {
            die("sendmmsg", errno);
        }
        done += n > 0 ? n : 0;
    }
}

/* The datagrams that came back, or 0 when none came in time. */
static long receive(int fd) {
    const int n = recvmmsg(fd, in, BURST, MSG_WAITFORONE, NULL);
    if (n < 0) {
        if (errno == EAGAIN || errno == ECONNREFUSED) {
            return 0;
        }
        die("recvmmsg", errno);
    }
    long datagrams = 0;
    for (int i = 0; i < n; ++i) {
        if (in[i].msg_len % SIZE != 0 || memcmp(got_bytes[i], sent_bytes, SIZE) != 0) {
            die("a datagram came back changed", EBADMSG);
        }
        datagrams += (long)(in[i].msg_len / SIZE);
    }
    return datagrams;
}

int main(int argc, char** argv) {
    const int offload = argc == 6 && strcmp(argv[5], "--offload") == 0;
    if (argc != 5 && !offload) {
        fprintf(stderr, "usage: udp_load PORT PID SECONDS WINDOW [--offload]\n");
        return 2;
    }
    const int fd = connect_to(parse_number(argv[1], 65535), offload);
    clockid_t server;
    if (clock_getcpuclockid((pid_t)parse_number(argv[2], 1u << 30), &server) != 0) {
        die("clock_getcpuclockid", ESRCH);
    }
    const double seconds = strtod(argv[3], NULL);
    const long window = (long)parse_number(argv[4], 1u << 20);
    for (int i = 0; i < BURST * SIZE; ++i) {
        sent_bytes[i] = (char)('a' + i % SIZE % 26);
    }
    for (int i = 0; i < BURST; ++i) {
        out_parts[i] = (struct iovec){sent_bytes + i * SIZE, SIZE};
        in_parts[i] = (struct iovec){got_bytes[i], LARGE};
        out[i].msg_hdr.msg_iov = &out_parts[i];
        in[i].msg_hdr.msg_iov = &in_parts[i];
        out[i].msg_hdr.msg_iovlen = in[i].msg_hdr.msg_iovlen = 1;
    }

    long under_way = 0, back = 0, lost = 0;
    double begin = 0, cpu = 0;
    const double start = clock_of(CLOCK_MONOTONIC);
    for (;;) {
        while (under_way + BURST <= window) {
            send_burst(fd, offload);
            under_way += BURST;
        }
        const long n = receive(fd);
        if (n == 0) {
            lost += under_way;
            under_way = 0;
        }
        under_way -= n < under_way ? n : under_way;
        const double now = clock_of(CLOCK_MONOTONIC);
        if (begin != 0) {
            back += n;
            if (now - begin >= seconds) {
                printf("{\"datagrams\": %ld, \"lost\": %ld, \"seconds\": %.6f, \"server_cpu_s\": "
                       "%.6f}\n",
                       back, lost, now - begin, clock_of(server) - cpu);
                return 0;
            }
        } else if (now - start >= 0.2) {
            begin = now;
            lost = 0;
            cpu = clock_of(server);
        }
    }
}
