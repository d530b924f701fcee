#!/bin/bash
# udp_echo: in batches, with segmentation offload, and one by one.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3
need_example udp_echo

expect_status 2 "$examples/udp_echo"
expect_status 2 "$examples/udp_echo" 9000 --other

for mode in "" --plain --multishot; do
    start udp_echo "$examples/udp_echo" 0 ${mode:+"$mode"}
    server=$pid
    port=$(port_of "$tmp/udp_echo.out" "$server") || fail "no server: $(cat "$tmp/udp_echo.err")"
    timeout 20 python3 - "$port" <<'PYTHON' || fail "udp_echo $mode did not answer"
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.connect(("127.0.0.1", int(sys.argv[1])))
sent = [bytes([65 + i]) * (i * 7) for i in range(50)]
for datagram in sent:
    s.send(datagram)
assert [s.recv(2000) for _ in sent] == sent
PYTHON
    kill "$server"
    ends "$server" || fail "udp_echo $mode ended with $?"
done
