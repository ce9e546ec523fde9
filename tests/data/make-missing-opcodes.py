#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes pcaps/made-with-scapy.pcap: the opcodes that the kernel captures lack.

usage: make-missing-opcodes.py OUT.pcap     (Debian: python3-scapy)
Headers and ICRC are scapy's own, so the file is independent of the code that it tests; scapy has no
ICRC over IPv6, which is computed here with zlib. Everything is fixed: a second run writes the same.
"""
import struct
import sys
import zlib

from scapy.contrib.roce import BTH, CNPPadding
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import PcapWriter

ETHER = Ether(src='02:00:00:00:00:01', dst='02:00:00:00:00:02')
RETH = struct.pack('>QII', 0x0000123456789ab8, 0xcafe0142, 9)
IMM = b'\xde\xad\xbe\xef'
RKEY = struct.pack('>I', 0x00abcd07)


def over_ip(ip_id):
    return ETHER / IP(src='10.1.2.3', dst='10.1.2.4', id=ip_id, flags='DF', ttl=64)


def over_ipv6():
    return ETHER / IPv6(src='fd00::1', dst='fd00::2', hlim=64)


def packet(net, opcode, psn, headers, payload, **bth):
    pad = -len(payload) % 4
    return net / UDP(sport=0xc123, dport=4791, chksum=0) / BTH(
        opcode=opcode, migreq=1, padcount=pad, pkey=0xffff, dqpn=0x010203, psn=psn, **bth) / Raw(
        headers + payload + bytes(pad))


def with_icrc(frame):
    """The frame's bytes; over IPv6 the last four become the ICRC."""
    if IPv6 not in frame:
        return frame
    whole = bytes(frame)
    b = bytearray(whole[14:-4])
    b[0] |= 0x0f                        # traffic class and flow label
    b[1] = b[2] = b[3] = b[7] = 0xff    # the same, and hop limit
    b[46] = b[47] = 0xff                # UDP checksum
    b[52] = 0xff                        # BTH: FECN, BECN, reserved
    icrc = zlib.crc32(b'\xff' * 8 + bytes(b))
    return Ether(whole[:-4] + struct.pack('<I', icrc))


def main(path):
    data = bytes(range(256)) * 4
    frames = [
        packet(over_ip(1), 0x00, 0xfffffe, b'', data),
        packet(over_ip(2), 0x16, 0xffffff, RKEY, b'tail!', ackreq=1, solicited=1),
        packet(over_ip(3), 0x17, 0, RKEY, b'', ackreq=1),
        packet(over_ipv6(), 0x17, 1, RKEY, b'abc', ackreq=1),
        packet(over_ip(4), 0x26, 7, RETH, data),
        packet(over_ip(5), 0x28, 8, b'', b'abcdefg'),
        packet(over_ip(6), 0x2b, 9, RETH + IMM, b'123456789', solicited=1),
        packet(over_ipv6(), 0x2b, 10, RETH + IMM, b'123456789'),
        over_ip(7) / UDP(sport=0xc123, dport=4791, chksum=0) / BTH(
            opcode=0x81, becn=1, pkey=0xffff, dqpn=0x010203) / CNPPadding(),
        over_ipv6() / UDP(sport=0xc123, dport=4791, chksum=0) / BTH(
            opcode=0x81, becn=1, fecn=1, pkey=0xffff, dqpn=0x010203) / CNPPadding(),
    ]
    with PcapWriter(path) as out:
        for i, frame in enumerate(frames):
            frame = with_icrc(frame)
            frame.time = i
            out.write(frame)


if __name__ == '__main__':
    main(sys.argv[1])
