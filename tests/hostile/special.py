# SPDX-License-Identifier: BSD-2-Clause
"""Attacks that do not fit into a table of packets: what the victim must see in turn, merged runs,
storms. Each is called with a Runner (run)."""
import attacks
import victim as v
from judge import ERR, PATIENCE, RTS, Watch, good_message, want, want_answers
from packets import OP, transport


def ip_ids(runner):
    """Peers count the IPv4 identification as they like."""
    pair = runner.pair("rc")
    for ip_id in (0, 1, 2, 0x1234, 0x1235, 0xffff, 0, 0x8000):
        good_message(pair, ip_id)


def fields_of_ip(runner):
    """What routers may change, and the flow label, are not in the ICRC."""
    pair, good = runner.pair("rc"), runner.forger.way
    for fields in ({"tclass": 0xb8}, {"tclass": 3}, {"ttl": 1}, {"ttl": 255}, {"flow": 0x12345}):
        runner.forger.way = good.but(**fields)
        try:
            good_message(pair, marked=fields.get("tclass", 0) & 3 == 3)
        finally:
            runner.forger.way = good


def acks_while_waiting(runner):
    """A SEND is on its way: only the right ACK ends it."""
    runner.pairs.pop("rc", None)
    pair = runner.pair("rc")
    runner.forger.heard()
    runner.victim.ask(f"send {pair.n} 100")
    first = runner.forger.heard(PATIENCE, 1)
    want(first and first[0]["psn"] == pair.remote_psn, f"the SEND does not come: {first}")
    for away, syndrome in ((1, 0x1f), (100, 0x61), (-1, 0x1f), (-1, 0x62), (0x7fffff, 0x1f),
                           (0, 0x64), (0, 0x40), (0, 0xff)):
        runner.forger.send(transport(OP["ACK"], pair.remote, pair.remote_psn + away,
                                     syndrome=syndrome))
    runner.forger.send(transport(OP["ACK"], pair.remote, pair.remote_psn),
                       way=runner.forger.lie)
    want(runner.victim.ask("sent 20")[0] == "none", "a forged ACK has completed the SEND")
    # Sequence NAK and RNR NAK of the peer: it comes again.
    for syndrome in (0x60, 0x21):
        runner.forger.heard()
        runner.forger.send(transport(OP["ACK"], pair.remote, pair.remote_psn, syndrome=syndrome))
        again = runner.forger.heard(PATIENCE, 1)
        want(again and again[0]["psn"] == pair.remote_psn, "no second SEND after a NAK")
    runner.forger.send(transport(OP["ACK"], pair.remote, pair.remote_psn))
    want(runner.victim.ask(f"sent {PATIENCE * 1000}")[0] == "0", "the right ACK does not end it")
    pair.remote_psn += 1
    want(pair.state()[0] == RTS, f"in state {pair.state()[0]}")
    runner.forger.heard(0.2)
    good_message(pair)


def outstanding(runner, order, mtu=1024):
    """A fresh pair, and the request that it has just sent."""
    pair = v.Pair(runner.victim, runner.forger, mtu=mtu)
    good_message(pair)
    runner.forger.heard()
    runner.victim.ask(order.format(n=pair.n))
    first = runner.forger.heard(PATIENCE, 1)
    want(first and first[0]["psn"] == pair.remote_psn, f"no request comes: {first}")
    return pair, first[0]


def response(pair, name, away=0, length=1024, **f):
    pair.forger.send(transport(OP[name], pair.remote, pair.remote_psn + away, bytes(length), **f))


def nothing_sent(runner, what):
    want(runner.victim.ask("sent 20")[0] == "none", f"{what} has completed the request")


def read_lies(runner):
    """A READ of 2500 bytes is outstanding: three packets, nothing else ends it well."""
    pair, _ = outstanding(runner, "read {n} 2500")
    for away in (-1, 3, 4, 0x7fffff):  # not outstanding
        response(pair, "READ_RESP_ONLY", away)
        response(pair, "ATOMIC_ACK", away, 0)
        response(pair, "ACK", away, 0)
    runner.forger.heard()
    for name, away, length in (("READ_RESP_MIDDLE", 1, 1024), ("READ_RESP_LAST", 2, 452),
                               ("ACK", 2, 0)):  # without what must come before
        response(pair, name, away, length)
        nothing_sent(runner, name)
    again = runner.forger.heard(PATIENCE, 1)
    want(again and again[0]["psn"] == pair.remote_psn, "a lost response is not asked for again")
    for away, length in ((0, 1024), (1, 1024), (2, 452)):
        name = ("READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST")[away]
        response(pair, name, away, length)
    want(runner.victim.ask(f"sent {PATIENCE * 1000}")[0] == "0", "the right answer is not taken")
    pair.remote_psn += 3
    runner.forger.heard(0.05)
    good_message(pair)


BAD_RESPONSE, INVALID, ACCESS, OPERATION, RETRY = 7, 9, 10, 11, 12


def deadly_answers(runner):
    """Answers that end the request, and the queue pair, each with its status."""
    cases = (("read {n} 2500", "READ_RESP_FIRST", 0, 1000, {}, BAD_RESPONSE),
             ("read {n} 2500", "READ_RESP_FIRST", 0, 0, {}, BAD_RESPONSE),
             ("read {n} 100", "READ_RESP_ONLY", 0, 104, {}, BAD_RESPONSE),
             ("read {n} 100", "READ_RESP_ONLY", 0, 1024, {}, BAD_RESPONSE),
             ("read {n} 2500", "ATOMIC_ACK", 0, 0, {}, BAD_RESPONSE),
             ("send {n} 100", "READ_RESP_ONLY", 0, 100, {}, BAD_RESPONSE),
             ("send {n} 100", "ATOMIC_ACK", 0, 0, {}, BAD_RESPONSE),
             ("send {n} 100", "ACK", 0, 0, {"syndrome": 0x61}, INVALID),
             ("read {n} 2500", "ACK", 0, 0, {"syndrome": 0x62}, ACCESS),
             ("send {n} 100", "ACK", 0, 0, {"syndrome": 0x63}, OPERATION))
    for order, name, away, length, fields, status in cases:
        what = f"{name} of {length} bytes {fields} for '{order}'"
        pair, _ = outstanding(runner, order)
        response(pair, name, away, length, **fields)
        got = runner.victim.ask(f"sent {PATIENCE * 1000}")[0]
        want(got == str(status), f"{what}: status {got}, not {status}")
        want(pair.state()[0] == ERR, f"{what}: in state {pair.state()[0]}, not in ERR")
    good_message(runner.pair("rc"))


def icmp_errors(runner):
    """Routers and the peer's kernel say that nothing arrives: that ends nothing."""
    four = ((3, 0), (3, 1), (3, 2), (3, 3), (3, 13), (4, 0), (11, 0), (12, 0))
    six = ((1, 0), (1, 1), (1, 3), (1, 4), (3, 0), (4, 0), (4, 1))
    pair, first = outstanding(runner, "send {n} 100")
    for kind, code in four if runner.forger.version == 4 else six:
        runner.forger.icmp(first, kind, code)
    runner.forger.heard()
    response(pair, "ACK", 0, 0, syndrome=0x60)
    again = runner.forger.heard(PATIENCE, 1)
    want(again and again[0]["psn"] == pair.remote_psn, "no second SEND")
    response(pair, "ACK", 0, 0)
    want(runner.victim.ask(f"sent {PATIENCE * 1000}")[0] == "0", "the ACK does not end it")
    pair.remote_psn += 1
    good_message(pair)


def path_shrinks(runner):
    """A router says that the way carries less now: each send that fails is counted, and the queue
    pair goes on when it carries as much as before, or ends with RETRY_EXC."""
    def too_big(heard):
        if runner.forger.version == 4:
            runner.forger.icmp(heard, 3, 4, b"\0\0" + (600).to_bytes(2, "big"))
        else:
            runner.forger.icmp(heard, 2, 0, (1280).to_bytes(4, "big"))

    for heals in (True, False):
        pair, first = outstanding(runner, "send {n} 3000", mtu=4096)
        watch = Watch(runner.victim)
        too_big(first)
        watch.grows("link_send")
        if heals:
            v.forget_paths()
            runner.forger.heard(0.02)
            want(runner.forger.heard(PATIENCE, 1), "the SEND does not come again")
            response(pair, "ACK", 0, 0)
        got = runner.victim.ask(f"sent {3 * PATIENCE * 1000}")[0]
        v.forget_paths()
        want(got == str(0 if heals else RETRY), f"status {got}")
        want(pair.state()[0] == (RTS if heals else ERR), f"in state {pair.state()[0]}")
        pair.remote_psn += 1
        if heals:
            runner.forger.heard(0.05)
            good_message(pair)


def merged(runner):
    """Runs of datagrams as the kernel's GRO hands them over."""
    pair, forger = runner.pair("rc"), runner.forger
    runner.victim.ask(f"recv {pair.n} 9 300")
    forger.heard()
    bodies = [transport(OP["SEND_ONLY"], pair.remote, pair.psn + i, bytes([i] * 64 if i < 8 else 5),
                        ackreq=int(i == 8)) for i in range(9)]
    forger.send_merged([forger.way.sealed(b, i if forger.version == 4 else 0)
                        for i, b in enumerate(bodies)], 80)
    for i in range(9):
        got = runner.victim.ask(f"wc {PATIENCE * 1000}")
        want(got[0] != "none" and got[1] == "0", f"message {i} of a merged run: {got}")
        want(int(got[4]) == (64 if i < 8 else 5), f"message {i} has {got[4]} bytes")
    pair.psn += 9
    forger.heard(0.2)
    good_message(pair)


def merged_odd(runner):
    """Runs cut where no packet ends: every piece is counted, none is taken."""
    pair, forger = runner.pair("rc"), runner.forger
    good = forger.way.sealed(transport(OP["SEND_ONLY"], pair.remote, pair.psn, bytes(64)))
    for data, size in ((good * 5, 79), (good * 5, 81), (good * 3, 37), (good, 16), (good, 3),
                       (good * 12, 1), (bytes(1000), 37), (bytes(64000), 1333), (good * 2, 159)):
        data = data[:size * 64 - 1] if size < 20 else data
        before, watch = (pair.state(), pair.crc()), Watch(runner.victim)
        forger.heard()
        forger.send_merged([data], size)
        pieces = -(-len(data) // size)
        watch.want(("drop_short", "drop_icrc", "drop_padcnt"), pieces)
        want_answers(pair, ())
        want((pair.state(), pair.crc()) == before, "state or memory changed")
        good_message(pair)


def storm(runner):
    """Mutations: whatever happens to the queue pairs, memory and process stay."""
    rounds = 6 if runner.options.quick else 60
    before = None
    for i in range(rounds):
        seed = runner.options.seed * 1000 + i
        pair = v.Pair(runner.victim, runner.forger, ("rc", "rc", "uc", "ud")[i % 4])
        good_message(pair)
        runner.victim.ask(f"recv {pair.n} 16 1024")
        before = before or runner.target_crc(pair)
        for body in attacks.mutations(pair, seed, 100):
            runner.forger.send(body)
        want(runner.target_crc(pair) == before, f"memory was changed, seed {seed}")
        runner.victim.ask(f"end {pair.n}")
        while runner.victim.ask("wc 0")[0] != "none":
            pass
        while runner.victim.ask("sent 0")[0] != "none":
            pass
        runner.forger.heard(0.01)
    runner.pairs.clear()
    good_message(runner.pair("rc"))


SPECIAL = ((ip_ids, (4,)), (fields_of_ip, (4, 6)), (acks_while_waiting, (4, 6)),
           (read_lies, (4, 6)), (deadly_answers, (4, 6)), (icmp_errors, (4, 6)),
           (path_shrinks, (4, 6)), (merged, (4, 6)), (merged_odd, (4, 6)),
           (storm, (4, 6)))
