# SPDX-License-Identifier: BSD-2-Clause
"""The two kinds of ends of an interop case, and the network between them.

    a network and process namespace of its own, without a way out
    .--------------------------------------------------------------.
    |  programs on the software HCA          guest 1      guest 2  |
    |  (an unprivileged user)                kernel rxe0           |
    |        |                                  |            |     |
    |       br0 ------------------------------ tap1 ------- tap2   |
    |       10.86.0.1, fd86::1                 .2, ::2      .3     |
    '--------------------------------------------------------------'

An end starts programs (argv lists) and says when they end; whoever uses it need not know whether
they run here (Host) or in a guest (Guest). Every wait has a limit.
"""
import base64
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

NOBODY = 65534
MTU_MAX = 9000


class LabError(Exception):
    """Something of the laboratory itself failed, no test."""


class NoCapture(LabError):
    """tcpdump may not run here; it drops rights, which a user namespace can forbid."""


def ip(*words):
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def into_namespaces(argv, flag):
    """Re-executes argv, with flag added, in namespaces that end with it; returns only when it is
    already inside, or the reason why it cannot be."""
    if flag in argv:
        return None
    options = ["-nmp", "-f", "--kill-child", "--mount-proc"]
    if os.geteuid():
        options.insert(0, "-r")
    if subprocess.run(["unshare", *options, "true"], check=False, capture_output=True).returncode:
        return "no namespaces can be made here"
    os.execvp("unshare", ["unshare", *options, *argv, flag])


def make_network():
    ip("link", "set", "lo", "up")
    ip("link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0",
       "mcast_snooping", "0")
    with open("/proc/sys/net/ipv6/conf/br0/accept_dad", "w", encoding="ascii") as f:
        f.write("0")
    ip("link", "set", "br0", "mtu", str(MTU_MAX), "up")
    ip("address", "add", "10.86.0.1/24", "dev", "br0")
    ip("-6", "address", "add", "fd86::1/64", "dev", "br0", "nodad")


# ---- an end in a guest

class GuestJob:
    def __init__(self, guest, number):
        self.guest, self.number = guest, number

    def wait(self, deadline):
        """(status, output); status None when it still runs at the deadline."""
        while self.number not in self.guest.answers:
            if not self.guest.listen(deadline):
                return None, ""
        return self.guest.answers[self.number]

    def running(self):
        self.guest.listen(0)
        return self.number not in self.guest.answers

    def kill(self):
        if self.running():
            self.guest.order(f"kill {self.number}").wait(time.monotonic() + 10)
            self.wait(time.monotonic() + 10)


class Guest:
    kernel = True

    def __init__(self, number, cache, folder, extra=None):
        self.number, self.cache, self.folder = number, cache, folder
        self.extra = extra
        self.address, self.address6 = f"10.86.0.{number + 1}", f"fd86::{number + 1}"
        self.answers, self.n_orders, self.text = {}, 0, b""
        self.sock = self.process = self.accel = self.kvm_mark = None
        self.device, self.slow = "rxe0", 1

    # -- its life
    def boot(self):
        """Under KVM when that works, else emulated. Returns the seconds it took."""
        begin = time.monotonic()
        tap = f"tap{self.number}"
        ip("tuntap", "add", tap, "mode", "tap")
        # Nothing is lost but what a case wants lost: the queue holds the longest burst, a message
        # of an unreliable queue pair.
        ip("link", "set", tap, "mtu", str(MTU_MAX), "txqueuelen", "8192", "master", "br0", "up")
        for accel, seconds in (("kvm", 12), ("tcg,thread=multi", 180)):
            if accel == "kvm" and not self.may_try_kvm():
                continue
            if self.try_boot(accel, seconds):
                self.accel, self.slow = accel, 1 if accel == "kvm" else 4
                return time.monotonic() - begin
        raise LabError(f"guest {self.number} does not boot; {self.console()}")

    def may_try_kvm(self):
        """Once per boot of this machine: a /dev/kvm that cannot run a plain kernel costs time."""
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return False
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            mark = os.path.join(self.cache, "kvm-failed-" + f.read().strip())
        self.kvm_mark = mark
        return not os.path.exists(mark)

    def try_boot(self, accel, seconds):
        path = os.path.join(self.folder, f"agent{self.number}")
        if os.path.exists(path):
            os.unlink(path)
        said = os.path.join(self.folder, f"qemu{self.number}.log")
        with open(said, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.qemu(accel, path), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                self.sock = socket.socket(socket.AF_UNIX)
                self.sock.connect(path)
                break
            except OSError:
                self.sock.close()
                self.sock = None
                time.sleep(0.02)
        # The guest's first line, for job 0, says that it is ready.
        try:
            if self.sock and GuestJob(self, 0).wait(deadline)[0] is not None:
                return "rxe0" in self.answers[0][1]
        except LabError:
            pass
        self.stop()
        if accel == "kvm":
            with open(self.kvm_mark, "w", encoding="ascii"):
                pass
        return False

    def qemu(self, accel, path):
        n, net = self.number, f"id=net,ifname=tap{self.number},script=no,downscript=no"
        append = ["console=ttyS0", "quiet", "panic=-1", "mitigations=off", "audit=0",
                  f"vrb.ip={self.address}/24", f"vrb.ip6={self.address6}/64",
                  f"vrb.mtu={MTU_MAX}"]
        return ["qemu-system-x86_64", "-accel", accel,
                "-cpu", "host" if accel == "kvm" else "max", "-smp", "2", "-m", "768",
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-kernel", os.path.join(self.cache, "vmlinux"), "-initrd", self.initrd(),
                "-append", " ".join(append), "-netdev", f"tap,{net}",
                "-device", f"virtio-net-pci,netdev=net,mac=02:86:00:00:00:0{n + 1},"
                           f"host_mtu={MTU_MAX}",
                "-object", "rng-random,id=rng,filename=/dev/urandom",
                "-device", "virtio-rng-pci,rng=rng", "-device", "virtio-serial-pci",
                "-chardev", f"socket,id=agent,path={path},server=on,wait=off",
                "-device", "virtserialport,chardev=agent,name=agent",
                "-serial", f"file:{os.path.join(self.folder, f'console{n}')}"]

    def initrd(self):
        """The cached one, with our own programs and folders behind it as more archives."""
        base = os.path.join(self.cache, "initramfs.gz")
        if not self.extra:
            return base
        whole = os.path.join(self.folder, f"initrd{self.number}")
        with open(whole, "wb") as out, open(base, "rb") as f:
            shutil.copyfileobj(f, out)
            for path in self.extra:
                where, name = os.path.split(path)
                names = subprocess.run(["find", name, "-print0"], cwd=where, check=True,
                                       capture_output=True).stdout
                out.write(bytes(-out.tell() % 4))
                out.flush()
                subprocess.run(["cpio", "-0", "-o", "-H", "newc", "--quiet", "-R", "0:0"],
                               check=True, input=names, stdout=out, cwd=where)
                out.seek(0, os.SEEK_END)
        return whole

    def console(self):
        text = ""
        for name in (f"qemu{self.number}.log", f"console{self.number}"):
            try:
                with open(os.path.join(self.folder, name), errors="replace",
                          encoding="utf-8") as f:
                    text += f.read()[-1500:]
            except OSError:
                pass
        return text.strip() or "it said nothing"

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.sock:
            self.sock.close()
            self.sock = None

    # -- its agent
    def order(self, text):
        self.n_orders += 1
        try:
            self.sock.sendall(f"{self.n_orders} {text}\n".encode())
        except OSError as err:
            raise LabError(f"guest {self.number} is gone; {self.console()}") from err
        return GuestJob(self, self.n_orders)

    def listen(self, deadline):
        """Takes what the agent says; False when nothing came until the deadline."""
        wait = max(0, deadline - time.monotonic())
        if not select.select([self.sock], [], [], wait)[0]:
            return False
        try:
            piece = self.sock.recv(1 << 16)
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise LabError(f"guest {self.number} is gone; {self.console()}")
        *lines, self.text = (self.text + piece).split(b"\n")
        for line in lines:
            number, status, *out = line.split()
            self.answers[int(number)] = (
                int(status), base64.b64decode(out[0] if out else b"").decode(errors="replace"))
        return True

    def load_rxe(self, wanted):
        """The kernel's soft-RoCE; loaded, it holds the port 4791 of every address."""
        if wanted:
            self.sh("modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0")
        else:
            self.sh("rdma link delete rxe0 && rmmod rdma_rxe")

    # -- what every end can do
    def start(self, argv, env=None):
        words = ["exec", "env", *(f"{k}={v}" for k, v in (env or {}).items()), *argv]
        return self.order(" ".join(shlex.quote(word) for word in words))

    def sh(self, text, seconds=20):
        """Runs a line of shell; its output. A failure is the laboratory's."""
        status, out = self.order(text).wait(time.monotonic() + seconds * self.slow)
        if status:
            raise LabError(f"guest: {text}: status {status}: {out}")
        return out

    def wait_listening(self, port, job, deadline):
        look = f"grep -q ':{port:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6"
        while time.monotonic() < deadline and job.running():
            status, _ = self.order(look).wait(deadline)
            if status == 0:
                return True
            time.sleep(0.02)
        return False

    def gid_index(self, address):
        want = socket.inet_pton(socket.AF_INET6, address if ":" in address
                                else "::ffff:" + address)
        text = self.sh("cd /sys/class/infiniband/rxe0/ports/1/gids; grep -v zzz 0 1 2 3 4 5 6 7")
        for line in text.split():
            index, _, gid = line.partition(":")
            if bytes.fromhex(gid.replace(":", "")) == want:
                return int(index)
        raise LabError(f"guest {self.number} has no GID {address}: {text}")

    def set_mtu(self, mtu):
        self.sh(f"ip link set eth0 mtu {mtu}")
        ip("link", "set", f"tap{self.number}", "mtu", str(mtu))

    def set_impairment(self, loss=0, netem=None):
        """loss: of 1000 RoCEv2 packets, on the way in and on the way out alike. netem: words for
        tc, applied to RoCEv2 packets that leave."""
        self.sh("nft flush ruleset; tc qdisc del dev eth0 root 2>/dev/null; true")
        if loss:
            # Not so on the way out: there the sender would be told, which no network does.
            self.sh("nft add table inet t && "
                    "nft add chain inet t input '{ type filter hook input priority 0; }' && "
                    f"nft add rule inet t input udp dport 4791 numgen random mod 1000 '<' {loss} "
                    "counter drop")
            netem = f"loss {loss / 10:g}%"
        if netem:
            self.sh("tc qdisc add dev eth0 root handle 1: prio && "
                    f"tc qdisc add dev eth0 parent 1:3 handle 30: netem limit 100000 {netem} && "
                    "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 "
                    "match ip protocol 17 0xff match ip dport 4791 0xffff flowid 1:3 && "
                    "tc filter add dev eth0 parent 1: protocol ipv6 prio 2 u32 "
                    "match ip6 protocol 17 0xff match ip6 dport 4791 0xffff flowid 1:3")

    def impaired(self):
        """What set_impairment has done so far, for the record."""
        return self.sh("nft list ruleset | grep -o 'packets [0-9]*' | sed 's/^/lost coming in: /'; "
                       "tc -s qdisc show dev eth0 | grep -A1 netem | "
                       "sed -n 's/.*Sent .* bytes \\([0-9]*\\) pkt (dropped \\([0-9]*\\).*/"
                       "packets out: \\1, lost: \\2/p'").replace("\n", "; ").strip("; ")


def guest_tree(build, folder, programs):
    """Programs, `verbena` and libverbena as what a guest's root gets (Guest's extra)."""
    root = os.path.join(folder, "guest", "verbena")
    shutil.copytree(os.path.join(build, "lib"), os.path.join(root, "lib"), symlinks=True)
    os.mkdir(os.path.join(root, "bin"))
    tool = os.path.join(build, "bin", "verbena")
    for program in [tool, *programs]:
        shutil.copy(program, os.path.join(root, "bin"))
    needs = subprocess.run(["ldd", tool], check=False, capture_output=True, text=True).stdout
    for path in re.findall(r"/\S*/lib(?:jansson|deflate|hwloc|udev)\S+", needs):
        shutil.copy(path, os.path.join(root, "lib"))
    return [root]


# Of guest_tree, once the guest is up; the rest stays together.
UNPACK_TREE = ("mv /verbena/bin/ops /verbena/bin/example_* /usr/bin && mv /verbena/lib/*.so* /usr/lib && "
               "ln -s /verbena/bin/verbena /usr/bin/verbena")


# ---- an end here

class HostJob:
    def __init__(self, process, out):
        self.process, self.out = process, out

    def wait(self, deadline):
        try:
            self.process.wait(max(0.01, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None, self.text()
        return self.process.returncode, self.text()

    def text(self):
        self.out.seek(0)
        return self.out.read().decode(errors="replace")

    def running(self):
        return self.process.poll() is None

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()


def gids_of(devinfo):
    """Every (device, index, GID as 16 bytes) in what `verbena devinfo --json` says."""
    try:
        devices = json.loads(devinfo)
    except ValueError as err:
        raise LabError(f"verbena devinfo: {devinfo}") from err
    for device in devices:
        for entry in device["gids"]:
            yield (device["device"], entry["index"],
                   socket.inet_pton(socket.AF_INET6, re.sub(r"%.*", "", entry["gid"])))


class Host:
    """Programs of this machine under `verbena run`, as an unprivileged user."""
    kernel = False
    slow = 1
    accel = "here"
    address, address6 = "10.86.0.1", "fd86::1"

    def __init__(self, build, folder, programs=()):
        self.user = {}
        if os.geteuid() == 0:
            self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.root = os.path.join(folder, "verbena")
        for sub in ("bin", "lib/verbena"):
            shutil.copytree(os.path.join(build, sub), os.path.join(self.root, sub), symlinks=True)
        for program in programs:
            shutil.copy(program, os.path.join(self.root, "bin"))
        library = os.path.join(build, "lib", "libverbena.so.0")
        if os.path.exists(library):  # where `verbena run` has programs look
            shutil.copy(library, os.path.join(self.root, "lib", "verbena"))
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        self.tool = os.path.join(self.root, "bin", "verbena")
        self.env = {"PATH": "/usr/bin:/bin:/usr/sbin:" + os.path.join(self.root, "bin"),
                    "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": self.runtime_dir(folder)}
        for name, value in os.environ.items():
            if name.startswith(("VERBENA_", "ASAN_", "UBSAN_")):
                self.env[name] = value
        self.device = self.find_device()

    def runtime_dir(self, folder):
        path = os.path.join(folder, "run")
        os.makedirs(path, exist_ok=True)
        if self.user:
            os.chown(path, NOBODY, NOBODY)
        return path

    def gids(self):
        done = subprocess.run([self.tool, "devinfo", "--json"], env=self.env, cwd="/", check=False,
                              capture_output=True, text=True, timeout=20, **self.user)
        return gids_of(done.stdout or done.stderr)

    def find_device(self):
        want = socket.inet_pton(socket.AF_INET6, "::ffff:" + self.address)
        for device, _, gid in self.gids():
            if gid == want:
                return device
        raise LabError(f"no device has the address {self.address}")

    def start(self, argv, env=None):
        out = tempfile.TemporaryFile()
        process = subprocess.Popen(
            [self.tool, "run", "--", *argv], stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, process_group=0, cwd=self.env["XDG_RUNTIME_DIR"],
            env={**self.env, **(env or {})}, **self.user)
        return HostJob(process, out)

    def wait_listening(self, port, job, deadline):
        want = re.compile(rf":{port:04X} .* 0A ")
        while time.monotonic() < deadline and job.running():
            for table in ("/proc/net/tcp", "/proc/net/tcp6"):
                with open(table, encoding="ascii") as f:
                    if want.search(f.read()):
                        return True
            time.sleep(0.005)
        return False

    def gid_index(self, address):
        want = socket.inet_pton(socket.AF_INET6, address if ":" in address
                                else "::ffff:" + address)
        for device, index, gid in self.gids():
            if device == self.device and gid == want:
                return index
        raise LabError(f"{self.device} has no GID {address}")

    def set_mtu(self, mtu):
        ip("link", "set", "br0", "mtu", str(mtu))

    def set_impairment(self, loss=0, netem=None):
        """Never here: the guest does it."""


# ---- what passes by

def set_loss_between_guests(per_mille):
    """Each RoCEv2 packet on the bridge, whoever sends it and however it was made."""
    rules = "table bridge loss\ndelete table bridge loss\n"
    if per_mille:
        rules += ("table bridge loss {\nchain forward {\n"
                  "type filter hook forward priority 0\n"
                  f"udp dport 4791 numgen random mod 1000 < {per_mille} counter drop\n}}\n}}\n")
    done = subprocess.run(["nft", "-f", "-"], input=rules, check=False, capture_output=True,
                          text=True)
    if done.returncode:
        raise LabError(f"nft: {done.stderr.strip()}")


class Capture:
    """Every RoCEv2 packet on br0, into a pcap file."""

    def __init__(self, path, interface="br0"):
        self.path = path
        self.process = subprocess.Popen(
            ["tcpdump", "-Z", "root", "--immediate-mode", "-B", "65536", "-i", interface, "-n",
             "-U", "-s", "0", "-w", path, "udp port 4791"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            line = self.process.stderr.readline()
            if "listening on" in line:
                return
            if not line:
                break
        raise NoCapture("tcpdump does not start")

    def stop(self):
        """How many packets it missed."""
        time.sleep(0.5)
        self.process.send_signal(signal.SIGINT)
        text = self.process.communicate(timeout=20)[1]
        m = re.search(r"(\d+) packets? dropped by kernel", text)
        return int(m.group(1)) if m else -1
