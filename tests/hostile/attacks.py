# SPDX-License-Identifier: BSD-2-Clause
"""What is thrown at the victim, as data: packets, and what must come of them.

An attack's `make` gets a Pair and returns a list of (body, how) for Forger.send. Harmless ones must
leave everything as it was; `counters` are the verdicts of which together `n` must be counted
(n None: as many as packets). Deadly ones are requests that the connected peer itself must not make:
one NAK with this syndrome, the queue pair in ERR, memory untouched.
"""
import random

from packets import CNP, OP, OPS, RC, RD, UC, UD, XRC, transport

JUNK = bytes(range(64))


class Attack:
    def __init__(self, name, make, counters=(), **more):
        self.name, self.make, self.counters = name, make, counters
        self.n = more.get("n")
        self.answers = more.get("answers", ())  # (opcode, syndrome), in order
        self.kind = more.get("kind", "rc")
        self.versions = more.get("versions", (4, 6))
        self.recv = more.get("recv", 0)  # bytes of a receive that is waiting
        self.coalesced = more.get("coalesced", False)  # any number of ACKs instead
        self.deadly = False


class Deadly(Attack):
    def __init__(self, name, make, syndrome, counters, **more):
        super().__init__(name, make, counters, n=1, **more)
        self.answers = ((RC | OP["ACK"], syndrome),)
        self.deadly = True


def op(name, kind=RC):
    return kind | OP[name]


def plain(bodies):
    return [(body, {}) for body in bodies]


def raw(datagrams):
    return [(datagram, {"icrc": False}) for datagram in datagrams]


def good_send(pair, ahead=0, payload=JUNK, **f):
    f.setdefault("ackreq", 1)
    return transport(op("SEND_ONLY"), pair.remote, pair.psn + ahead, payload, **f)


# ---- bytes that are no packet

def shorter_than_a_packet(pair):
    return raw(good_send(pair)[:n] for n in range(16))


def cut_headers(pair):
    bodies = []
    for name in ("WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQ", "CMP_SWAP", "FETCH_ADD", "ACK",
                 "ATOMIC_ACK", "SEND_ONLY_IMM", "SEND_ONLY_INV"):
        whole = transport(op(name), pair.remote, pair.psn)
        bodies += [whole[:n] for n in range(12, len(whole), 4)]
    return plain(bodies)


def wrong_pad(pair):
    bodies = [good_send(pair, payload=b"") + JUNK[:n] for n in (1, 2, 3, 5)]
    bodies += [good_send(pair, payload=b"", pad=n) for n in (1, 2, 3)]
    return plain(bodies)


def oversize(pair):
    bodies = [good_send(pair, payload=bytes(n)) for n in (4136, 8000, 8900)]
    return plain([*bodies, transport(0xff, pair.remote, pair.psn, bytes(8800))])


def with_options(pair):
    """Their ICRC covers what a socket does not show."""
    if pair.forger.version == 4:
        options = (b"\x01" * 4, b"\x94\x04\x00\x00", b"\x07\x27\x04" + bytes(37))
    else:
        options = (b"\x11\x00\x01\x04" + bytes(4), b"\x11\x00\x05\x02" + bytes(4))
    return [(good_send(pair), {"way": pair.forger.way.but(options=o)}) for o in options]


def short_udp_length(pair):
    body = good_send(pair)
    return [(body, {"udp_len": n}) for n in (len(body), len(body) - 4, 16)]


def long_udp_length(pair):
    return [(good_send(pair), {"udp_len": n}) for n in (200, 65000)]


def flipped_bits(pair):
    whole = pair.forger.way.sealed(good_send(pair))
    out = []
    for bit in range(8 * len(whole)):
        if bit // 8 == 4:  # the one byte that routers may change
            continue
        b = bytearray(whole)
        b[bit // 8] ^= 1 << bit % 8
        out.append(bytes(b))
    return raw(out)


def random_bytes(_):
    rng = random.Random(4791)
    return raw(rng.randbytes(4 * rng.randrange(5, 300)) for _ in range(200))


def wrong_versions(pair):
    return plain(good_send(pair, tver=n) for n in range(1, 16))


def wrong_partitions(pair):
    opcode = op("SEND_ONLY", {"rc": RC, "uc": UC, "ud": UD}[pair.kind])
    return plain(transport(opcode, pair.remote, pair.psn, JUNK, ackreq=1, qkey=0x11223344, pkey=n)
                 for n in (0x0000, 0x8001, 0x1234, 0x7ffe))


def other_transports(pair):
    opcodes = [kind | n for kind in (UC, RD, UD, XRC, 0xc0, 0xe0) for n in range(32)]
    return plain(transport(n, pair.remote, pair.psn, JUNK, ackreq=1) for n in opcodes)


def undefined_congestion(pair):
    return plain(transport(CNP | n, pair.remote, pair.psn, bytes(16)) for n in range(2, 32))


def congestion(pair):
    return plain([transport(0x81, pair.remote, 0, bytes(16), res=0x40)] * 10)


def wrong_queue_pairs(pair):
    wrong = (0, pair.remote ^ 0x8000, pair.remote ^ 0x400, pair.remote + 0x010000 & 0xffffff,
             0xfffffe)
    return plain(transport(op("SEND_ONLY"), n, pair.psn, JUNK, ackreq=1) for n in wrong)


def strangers(pair):
    return [(good_send(pair), {"way": pair.forger.lie}),
            (transport(op("ACK"), pair.remote, pair.remote_psn), {"way": pair.forger.lie})]


# ---- numbers that do not fit

def far_ahead(pair):
    return plain(good_send(pair, ahead) for ahead in (1, 2, 100, 0x7ffffe))


def far_behind(pair):
    return plain(good_send(pair, -back) for back in (2, 1000, 0x7fffff))


def duplicate_reads(pair):
    """Of requests that never were: neither executed nor remembered."""
    rdma = {"va": pair.addr, "rkey": pair.rkey, "dma_len": 64}
    return plain([transport(op("READ_REQ"), pair.remote, pair.psn - 5, **rdma),
                  transport(op("FETCH_ADD"), pair.remote, pair.psn - 6, va=pair.addr,
                            rkey=pair.rkey, swap=1),
                  transport(op("CMP_SWAP"), pair.remote, pair.psn - 7, va=pair.addr,
                            rkey=pair.rkey, swap=1)])


def forged_acks(pair):
    bodies = []
    for away in (-0x7fffff, -1, 0, 1, 0x7fffff):
        bodies += [transport(op("ACK"), pair.remote, pair.remote_psn + away, syndrome=s)
                   for s in (0x00, 0x1f, 0x20, 0x3f, 0x60, 0x61, 0x62, 0x63, 0x64, 0x40, 0x80,
                             0xff)]
    return plain(bodies)


def forged_responses(pair):
    bodies = []
    for name in ("READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST", "READ_RESP_ONLY",
                 "ATOMIC_ACK"):
        payload = b"" if name == "ATOMIC_ACK" else JUNK
        bodies += [transport(op(name), pair.remote, pair.remote_psn + away, payload)
                   for away in (-1, 0, 1, 1000)]
    return plain(bodies)


# ---- requests that the peer must not make; each on a fresh pair

def one(name, payload=b"", **f):
    """A request whose va counts from the region's start; rkey_off spoils the key."""
    def make(pair):
        g = dict(f)
        g.setdefault("ackreq", 1)
        if "va" in g:
            g["va"] = (pair.addr + g["va"]) & (2 ** 64 - 1)
            g["rkey"] = pair.rkey ^ g.pop("rkey_off", 0)
        if "va_is" in g:
            g["va"], g["rkey"] = g.pop("va_is"), pair.rkey
        return plain([transport(op(name), pair.remote, pair.psn, payload, **g)])
    return make


def reserved(number):
    return lambda pair: plain([transport(number, pair.remote, pair.psn, JUNK, ackreq=1)])


def two(first, second):
    def make(pair):
        return plain([transport(op(first[0]), pair.remote, pair.psn, first[1]),
                      transport(op(second[0]), pair.remote, pair.psn + 1, second[1], ackreq=1)])
    return make


END = 8 << 20  # bytes in the region
PMTU = bytes(1024)


def deadly():
    for number in (0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f):
        yield Deadly(f"reserved opcode 0x{number:02x}", reserved(number), 0x61,
                     ("nak_opcode", "nak_opcode_seq"))
    for name in ("SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM", "SEND_LAST_INV", "WRITE_MIDDLE",
                 "WRITE_LAST", "WRITE_LAST_IMM"):
        payload = PMTU if "MIDDLE" in name else JUNK
        yield Deadly(f"{name} without FIRST", one(name, payload), 0x61, ("nak_opcode_seq",),
                     recv=4096)
    yield Deadly("WRITE_MIDDLE behind SEND_FIRST",
                 two(("SEND_FIRST", PMTU), ("WRITE_MIDDLE", PMTU)), 0x61, ("nak_opcode_seq",),
                 recv=4096)
    yield Deadly("SEND_FIRST shorter than the MTU", one("SEND_FIRST", JUNK), 0x61,
                 ("nak_length",), recv=4096)
    yield Deadly("SEND_ONLY longer than the MTU", one("SEND_ONLY", PMTU + JUNK), 0x61,
                 ("nak_length",), recv=4096)
    yield Deadly("SEND_LAST of no byte", two(("SEND_FIRST", PMTU), ("SEND_LAST", b"")), 0x61,
                 ("nak_length",), recv=4096)
    yield Deadly("SEND longer than its receive", one("SEND_ONLY", JUNK), 0x61,
                 ("recv_too_short",), recv=32)
    write, read = "WRITE_ONLY", "READ_REQ"
    ranges = ("rkey_range_end", "rkey_range_start")
    for name, payload in ((write, JUNK), (read, b"")):
        yield Deadly(f"{name} by a wrong key",
                     one(name, payload, va=0, dma_len=64, rkey_off=0x5500), 0x62,
                     ("rkey_unknown", "rkey_stale", "rkey_is_lkey"))
        for what, va in (("past the end", END - 63), ("before the start", -1), ("far away", END)):
            yield Deadly(f"{name} {what}", one(name, payload, va=va, dma_len=64), 0x62, ranges)
        yield Deadly(f"{name} over the edge of addresses",
                     one(name, payload, va_is=2 ** 64 - 8, dma_len=64), 0x62, ranges)
    yield Deadly("WRITE_ONLY of another length than it says",
                 one(write, JUNK, va=0, dma_len=60), 0x61, ("nak_dma_length",))
    yield Deadly("WRITE_FIRST of 2^31 bytes", one("WRITE_FIRST", PMTU, va=0, dma_len=1 << 31),
                 0x62, ranges)
    yield Deadly("WRITE_FIRST of 2^32 - 1 bytes",
                 one("WRITE_FIRST", PMTU, va=0, dma_len=0xffffffff), 0x61, ("nak_dma_length",))
    yield Deadly("WRITE_FIRST of less than the MTU",
                 one("WRITE_FIRST", PMTU, va=0, dma_len=1024), 0x61,
                 ("nak_dma_length", "nak_length"))
    yield Deadly("READ of 2^31 bytes", one(read, va=0, dma_len=1 << 31), 0x62, ranges)
    yield Deadly("READ of 2^31 + 1 bytes", one(read, va=0, dma_len=(1 << 31) + 1), 0x61,
                 ("nak_dma_length",))
    for name in ("CMP_SWAP", "FETCH_ADD"):
        for off in (1, 4, 7):
            yield Deadly(f"{name} at an address + {off}", one(name, va=off, swap=1), 0x61,
                         ("nak_atomic_align",))
        yield Deadly(f"{name} past the end", one(name, va=END, swap=1), 0x62, ranges)
        yield Deadly(f"{name} by a wrong key", one(name, va=0, swap=1, rkey_off=0x5500), 0x62,
                     ("rkey_unknown", "rkey_stale", "rkey_is_lkey"))


def harmless():
    nothing = ("drop_short", "drop_icrc")
    yield Attack("datagrams of 0 to 15 bytes", shorter_than_a_packet, ("drop_short",))
    yield Attack("headers cut", cut_headers, ("drop_short",))
    yield Attack("wrong padding", wrong_pad, ("drop_padcnt",))
    yield Attack("datagrams larger than a packet", oversize, ("drop_long",))
    yield Attack("IP options and extension headers", with_options, ("drop_icrc",))
    yield Attack("UDP length too short", short_udp_length, nothing)
    yield Attack("UDP length too long", long_udp_length, (), n=0)
    yield Attack("every bit flipped", flipped_bits, ("drop_icrc",))
    yield Attack("random bytes", random_bytes, nothing)
    yield Attack("transport versions 1 to 15", wrong_versions, ("drop_tver",))
    yield Attack("wrong partitions", wrong_partitions, ("drop_pkey",))
    yield Attack("opcodes of other transports", other_transports,
                 ("drop_opcode", "drop_transport", "drop_short", "drop_padcnt"))
    yield Attack("undefined congestion opcodes", undefined_congestion,
                 ("drop_opcode", "drop_transport"))
    yield Attack("congestion notifications", congestion, (), n=0)
    yield Attack("wrong queue pairs", wrong_queue_pairs,
                 ("drop_no_qp", "drop_slot", "drop_state", "drop_transport"))
    yield Attack("another source address", strangers, ("drop_source",))
    nak = (op("ACK"), 0x60)
    yield Attack("PSN far ahead", far_ahead, ("nak_sequence", "drop_psn_ahead"), answers=(nak,))
    yield Attack("PSN far behind", far_behind, ("drop_duplicate",), coalesced=True)
    yield Attack("repeated READs and atomics that never were", duplicate_reads,
                 ("drop_read_dup",))
    yield Attack("forged ACKs and NAKs", forged_acks, ("drop_ghost", "drop_syndrome"))
    yield Attack("forged READ and atomic responses", forged_responses, ("drop_ghost",))


# ---- unreliable queue pairs: nothing is answered, nothing dies

def uc(name, ahead=0, payload=JUNK, **f):
    def make(pair):
        g = dict(f)
        if "va" in g:
            g["va"] = (pair.addr + g["va"]) & (2 ** 64 - 1)
            g["rkey"] = pair.rkey ^ g.pop("rkey_off", 0)
        return plain([transport(op(name, UC), pair.remote, pair.psn + ahead, payload, **g)])
    return make


def ud(payload=JUNK, **f):
    f.setdefault("qkey", 0x11223344)
    return lambda pair: plain([transport(op("SEND_ONLY", UD), pair.remote, 7, payload,
                                         sqpn=pair.qpn, **f)])


def every_other(kind):
    def make(pair):
        return plain(transport(n, pair.remote, pair.psn, JUNK) for n in range(256)
                     if n & 0xe0 not in (kind, CNP))
    return make


def unreliable():
    broken = ("drop_uc_broken",)
    keys = ("rkey_unknown", "rkey_range_end", "rkey_range_start", "rkey_stale", "rkey_is_lkey")
    others = ("drop_opcode", "drop_transport", "drop_short", "drop_padcnt")
    yield Attack("UC SEND_MIDDLE without FIRST", uc("SEND_MIDDLE", payload=PMTU), broken, kind="uc")
    yield Attack("UC SEND_LAST far away", uc("SEND_LAST", 5000), broken, kind="uc")
    yield Attack("UC WRITE by a wrong key", uc("WRITE_ONLY", va=0, dma_len=64, rkey_off=0x5500),
                 keys, kind="uc")
    yield Attack("UC WRITE past the end", uc("WRITE_ONLY", va=END - 63, dma_len=64), keys,
                 kind="uc")
    yield Attack("UC WRITE of another length than it says",
                 uc("WRITE_ONLY", va=0, dma_len=60), ("nak_dma_length",), kind="uc")
    yield Attack("UC, wrong partitions", wrong_partitions, ("drop_pkey",), kind="uc")
    yield Attack("UC, opcodes of other transports", every_other(UC), others, kind="uc")
    yield Attack("UD by a wrong Q_Key", ud(qkey=0x55), ("drop_qkey",), kind="ud")
    yield Attack("UD without a receive", ud(), ("drop_no_recv",), kind="ud")
    yield Attack("UD longer than its receive", ud(payload=bytes(200)), ("drop_ud_short",),
                 kind="ud", recv=100)
    yield Attack("UD, wrong partitions", wrong_partitions, ("drop_pkey",), kind="ud")
    yield Attack("UD, opcodes of other transports", every_other(UD), others, kind="ud")


def mutations(pair, seed, n):
    """Good packets with a few fields of chance, and the ICRC that belongs to them. The keys are
    wrong, so that none may touch the region."""
    rng = random.Random(seed)
    for _ in range(n):
        name = rng.choice([x for x in OPS if x != "-"])
        kind = rng.choice((RC, RC, RC, UC, UD))
        f = {"va": pair.addr + rng.choice((0, 8, -1, END, rng.getrandbits(40))),
             "rkey": pair.rkey ^ (1 << rng.randrange(32)), "ackreq": rng.getrandbits(1),
             "dma_len": rng.choice((0, 8, 64, 1024, 1 << 31, rng.getrandbits(32))),
             "syndrome": rng.getrandbits(8), "qkey": 0x11223344, "sqpn": pair.qpn}
        payload = rng.randbytes(rng.choice((0, 1, 8, 64, 1024, rng.randrange(1500))))
        psn = rng.choice((pair.psn, pair.psn + rng.randrange(-3, 4), pair.remote_psn,
                          rng.getrandbits(24)))
        body = bytearray(transport(op(name, kind), pair.remote, psn, payload, **f))
        if rng.random() < 0.3:
            at = rng.choice([i for i in range(len(body)) if not 5 <= i <= 7])
            body[at] ^= 1 << rng.randrange(8)
        if rng.random() < 0.1:
            body = body[:rng.randrange(len(body) + 1)]
        yield bytes(body)
