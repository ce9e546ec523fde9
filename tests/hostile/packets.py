# SPDX-License-Identifier: BSD-2-Clause
"""RoCEv2 packets as bytes, from the specification alone: whole Ethernet frames over IPv4 and IPv6,
right in every field unless something else is asked for. Shares nothing with the code under test.
"""
import copy
import ipaddress
import struct
import zlib

PORT = 4791
RC, UC, RD, UD, CNP, XRC = 0x00, 0x20, 0x40, 0x60, 0x80, 0xa0
OPS = ("SEND_FIRST SEND_MIDDLE SEND_LAST SEND_LAST_IMM SEND_ONLY SEND_ONLY_IMM WRITE_FIRST "
       "WRITE_MIDDLE WRITE_LAST WRITE_LAST_IMM WRITE_ONLY WRITE_ONLY_IMM READ_REQ READ_RESP_FIRST "
       "READ_RESP_MIDDLE READ_RESP_LAST READ_RESP_ONLY ACK ATOMIC_ACK CMP_SWAP FETCH_ADD - "
       "SEND_LAST_INV SEND_ONLY_INV").split()
OP = {name: number for number, name in enumerate(OPS) if name != "-"}
WITH_RETH = {OP[n] for n in ("WRITE_FIRST", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQ")}
WITH_IMM = {OP[n] for n in OP if n.endswith("_IMM")}
WITH_AETH = {OP[n] for n in ("READ_RESP_FIRST", "READ_RESP_LAST", "READ_RESP_ONLY", "ACK",
                             "ATOMIC_ACK")}
WITH_INV = {OP[n] for n in OP if n.endswith("_INV")}
ATOMICS = {OP["CMP_SWAP"], OP["FETCH_ADD"]}


def bth(opcode, qpn, psn, **f):
    """The 12 bytes; f: se, mig, pad, tver, pkey, res (byte 4), ackreq."""
    flags = f.get("se", 0) << 7 | f.get("mig", 1) << 6 | f.get("pad", 0) << 4 | f.get("tver", 0)
    return struct.pack(">BBHII", opcode, flags, f.get("pkey", 0xffff),
                       f.get("res", 0) << 24 | qpn,
                       f.get("ackreq", 0) << 31 | (psn & 0xffffff))


def extension(opcode, f):
    """What the opcode demands behind the BTH, from the fields in f."""
    op, out = opcode & 0x1f, b""
    if opcode & 0xe0 == UD:
        out += struct.pack(">II", f.get("qkey", 0), f.get("sqpn", 0))
    if op in WITH_RETH:
        out += struct.pack(">QII", f.get("va", 0), f.get("rkey", 0), f.get("dma_len", 0))
    if op in ATOMICS:
        out += struct.pack(">QIQQ", f.get("va", 0), f.get("rkey", 0), f.get("swap", 0),
                           f.get("compare", 0))
    if op in WITH_AETH:
        out += struct.pack(">I", f.get("syndrome", 0x1f) << 24 | f.get("msn", 0))
    if op == OP["ATOMIC_ACK"]:
        out += struct.pack(">Q", f.get("orig", 0))
    if op in WITH_IMM:
        out += struct.pack(">I", f.get("imm", 0))
    if op in WITH_INV:
        out += struct.pack(">I", f.get("inv", 0))
    return out


def transport(opcode, qpn, psn, payload=b"", **f):
    """From the BTH to the pad, without ICRC."""
    pad = -len(payload) % 4
    f.setdefault("pad", pad)
    return bth(opcode, qpn, psn, **f) + extension(opcode, f) + payload + bytes(pad)


def ones_sum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


class Way:
    """From one address and port to another; makes frames of what is to be sent. Fields of the IP
    header may be set afterwards; options are those of IPv4, or one whole IPv6 extension header."""
    tclass, ttl, flow, options = 0, 64, 0, b""

    def __init__(self, src_mac, dst_mac, src, dst, sport=0xc123):
        self.ether = dst_mac + src_mac
        self.src, self.dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
        self.sport = sport

    def but(self, **fields):
        """The same way with other fields."""
        way = copy.copy(self)
        way.__dict__.update(fields)
        return way

    def ip(self, length, ip_id, proto=17):
        """The IP header for length bytes behind it."""
        length += len(self.options)
        if self.src.version == 6:
            return struct.pack(">IHBB", 6 << 28 | self.tclass << 20 | self.flow, length,
                               0 if self.options else proto, self.ttl) + \
                self.src.packed + self.dst.packed + self.options
        head = struct.pack(">BBHHHBBH", 0x45 + len(self.options) // 4, self.tclass, 20 + length,
                           ip_id, 0x4000, self.ttl, proto, 0) + \
            self.src.packed + self.dst.packed + self.options
        return head[:10] + struct.pack(">H", ones_sum(head) ^ 0xffff) + head[12:]

    def udp(self, length):
        return struct.pack(">HHHH", self.sport, PORT, 8 + length, 0)

    def icrc(self, body, ip_id=0):
        """The four bytes that belong behind body (BTH to pad)."""
        length = len(body) + 4
        ip = bytearray(self.ip(8 + length, ip_id))
        if self.src.version == 4:
            ip[1] = ip[8] = ip[10] = ip[11] = 0xff
        else:
            ip[0] |= 0x0f
            ip[1] = ip[2] = ip[3] = ip[7] = 0xff
        udp = self.udp(length)[:6] + b"\xff\xff"
        masked = body[:4] + b"\xff" + body[5:] if len(body) > 4 else body
        return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(ip) + udp + masked))

    def sealed(self, body, ip_id=0):
        return body + self.icrc(body, ip_id)

    def frame(self, datagram, ip_id=0, udp_len=None):
        """The Ethernet frame around a UDP payload; its UDP checksum is 0."""
        kind = b"\x08\x00" if self.src.version == 4 else b"\x86\xdd"
        udp = self.udp(len(datagram) if udp_len is None else udp_len)
        return self.ether + kind + self.ip(8 + len(datagram), ip_id) + udp + datagram

    def icmp(self, kind, code, rest, quoted):
        """An ICMP error about an IP packet of the victim; rest: the four bytes behind the sum."""
        body = struct.pack(">BBH", kind, code, 0) + rest + quoted
        proto, pseudo, ether = 1, b"", b"\x08\x00"
        if self.src.version == 6:
            proto, ether = 58, b"\x86\xdd"
            pseudo = self.src.packed + self.dst.packed + struct.pack(">II", len(body), proto)
        body = body[:2] + struct.pack(">H", ones_sum(pseudo + body) ^ 0xffff) + body[4:]
        return self.ether + ether + self.ip(len(body), 0, proto) + body

    def pseudo_sum(self, length):
        """What a sender that leaves the checksum to the device puts into the UDP header."""
        return ones_sum(self.src.packed + self.dst.packed + struct.pack(">II", length, 17))


def parse(frame):
    """A dict of the fields of a RoCEv2 frame, or None."""
    kind = frame[12:14]
    if kind == b"\x08\x00" and frame[23] == 17:
        ip_len, src, dst = 20, frame[26:30], frame[30:34]
    elif kind == b"\x86\xdd" and frame[20] == 17:
        ip_len, src, dst = 40, frame[22:38], frame[38:54]
    else:
        return None
    udp = frame[14 + ip_len:]
    if len(udp) < 24 or udp[2:4] != PORT.to_bytes(2, "big"):
        return None
    body = udp[8:struct.unpack(">H", udp[4:6])[0]]
    r = {"src": str(ipaddress.ip_address(src)), "dst": str(ipaddress.ip_address(dst)),
         "opcode": body[0], "qpn": int.from_bytes(body[5:8], "big"), "ackreq": body[8] >> 7,
         "psn": int.from_bytes(body[9:12], "big"), "body": body[12:-4]}
    if body[0] & 0xe0 == RC and body[0] & 0x1f in WITH_AETH:
        r["syndrome"], r["msn"] = body[12], int.from_bytes(body[13:16], "big")
    return r
