# SPDX-License-Identifier: BSD-2-Clause
"""The process that is attacked, its counters, and the place from which it is attacked.

    .---------------- a network namespace ----------------.
    |  ops serve (verbena)            forger (this file)  |
    |      |                               |              |
    |     v0 10.87.0.1, fd87::1 ========= v1 (no address) |
    '-----------------------------------------------------'

The forger reads and writes whole frames at v1 and plays 10.87.0.2 and fd87::2: it is the peer that
the victim's queue pairs are connected to, or lies about being it.
"""
import array
import itertools
import mmap
import os
import re
import select
import socket
import struct
import subprocess
import time

from packets import PORT, Way, parse

V0_MAC, V1_MAC = bytes.fromhex("028700000001"), bytes.fromhex("028700000002")
VICTIM = {4: "10.87.0.1", 6: "fd87::1"}
FORGER = {4: "10.87.0.2", 6: "fd87::2"}
STRANGER = {4: "10.87.0.9", 6: "fd87::9"}
SOL_PACKET, PACKET_VNET_HDR = 263, 15
QPNS = itertools.count(0x00f001)


def sh(text):
    subprocess.run(["sh", "-ec", text], check=True, stdin=subprocess.DEVNULL)


def make_network():
    mac = ["-".join(f"{b:02x}" for b in m).replace("-", ":") for m in (V0_MAC, V1_MAC)]
    sh(f"""
    ip link set lo up
    ip link add v0 mtu 9000 address {mac[0]} type veth peer name v1 mtu 9000 address {mac[1]}
    echo 1 >/proc/sys/net/ipv6/conf/v1/disable_ipv6
    echo 0 >/proc/sys/net/ipv6/conf/v0/accept_dad
    ip link set v0 up
    ip link set v1 up
    ip address add {VICTIM[4]}/24 dev v0
    ip -6 address add {VICTIM[6]}/64 dev v0 nodad
    for a in {FORGER[4]} {FORGER[6]} {STRANGER[4]} {STRANGER[6]}; do
        ip neighbour add $a lladdr {mac[1]} dev v0 nud permanent
    done""")


def forget_paths():
    """What ICMP errors have taught the kernel."""
    sh("ip route flush cache; ip -6 route flush cache")


# ---- counters

def verdict_numbers(build):
    """Counter name -> its number in the counters page, from the table that was built; without
    those that only note what a queue pair did."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as f:
        source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", f.read(), re.M).group(1)
    with open(os.path.join(source, "src", "base", "verdict_table.h"), encoding="utf-8") as f:
        text = f.read()
    order = re.findall(r"^\t(VRB_VERDICTS_\w+)\(X\)", text, re.M)
    numbers, n = {}, 0
    for section in order:
        body = re.search(rf"#define {section}\(X\) \\\n(.*?)\n(?:\n|/\*|#)", text, re.S).group(1)
        for counter, kind in re.findall(r'^\tX\(\w+, "(\w+)", (\w+)', body, re.M):
            n += 1
            if kind != "NOTE":
                numbers[counter] = n
    return numbers


class Counters:
    """The counters page of one process (include/verbena/stats.h, src/base/meet.h)."""
    MAGIC, HELLO = 0x5652425354415431, struct.Struct("=8I")
    DEVICE_BYTES = 16 + 8 * (6 + 4 + 6 + 12)
    VERDICTS_AT = 8 + 16 + 16 + 8 + 16 * DEVICE_BYTES

    def __init__(self, pid, build):
        self.numbers = verdict_numbers(build)
        for slot in range(1, 256):
            page = self.ask(slot)
            if page and struct.unpack_from("=I", page, 12)[0] == pid:
                self.page = page
                return
        raise RuntimeError(f"process {pid} shows no counters page")

    def ask(self, slot):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(2)
        try:
            s.connect(f"\0verbena.{os.geteuid()}.{slot}")
            s.send(self.HELLO.pack(0x56524231, 1, 2, 0, os.getpid(), 0, 0, 0))
            fds = array.array("i")
            _, extra, _, _ = s.recvmsg(256, socket.CMSG_SPACE(16))
            for level, kind, data in extra:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
        except OSError:
            return None
        finally:
            s.close()
        if not fds:
            return None
        page = mmap.mmap(fds[0], 0, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED)
        for fd in fds:
            os.close(fd)
        return page if struct.unpack_from("=Q", page, 0)[0] == self.MAGIC else None

    def all(self):
        """Counter name -> value, of those that are not 0."""
        size = struct.unpack_from("=I", self.page, 8)[0]
        values = struct.unpack_from("=256Q", self.page, size - 256 * 8)
        return {name: values[n] for name, n in self.numbers.items() if values[n]}


# ---- the forger

class Forger:
    """Frames out and in at v1."""

    def __init__(self, version):
        self.version = version
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.sock.bind(("v1", 0))
        self.way = Way(V1_MAC, V0_MAC, FORGER[version], VICTIM[version])
        self.lie = Way(V1_MAC, V0_MAC, STRANGER[version], VICTIM[version])

    def send(self, body, **how):
        """A packet from BTH to pad. how: ip_id; icrc=False: body has it already, or lacks it; way:
        another one."""
        way, ip_id = how.get("way", self.way), how.get("ip_id", 0)
        if how.get("icrc", True):
            body = way.sealed(body, ip_id)
        self.sock.send(way.frame(body, ip_id, how.get("udp_len")))

    def send_merged(self, datagrams, size):
        """One frame that the kernel takes for UDP datagrams of `size` bytes already merged."""
        whole = b"".join(datagrams)
        frame = bytearray(self.way.frame(whole))
        at = len(frame) - len(whole) - 8
        struct.pack_into(">H", frame, at + 6, self.way.pseudo_sum(8 + len(whole)))
        head = struct.pack("=BBHHHH", 1, 5, at + 8, size, at, 6)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
            s.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            s.bind(("v1", 0))
            s.send(head + bytes(frame))

    def icmp(self, heard, kind, code, rest=bytes(4)):
        """An ICMP error about a packet of the victim, as a router or the peer would send it."""
        self.sock.send(self.way.icmp(kind, code, rest, heard["frame"][14:14 + 120]))

    def heard(self, seconds=0.0, n=None):
        """RoCEv2 packets from the victim: all that are there, waiting up to `seconds` for n."""
        packets, deadline = [], time.monotonic() + seconds
        while n is None or len(packets) < n:
            wait = max(0, deadline - time.monotonic())
            if not select.select([self.sock], [], [], wait)[0]:
                break
            frame, where = self.sock.recvfrom(65536)
            if where[2] == socket.PACKET_OUTGOING:
                continue
            packet = parse(frame)
            if packet and packet["src"] == VICTIM[self.version]:
                packet["frame"] = frame
                packets.append(packet)
        return packets


class Refused(Exception):
    """The victim could not do what it was asked to."""


class Victim:
    """One connection to `ops serve`: a process of its own, with a device."""

    def __init__(self, port, version, build):
        self.sock = socket.create_connection((VICTIM[4], port), timeout=60)
        self.file = self.sock.makefile("rw", encoding="ascii")
        self.version, self.n = version, 0
        self.counters = Counters(int(self.ask("pid")[0]), build)

    def ask(self, text, may_fail=False):
        self.file.write(text + "\n")
        self.file.flush()
        answer = self.file.readline().split()
        if not answer:
            raise Refused("the victim is gone")
        if answer[0] == "error" and not may_fail:
            raise Refused(f"{text}: {' '.join(answer)}")
        return answer[1:] if answer[0] not in ("error", "none") else answer

    def close(self):
        self.file.close()
        self.sock.close()


class Pair:
    """A queue pair of the victim and the forged one that it is connected to."""

    def __init__(self, victim, forger, kind="rc", keep=False, mtu=1024):
        self.victim, self.forger, self.kind, self.mtu = victim, forger, kind, mtu
        victim.n = (victim.n + 1) % 5
        # Those that are kept have numbers of their own.
        self.n = 5 + ("rc", "uc", "ud").index(kind) if keep else victim.n
        self.qpn = next(QPNS)
        victim.ask(f"end {self.n}", may_fail=True)
        gid = FORGER[victim.version]
        gid = gid if ":" in gid else "::ffff:" + gid
        self.psn = 0x123400  # the next request's
        got = victim.ask(f"qp {self.n} {kind} {mtu} {gid} {self.qpn} {self.psn}")
        self.remote, self.remote_psn = int(got[1]), int(got[2])
        self.rkey, self.addr, self.length = int(got[3]), int(got[4]), int(got[5])

    def state(self):
        """(number of the state, receives taken)"""
        return tuple(int(x) for x in self.victim.ask(f"state {self.n}"))

    def crc(self):
        return int(self.victim.ask(f"crc 0 {2 * self.length}")[0])


__all__ = ["PORT", "Counters", "Forger", "Pair", "Refused", "Victim", "make_network"]
