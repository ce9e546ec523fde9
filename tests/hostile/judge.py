# SPDX-License-Identifier: BSD-2-Clause
"""What must hold behind an attack: good traffic, the right answers, the right counters."""
import os
import time
import zlib

from packets import CNP, OP, UC, UD, transport

RTS, ERR = 3, 6
PATIENCE = 5


class Wrong(Exception):
    """The victim did not do what it must."""


def want(condition, text):
    if not condition:
        raise Wrong(text)


# ---- good traffic

def good_message(pair, ip_id=0, marked=False):
    """One SEND of the connected peer goes through; marked: the network has set CE on its way."""
    payload = os.urandom(200)
    pair.victim.ask(f"recv {pair.n} 1 300")
    opcode = {"rc": 0, "uc": UC, "ud": UD}[pair.kind] | OP["SEND_ONLY"]
    pair.forger.heard()
    pair.forger.send(transport(opcode, pair.remote, pair.psn, payload, ackreq=1, qkey=0x11223344,
                               sqpn=pair.qpn), ip_id=ip_id)
    got = pair.victim.ask(f"wc {PATIENCE * 1000}")
    want(got[0] != "none", "a good message is not received")
    want(got[1] == "0", f"a good message is received with status {got[1]}")
    want(int(got[4]) == len(payload) and int(got[6]) == zlib.crc32(payload),
         "a good message arrives damaged")
    if pair.kind == "rc":
        cnp = [(CNP | 1, None)] if marked else []
        want_answers(pair, [*cnp, (OP["ACK"], 0x1f)], [0] * len(cnp) + [pair.psn])
    pair.psn = (pair.psn + 1) & 0xffffff


def want_answers(pair, answers, psns=None):
    heard = pair.forger.heard(PATIENCE if answers else 0, len(answers) or None)
    heard += pair.forger.heard(0.01)
    got = [(p["opcode"], p.get("syndrome")) for p in heard]
    # An ACK's credits are the responder's own affair.
    same = len(got) == len(answers) and all(
        a[0] == b[0] and (a[1] == b[1] or (a[1] < 0x20 and b[1] is not None and b[1] < 0x20))
        for a, b in zip(answers, got))
    want(same, f"answers {show(got)}, not {show(answers)}")
    want(all(p["qpn"] == pair.qpn for p in heard), "an answer to another queue pair")
    if psns:
        want([p["psn"] for p in heard] == psns, f"answers of PSN {heard}, not {psns}")


def show(answers):
    return "[" + ", ".join(f"{a:02x}/{'-' if b is None else f'{b:02x}'}" for a, b in answers) + "]"


# ---- counters

class Watch:
    """How the counters grow from here on."""

    def __init__(self, victim):
        self.victim, self.before = victim, victim.counters.all()

    def grown(self):
        now = self.victim.counters.all()
        return {k: n - self.before.get(k, 0) for k, n in now.items() if n != self.before.get(k, 0)}

    def want(self, names, n):
        """Together the verdicts `names` are counted n times, and no other one."""
        deadline = time.monotonic() + PATIENCE
        while True:
            grown = self.grown()
            mine = sum(grown.get(name, 0) for name in names)
            if mine >= n or time.monotonic() > deadline:
                break
            time.sleep(0.002)
        want(mine == n, f"{mine} counted as {' or '.join(names)}, not {n}: {grown}")
        others = {k: x for k, x in grown.items() if k not in names}
        want(not others, f"also counted: {others}")

    def grows(self, name):
        """The verdict is counted at least once."""
        deadline = time.monotonic() + PATIENCE
        while not self.grown().get(name):
            want(time.monotonic() < deadline, f"nothing counted as {name}: {self.grown()}")
            time.sleep(0.002)
