# SPDX-License-Identifier: BSD-2-Clause
"""The cases of the matrix: what the programs are started with, and what they must show.

A case knows nothing of processes and networks; a path (same host, or one of four wires) turns its
words into the command line for that path, or says why the path does not offer it.
"""
import itertools
import re
import zlib

PINGPONG_SIZES = (1, 64, 4096, 65536, 1 << 20, 8 << 20)
MTUS = (256, 512, 1024, 2048, 4096)

# Stand for a device whose port has an MTU of 4096, and for the index of the path's GID.
WIDE = "@wide"
GID = "@gid"


class Case:
    """A server and a client with the same options (or one program alone)."""

    def __init__(self, name, argv, host=True, rows=0, seconds=30, want=None, probe=None):
        self.name, self.argv, self.host, self.rows = name, argv, host, rows
        self.seconds, self.want, self.probe = seconds, want, probe
        self.path = None


class Path:
    """Where the data goes: an IP version and an MTU between two hosts."""

    def __init__(self, ip, mtu):
        self.ip, self.mtu = ip, mtu
        self.gid = "1" if ip == 6 else "0"
        self.path_mtu = max(m for m in MTUS if m + 100 < mtu)

    def __str__(self):
        return f"ipv{self.ip} mtu {self.mtu}"

    def refusal(self, case):
        """Why the path does not bear this case, or None."""
        words = case.argv
        if case.name.startswith("pingpong/ud"):
            needs = int(words[words.index("-s") + 1])
        else:
            needs = int(words[words.index("-m") + 1]) if "-m" in words else 0
        return f"path MTU {self.path_mtu}" if needs > self.path_mtu else None

    def place(self, case):
        """Adapts the case to the path."""
        case.path = self
        case.name += f" @ {self}"
        if case.probe:
            case.argv += ["-x", GID]
        if case.rows > 1 and "UD" in case.argv:  # -a ends at the path MTU
            case.rows = self.path_mtu.bit_length() - 1
        return case


WIRES = [Path(4, 1500), Path(6, 1500), Path(4, 9000), Path(6, 9000)]


def tool_cases():
    alone = {"host": False}
    yield Case("tools/ibv_devices", ["ibv_devices"], want=r"verbena0", **alone)
    yield Case("tools/ibv_devinfo", ["ibv_devinfo"], want=r"PORT_ACTIVE", **alone)
    yield Case("tools/ibv_devinfo -v", ["ibv_devinfo", "-v"], want=r"max_sge:\s+\d+", **alone)
    yield Case("tools/ibv_devinfo -l", ["ibv_devinfo", "-l"], want=r"verbena0", **alone)
    yield Case("tools/ibv_asyncwatch", ["ibv_asyncwatch"], want=r"async event FD", **alone)


def pingpong_case(kind, size, mtu, flags, options):
    n = 10 if size >= 1 << 20 else 200
    argv = [f"ibv_{kind}_pingpong", "-g", GID, "-s", str(size), "-n", str(n)]
    if mtu:
        argv += ["-m", str(mtu)]
    # one packet: the port's MTU must carry it; a larger path MTU is a finding of the checker
    if (kind == "ud" and size > 1024) or (options.check and mtu and mtu > 1024):
        argv += ["-d", WIDE]
    argv += flags
    name = f"pingpong/{kind} -s {size}" + (f" -m {mtu}" if mtu else "")
    return Case(" ".join([name] + flags), argv, want=r"\d+ iters in")


def pingpong_cases(options):
    quick = options.quick
    flag_sets = ([], ["-e"], ["-c"], ["-e", "-c"])
    for kind in ("rc", "uc", "ud", "srq"):
        if kind == "ud":  # no -m: a message is one packet
            for size in (1, 64, 1024, 2048, 4096):
                for flags in flag_sets:
                    if not quick or size in (1, 2048) or flags == ["-c"]:
                        yield pingpong_case(kind, size, None, flags, options)
            continue
        for size, mtu, flags in itertools.product(PINGPONG_SIZES, MTUS, flag_sets):
            if quick and not ((size in (1, 4096) and mtu == 1024) or
                              (size == 65536 and flags == ["-c"]) or
                              (size == 8 << 20 and mtu == 4096 and flags in ([], ["-c"]))):
                continue
            yield pingpong_case(kind, size, mtu, flags, options)


def perftest_case(tool, conn, opts, options):
    everything, many = "-a" in opts, "-q 8" in opts
    flat = " ".join(opts).split()
    argv = [f"ib_{tool}", "-d", options.dev, "-F", "-c", conn] + flat
    if "-D 3" not in opts:
        n = 16 if everything and many else 32 if everything or many else 512
        if tool.endswith("lat"):  # small counts: the WRITE target is moved by its helper alone
            n = 8 if everything else 100
        argv += ["-n", str(n)]
    rows = 1
    if everything:
        rows = 10 if conn == "UD" else 23
    name = " ".join([f"perftest/{tool} {conn}"] + list(opts))
    probe = [a if a != options.dev else "no-such-device" for a in argv]
    return Case(name, argv, rows=rows, seconds=240 if everything else 60, probe=probe)


def perftest_full(options):
    choices = (("", "-a"), ("", "-e"), ("", "-I 0", "-I 64", "-I 256"), ("", "-q 8"), ("", "-b"),
               ("", "--use-srq"), ("", "-l 16"), ("", "-D 3"))
    for verb, kind, conn in itertools.product(("send", "write", "read", "atomic"), ("lat", "bw"),
                                              ("RC", "UC", "UD")):
        for picked in itertools.product(*choices):
            yield perftest_case(f"{verb}_{kind}", conn, [o for o in picked if o], options)


def perftest_quick(options):
    inline = (["-I 0"], ["-I 64"], ["-I 256"])
    lat = {"send": ([], ["-a"], ["-e"], ["--use-srq"], ["-a", "-e", "-I 64"]) + inline,
           "write": ([], ["-a"]) + inline, "read": ([], ["-a"], ["-e"]), "atomic": ([], ["-e"])}
    wide = ([], ["-a"], ["-q 8"], ["-b"], ["-l 16"])
    bw = {"send": wide + (["-e"], ["-I 64"], ["--use-srq"], ["-a", "-q 8", "-b", "-l 16"],
                          ["-e", "-q 8", "-b", "--use-srq"]),
          "write": wide + (["-I 64"], ["-a", "-q 8", "-b", "-l 16"]),
          "read": wide + (["-e"], ["-e", "-q 8", "-b", "-l 16"]),
          "atomic": ([], ["-e"], ["-q 8"], ["-b"], ["-l 16"], ["-e", "-q 8", "-b", "-l 16"])}
    conns = {"send": ("RC", "UC", "UD"), "write": ("RC", "UC"), "read": ("RC",),
             "atomic": ("RC",)}
    for kind, table in (("lat", lat), ("bw", bw)):
        for verb, sets in table.items():
            for conn, opts in itertools.product(conns[verb], sets):
                if kind == "lat" and conn != "RC" and "-a" in opts:
                    continue  # perftest measures the CPU's clock anew for each size: 10 s a case
                yield perftest_case(f"{verb}_{kind}", conn, opts, options)
    yield perftest_case("send_bw", "RC", ["-D 3"], options)
    yield perftest_case("write_lat", "RC", ["-D 3"], options)


def all_cases(options):
    cases = list(tool_cases()) + list(pingpong_cases(options))
    cases += list(perftest_quick(options) if options.quick else perftest_full(options))
    if options.filter:
        cases = [c for c in cases if re.search(options.filter, c.name)]
    if options.budget:  # what a short budget leaves is spread over all kinds
        cases.sort(key=lambda c: zlib.crc32(c.name.encode()))
    if options.shard:
        i, n = (int(x) for x in options.shard.split("/"))
        cases = cases[i - 1::n]
    if options.wire:
        wires = [w for w in WIRES if options.ip in (0, w.ip) and options.mtu in (0, w.mtu)]
        for case in cases:  # four turns bring each case to each wire
            turn = zlib.crc32(case.name.encode()) + options.turn
            wires[turn % len(wires)].place(case)
    return cases
