/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The findings of `verbena doctor`: X(NAME, word, group, severity, sentence, costs, mend). {name}
 * stands for a value of the evidence. `mend` is a command to type, or begins with a verb. No
 * include guard: included with different X. Rows are ordered as the checks run. clang-format leaves
 * it alone.
 */
/* clang-format off */

/* the software adapter */
X(SOFTWARE, "software", "software", OK,
  "the software adapter offers {count} device(s): {devices}", "", "")
X(SOFTWARE_NONE, "software-none", "software", FAIL,
  "the software adapter has no device: no network interface is up and has an address",
  "programs under `verbena run` find no RDMA device",
  "ip link set lo up")
X(NET_ALL_DOWN, "net-all-down", "software", FAIL,
  "no network interface is up ({interfaces})",
  "programs under `verbena run` find no RDMA device",
  "ip link set lo up")
X(LO_DOWN, "lo-down", "software", NOTE,
  "the loopback interface is down",
  "127.0.0.1 does not answer; two programs of this namespace have to use another address",
  "ip link set lo up")
X(SOFTWARE_FRONT, "software-front", "software", OK,
  "programs started from here get the software adapter: {library}", "", "")
X(SOFTWARE_HIDES_NIC, "software-hides-nic", "software", WARN,
  "{device} is here, but programs started from here get the software adapter: {library}",
  "traffic goes through the CPU, not through the NIC",
  "unset LD_LIBRARY_PATH LD_PRELOAD")

/* kernel modules and user-space packages */
X(RDMA_NONE, "rdma-none", "module", NOTE,
  "the kernel has no RDMA device",
  "only the software adapter can be used, which needs none",
  "verbena run COMMAND")
X(DEVICE_UNKNOWN, "device-unknown", "module", FAIL,
  "there is no RDMA device {device}; there are: {devices}",
  "",
  "ls /sys/class/infiniband")
X(WSL, "kernel-wsl", "module", NOTE,
  "this is WSL ({release}): its kernel comes without modules",
  "modprobe cannot give you soft-RoCE here",
  "verbena run COMMAND")
X(MODULES_NONE, "modules-none", "module", NOTE,
  "there is no /lib/modules/{release}",
  "modprobe cannot load anything from here; in a container the host has to",
  "verbena run COMMAND; or on the host: modprobe rdma_rxe")
X(RXE_MISSING, "rxe-missing", "module", NOTE,
  "the kernel {release} has no module rdma_rxe (soft-RoCE)",
  "nothing for the software adapter; `rdma link add ... type rxe` cannot work",
  "{install}")
X(RXE_NO_LINK, "rxe-no-link", "module", NOTE,
  "rdma_rxe is loaded, but no device was made with it",
  "ibv_devices stays empty: loading the module is not enough",
  "rdma link add rxe0 type rxe netdev {netdev}")
X(DRIVER_NO_RDMA, "driver-no-rdma", "module", WARN,
  "{netdev} ({slot}) runs with {driver}, but its RDMA part {module} is not loaded",
  "the NIC shows no RDMA device",
  "modprobe {module}")
X(UVERBS_MISSING, "uverbs-missing", "module", FAIL,
  "{device} is in /sys/class/infiniband, but ib_uverbs is not loaded",
  "ibv_get_device_list does not show it",
  "modprobe ib_uverbs")
X(RDMA_CM_MISSING, "rdma-cm-missing", "module", NOTE,
  "{device} is here, but rdma_ucm is not loaded",
  "programs on rdma_cm (rping, perftest -R) fail with \"unable to open /dev/infiniband/rdma_cm\"",
  "modprobe rdma_ucm")
X(NODE_MISSING, "node-missing", "container", FAIL,
  "{device} is here, but {node} is not",
  "ibv_open_device fails, or the list of devices is empty: the container was not given the node",
  "podman run --device /dev/infiniband --ulimit memlock=-1 ... (docker: the same)")
X(NODE_DENIED, "node-denied", "container", FAIL,
  "{node} may not be opened by user {uid} (mode {mode})",
  "ibv_open_device fails with EACCES",
  "chmod 666 {node}; for good: SUBSYSTEM==\"infiniband_verbs\", MODE=\"0666\" in /etc/udev/rules.d")
X(NODE_OK, "node", "container", OK,
  "{device} can be opened by {node}", "", "")
X(LIBIBVERBS, "libibverbs", "module", OK,
  "rdma-core's libibverbs: {library}", "", "")
X(LIBIBVERBS_NONE, "libibverbs-none", "module", NOTE,
  "rdma-core's libibverbs.so.1 is not installed",
  "verbs programs start under `verbena run` only",
  "{install}")
X(PROVIDER_NONE, "provider-none", "module", FAIL,
  "{device} ({driver}) needs {provider}, which no folder of libibverbs has",
  "ibv_devices does not show it, or warns of a missing user-space driver",
  "{install}")
X(PROVIDER_BROKEN, "provider-broken", "module", WARN,
  "{file} names the driver {provider}, but there is no library of that name",
  "libibverbs warns: \"couldn't load driver\"",
  "{install}")

/* ports */
X(PORT, "port", "port", OK,
  "{device}/{port} is ACTIVE, {link_layer}, {rate}", "", "")
X(PORT_PHYS, "port-phys", "port", WARN,
  "{device}/{port} has no physical link ({phys_state})",
  "nothing can be sent: cable, transceiver, or the port of the switch",
  "ip link set {netdev} up; then look at the cable: ethtool -m {netdev}, mlxlink -d {slot}")
X(PORT_NO_SM, "port-no-sm", "port", WARN,
  "{device}/{port} has a link, but no subnet manager has set it up ({state})",
  "queue pairs do not come to RTR: the port has no LID",
  "systemctl start opensm (on one machine of the fabric, or on the switch)")
X(PORT_DOWN, "port-down", "port", WARN,
  "{device}/{port} is not ACTIVE ({state}, {phys_state})",
  "queue pairs do not come to RTR, or sends end in RETRY_EXC",
  "ip link set {netdev} up")
X(PORT_IB, "port-infiniband", "port", NOTE,
  "{device}/{port} is InfiniBand, LID {lid}: not RoCE",
  "addresses are LIDs; programs that insist on a GID index or an IP address need IPoIB or -g",
  "ibstat {device}")

/* GIDs */
X(GID_NONE, "gid-none", "gid", FAIL,
  "{device}/{port} has no GID",
  "RoCE needs one: ibv_modify_qp to RTR fails with EINVAL or ENODEV",
  "ip link set {netdev} up; ip addr add ADDRESS/PREFIX dev {netdev}")
X(GID_NO_V2, "gid-no-v2", "gid", WARN,
  "{device}/{port} has {count} GID(s), none of RoCE v2",
  "RoCE v1 does not cross routers and does not reach the software adapter or soft-RoCE",
  "ip addr add ADDRESS/PREFIX dev {netdev}; then a NIC or driver with RoCE v2 (rdma-core and kernel since 4.5)")
X(GID_LINK_LOCAL, "gid-link-local", "gid", WARN,
  "{device}/{port}: the only RoCE v2 GIDs are link-local ({netdev} has no IP address)",
  "RTR fails with ETIMEDOUT where the peer is not on the same link",
  "ip addr add ADDRESS/PREFIX dev {netdev}")
X(GID_INDEX, "gid-index", "gid", OK,
  "{device}/{port}: GID index {index} is RoCE v2, {gid}, {netdev}", "", "")
X(GID_NOT_FIRST, "gid-not-first", "gid", NOTE,
  "{device}/{port}: the GID index to use is {index} ({gid}, RoCE v2), index 0 is {first}",
  "programs that take index 0 fail at RTR (ENODEV, ETIMEDOUT) or speak RoCE v1",
  "-g {index} (pingpongs), -x {index} (perftest), NCCL_IB_GID_INDEX={index}, UCX_IB_GID_INDEX={index}")
X(GID_NETDEV_GONE, "gid-netdev-gone", "gid", WARN,
  "{device}/{port}: GID {index} belongs to {netdev}, which is not in this network namespace",
  "RTR with this index fails with ENODEV",
  "rdma system set netns exclusive; rdma dev set {device} netns /proc/PID/ns/net; or run with --network host")
X(GID_FOR, "gid-for", "gid", OK,
  "for {address}: {device}/{port}, GID index {index} ({gid}, {type}, {netdev})", "", "")
X(GID_FOR_V1, "gid-for-v1", "gid", WARN,
  "for {address} there is only GID index {index} of {device}/{port}, which is {type}",
  "RoCE v1 does not cross routers and does not reach the software adapter or soft-RoCE",
  "a NIC or driver with RoCE v2; ip addr show {netdev}")
X(GID_FOR_NONE, "gid-for-none", "gid", FAIL,
  "for {address} no GID serves: {reason}",
  "RTR fails with EINVAL, ENODEV or ETIMEDOUT",
  "ip route get {address}; ip addr add ADDRESS/PREFIX dev NETDEV")
X(SAME_SUBNET, "same-subnet", "gid", WARN,
  "{first} and {second} are both in {subnet}",
  "the kernel answers ARP on either and may leave by the other: RTR or sends time out",
  "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2; better: one subnet each")

/* network interfaces of the ports */
X(NETDEV_DOWN, "netdev-down", "net", WARN,
  "{netdev} of {device} is down",
  "the port is DOWN and its GIDs are gone",
  "ip link set {netdev} up")
X(NETDEV_NO_CARRIER, "netdev-no-carrier", "net", WARN,
  "{netdev} of {device} is up, but has no carrier",
  "nothing can be sent: cable, transceiver, or the port of the switch",
  "ethtool {netdev}; ethtool -m {netdev}")
X(MTU_SMALL, "mtu-small", "net", WARN,
  "{netdev} has MTU {mtu}: the path MTU of {device} is {path_mtu} at most, not 4096",
  "more packets and interrupts per message; a peer that asks for 4096 fails, or large messages vanish",
  "ip link set {netdev} mtu 4200 (at both ends, and the switch must carry it)")
X(MTU_OK, "mtu", "net", OK,
  "{netdev} has MTU {mtu}: path MTU {path_mtu}", "", "")
X(ECN_OFF, "ecn-off", "net", WARN,
  "{netdev}: congestion control of RoCE is off for priority {priority} ({file})",
  "under congestion senders are not slowed down: packets are lost, or pause frames spread",
  "echo 1 >{file}")
X(NETDEV_ERRORS, "netdev-errors", "net", WARN,
  "{netdev} counts {count} {counter}",
  "frames with errors are lost: each loss makes RC go back; a cable or transceiver is bad",
  "ethtool -S {netdev} | grep -E 'crc|symbol|phy'")
X(NETDEV_DROPS, "netdev-drops", "net", NOTE,
  "{netdev} counts {count} {counter}",
  "frames that the NIC or the kernel had no room for",
  "ethtool -G {netdev} rx 8192; ethtool -S {netdev} | grep -E 'discard|drop|pause'")

/* the class of RoCE: priorities, PFC, ETS, congestion control */
X(QOS, "qos", "qos", OK,
  "{netdev}: RoCE of {device} travels with DSCP {dscp} in priority {priority}, which PFC protects", "", "")
X(PFC_OFF, "pfc-off", "qos", NOTE,
  "{netdev}: PFC is off for all priorities, and so are pause frames: RoCE of {device} may be dropped",
  "each loss makes RC go back; right where ECN keeps the queues short (lossy RoCE)",
  "mlnx_qos -i {netdev} --pfc 0,0,0,1,0,0,0,0 (or: dcb pfc set dev {netdev} prio-pfc all:off 3:on), and the same at the switch")
X(PAUSE_GLOBAL, "pause-global", "qos", NOTE,
  "{netdev}: pause frames stop the whole port (receive {rx}, send {tx}), PFC is off",
  "one slow receiver stops all traffic of the port, not only that of RoCE",
  "ethtool -A {netdev} rx off tx off; mlnx_qos -i {netdev} --pfc 0,0,0,1,0,0,0,0, and the same at the switch")
X(PFC_ALL, "pfc-all", "qos", WARN,
  "{netdev}: PFC is on for all eight priorities",
  "TCP and management stand still together with RoCE; NICs and switches have lossless buffers for two or three priorities; pauses spread",
  "mlnx_qos -i {netdev} --pfc 0,0,0,1,0,0,0,0 (or: dcb pfc set dev {netdev} prio-pfc all:off 3:on)")
X(PFC_OTHER, "pfc-other-priority", "qos", WARN,
  "{netdev}: RoCE of {device} travels with DSCP {dscp} in priority {priority}, but PFC is on for {pfc}",
  "packets of RoCE are dropped when a buffer is full, while another class is protected",
  "mlnx_qos -i {netdev} --pfc with a 1 for priority {priority}; or another class: {file}")
X(ROCE_NO_CLASS, "roce-no-class", "qos", NOTE,
  "{netdev}: PFC is on for {pfc}, but RoCE of {device} has no class of its own: it travels in priority {priority}",
  "programs that do not choose a traffic class themselves are not protected",
  "echo 104 >/sys/kernel/config/rdma_cm/{device}/ports/{port}/default_roce_tos (after mkdir of rdma_cm/{device}); NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS, perftest --tclass")
X(DSCP_NO_TRUST, "dscp-no-trust", "qos", WARN,
  "{netdev}: RoCE of {device} is marked with DSCP {dscp}, but the port does not look at DSCP: it is in priority {priority}",
  "queues, PFC and ECN of the class do not act here",
  "mlnx_qos -i {netdev} --trust dscp (or: dcb app add dev {netdev} dscp-prio {dscp}:3)")
X(ROCE_TOS_DIFFERS, "roce-tos-differs", "qos", WARN,
  "{device}/{port}: connections of rdma_cm are marked with traffic class {cm}, all others with {global}",
  "two programs of one kind travel in different classes",
  "echo {global} >/sys/kernel/config/rdma_cm/{device}/ports/{port}/default_roce_tos")
X(ETS_STARVED, "ets-starved", "qos", WARN,
  "{netdev}: priority {priority}, in which RoCE of {device} travels, is in traffic class {class}, to which ETS gives 0 % of the bandwidth",
  "RoCE gets what all others leave",
  "mlnx_qos -i {netdev} --tsa, --tcbw; or: dcb ets set dev {netdev} tc-bw")
X(ETS_SHARED, "ets-shared", "qos", NOTE,
  "{netdev}: priority {priority} of RoCE ({device}) shares traffic class {class} with {others}, for which PFC is off",
  "what PFC stops and what it does not stop wait in one queue",
  "mlnx_qos -i {netdev} --prio_tc (a traffic class of its own for priority {priority})")
X(DCBX_FIRMWARE, "dcbx-firmware", "qos", NOTE,
  "{netdev}: PFC and ETS are negotiated by the NIC's firmware (DCBX), not by this host",
  "what mlnx_qos or dcb set here may be replaced by what the switch wishes",
  "mlnx_qos -i {netdev} --dcbx os; or set the class at the switch")
X(CNP_SHARES, "cnp-shares-class", "qos", NOTE,
  "{netdev}: congestion notifications travel with DSCP {cnp}, in priority {priority}, as RoCE of {device} itself",
  "they wait behind the traffic that they are to slow down",
  "echo 48 >{file}; a strict traffic class for priority 6, at the switches, too")

/* the way from the NIC to the CPU */
X(PCIE, "pcie", "pci", OK,
  "{device}: PCIe {speed} x{width}, {gbps} Gb/s for {rate} Gb/s of the port", "", "")
X(PCIE_SPEED, "pcie-speed", "pci", WARN,
  "{device}: PCIe runs at {speed}, the card can do {max_speed}",
  "bandwidth ends at {gbps} Gb/s less 10 to 15 % for PCIe's own headers",
  "lspci -s {slot} -vv | grep -E 'LnkCap|LnkSta'; another slot, or the BIOS's setting for this one")
X(PCIE_WIDTH, "pcie-width", "pci", WARN,
  "{device}: PCIe runs with {width} lanes, the card has {max_width}",
  "bandwidth ends at {gbps} Gb/s less 10 to 15 % for PCIe's own headers",
  "lspci -s {slot} -vv | grep -E 'LnkCap|LnkSta'; reseat the card, or a slot with all lanes")
X(PCIE_BELOW_PORT, "pcie-below-port", "pci", WARN,
  "{device}: PCIe carries {gbps} Gb/s ({speed} x{width}), the port {rate} Gb/s",
  "the port is never filled; the NIC drops what it cannot deliver (out_of_buffer, rx_discards)",
  "lspci -s {slot} -vv | grep -E 'LnkCap|LnkSta'; a faster or wider slot")
X(IOMMU, "iommu-translated", "pci", WARN,
  "{device}: the IOMMU translates its DMA ({type})",
  "registration is slower, and small messages may wait for IOTLB misses",
  "add iommu=pt to the kernel's command line and boot")
X(NUMA, "numa", "cpu", OK,
  "{device} is at NUMA node {node}, and so are the process's CPUs ({allowed})", "", "")
X(NUMA_REMOTE, "numa-remote", "cpu", WARN,
  "{device} is at NUMA node {node} (CPUs {near}), but the process may run on {allowed} only",
  "each doorbell and completion crosses sockets: more latency, less bandwidth",
  "numactl --cpunodebind={node} --membind={node} COMMAND")
X(NUMA_LOOSE, "numa-loose", "cpu", NOTE,
  "{device} is at NUMA node {node} (CPUs {near}); the process may also run elsewhere ({allowed})",
  "results differ from run to run, depending on where the process lands",
  "numactl --cpunodebind={node} --membind={node} COMMAND")
X(IRQ_REMOTE, "irq-remote", "cpu", WARN,
  "{device}: {count} of {total} interrupts go to CPUs far from its NUMA node {node} (IRQ {irq}: CPU {cpus})",
  "completion events wake up later",
  "systemctl stop irqbalance; for i in $(ls /sys/class/infiniband/{device}/device/msi_irqs); do echo {near} >/proc/irq/$i/smp_affinity_list; done")
X(IRQ_ONE_CPU, "irq-one-cpu", "cpu", WARN,
  "{device}: all {total} interrupts go to CPU {cpu}",
  "event-driven programs and the kernel's network share one CPU",
  "systemctl start irqbalance; or spread them by /proc/irq/N/smp_affinity_list")

/* CPUs */
X(GOVERNOR, "cpu-powersave", "cpu", WARN,
  "{count} of {total} CPUs have the frequency governor {governor}",
  "clocks rise late: the first messages after a pause are slower, and latencies scatter",
  "cpupower frequency-set -g performance")
X(GOVERNOR_NOTE, "cpu-governor", "cpu", NOTE,
  "{count} of {total} CPUs have the frequency governor {governor}",
  "measured latencies scatter",
  "cpupower frequency-set -g performance")
X(IDLE_DEEP, "cpu-idle", "cpu", NOTE,
  "idle CPUs may sleep so deep that they need {latency} us to wake up ({state})",
  "completion events come that much later; who polls is not concerned",
  "cpupower idle-set -D 10")
X(ONE_CPU, "one-cpu", "cpu", WARN,
  "the process may run on one CPU only ({allowed}) of {online}",
  "two programs that poll take turns: milliseconds instead of microseconds where they do not yield",
  "taskset -pc 0-{last} $$; in a container: more than --cpus 1, or another --cpuset-cpus")
X(ONE_CPU_MACHINE, "one-cpu-machine", "cpu", NOTE,
  "this machine has one CPU",
  "two programs that poll take turns; the software adapter yields, others may not",
  "use completion events (perftest -e)")
X(QUOTA, "cpu-quota", "cpu", WARN,
  "the control group gets {quota} us of CPU time in {period} us ({cpus} CPUs); throttled {throttled} times so far",
  "a program that polls uses up its time and then stands still for up to {period} us: RNR, timeouts",
  "docker update --cpus 0 CONTAINER; systemctl set-property UNIT CPUQuota=")

/* limits */
X(MEMLOCK_OK, "memlock", "limits", OK,
  "memory that may be locked: {soft}", "", "")
X(MEMLOCK_SHELL, "memlock-low", "limits", WARN,
  "only {soft} of memory may be locked (hard limit {hard})",
  "on a NIC ibv_reg_mr and ibv_create_cq beyond it fail with ENOMEM; the software adapter locks nothing",
  "ulimit -l unlimited; for good: * - memlock unlimited in /etc/security/limits.conf")
X(MEMLOCK_UNIT, "memlock-systemd", "limits", WARN,
  "only {soft} of memory may be locked in {unit}; limits.conf does not count there",
  "on a NIC ibv_reg_mr and ibv_create_cq beyond it fail with ENOMEM; the software adapter locks nothing",
  "systemctl edit {unit}: [Service] LimitMEMLOCK=infinity; systemctl restart {unit}")
X(MEMLOCK_CONTAINER, "memlock-container", "limits", WARN,
  "only {soft} of memory may be locked in this container",
  "on a NIC ibv_reg_mr and ibv_create_cq beyond it fail with ENOMEM; the software adapter locks nothing",
  "docker run --ulimit memlock=-1 ... (podman: the same; Kubernetes: the runtime's LimitMEMLOCK, or IPC_LOCK)")
X(NOFILE_LOW, "nofile-low", "limits", NOTE,
  "only {soft} files may be open (hard limit {hard})",
  "each peer of the software adapter, and each completion channel, needs some",
  "ulimit -n {hard}")
X(RDMA_LIMIT, "rdma-limit", "limits", WARN,
  "the control group limits {device}: {limit} (in use: {current})",
  "opening the device or creating objects beyond it fails with EAGAIN or ENOMEM",
  "echo '{device} hca_handle=max hca_object=max' >{file}")

/* memory */
X(HUGE_NONE, "hugepages-none", "memory", NOTE,
  "no huge pages are reserved",
  "large regions take many entries of the NIC's and the CPU's translation caches",
  "sysctl -w vm.nr_hugepages=1024 (2 GiB)")
X(THP_OFF, "thp-off", "memory", NOTE,
  "transparent huge pages are off ({enabled})",
  "large buffers stay in pages of 4 KiB",
  "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled")
X(SHM_SMALL, "shm-small", "memory", NOTE,
  "/dev/shm has {size}",
  "nothing for the software adapter, which does not use it; UCX, MPI and NCCL do, and die of SIGBUS",
  "docker run --shm-size 1g ...")
X(OVERCOMMIT, "overcommit-strict", "memory", NOTE,
  "memory is not overcommitted (vm.overcommit_memory = 2)",
  "the software adapter's rings are sparse, but count in full: many peers may end in ENOMEM",
  "sysctl -w vm.overcommit_memory=0")

/* the process */
X(PTRACE, "ptrace-scope", "process", NOTE,
  "processes may not write into each other (kernel.yama.ptrace_scope = {scope})",
  "on one host the software adapter's large RDMA WRITEs go through the target's thread instead of directly",
  "sysctl -w kernel.yama.ptrace_scope=0; in a container: --cap-add SYS_PTRACE")
X(FORK_SAFE, "fork-safe", "process", NOTE,
  "{variable} is set, which the kernel {release} does not need (since 5.12 pinned pages are copied at fork)",
  "each registration takes more system calls; with buffers of less than a page a child may crash",
  "unset {variable}")
X(FORK_UNSAFE, "fork-unsafe", "process", NOTE,
  "the kernel {release} does not copy pinned pages at fork, and RDMAV_FORK_SAFE is not set",
  "after fork() or system() the NIC may write to pages that the program does not see any more",
  "export RDMAV_FORK_SAFE=1")
X(USERNS, "userns", "process", NOTE,
  "this is a user namespace: root here is user {outside} outside",
  "modprobe, sysctl and the nodes of /dev/infiniband stay closed; the software adapter needs none of them",
  "verbena run COMMAND")

/* the kernel, for the software adapter */
X(KERNEL_OK, "kernel", "kernel", OK,
  "the kernel {release} has all that the software adapter uses", "", "")
X(KERNEL_MEMFD, "kernel-no-memfd", "kernel", FAIL,
  "the kernel {release} has no memfd_create (since 3.17)",
  "the software adapter's processes cannot share memory: it does not work",
  "a newer kernel")
X(KERNEL_GSO, "kernel-no-gso", "kernel", WARN,
  "the kernel {release} has no UDP_SEGMENT (since 4.18)",
  "between hosts each packet is a system call of its own: a fraction of the bandwidth",
  "a newer kernel")
X(KERNEL_GRO, "kernel-no-gro", "kernel", NOTE,
  "the kernel {release} has no UDP_GRO (since 5.0)",
  "between hosts packets are received one by one",
  "a newer kernel")
X(KERNEL_SEAL, "kernel-no-seal", "kernel", NOTE,
  "the kernel {release} has no F_SEAL_FUTURE_WRITE (since 5.1)",
  "RDMA WRITEs on one host go through the target's thread, and live counters cannot be read",
  "a newer kernel")

/* UDP, for the software adapter between hosts */
X(PORT_KERNEL, "udp-port-kernel", "udp", NOTE,
  "the kernel's own RoCE driver holds UDP port 4791 of {address}",
  "the software adapter reaches no other host from this address",
  "rdma link delete {device}; or modprobe -r rdma_rxe")
X(PORT_USER, "udp-port-taken", "udp", WARN,
  "user {uid} holds UDP port 4791 of {address} ({process})",
  "the software adapter of another user reaches no other host from this address",
  "ip addr add ADDRESS/PREFIX dev NETDEV (an address for each user)")
X(PORT_OURS, "udp-port", "udp", OK,
  "UDP port 4791 of {address} is held by {process}", "", "")
X(PORT_DROPS, "udp-port-drops", "udp", WARN,
  "{drops} datagrams to port 4791 of {address} were dropped ({process})",
  "each is sent again after a round trip or a timeout",
  "sysctl -w net.core.rmem_max=8388608 (then start the program anew)")
X(RMEM_SMALL, "rmem-small", "udp", NOTE,
  "sockets may buffer {rmem_max} bytes only (net.core.rmem_max)",
  "that is {packets} packets of 4 KiB: between hosts the software adapter keeps its window small",
  "sysctl -w net.core.rmem_max=8388608")
X(UDP_ERRORS, "udp-buffer-errors", "udp", NOTE,
  "{count} datagrams were dropped because a socket's buffer was full (all ports, since boot)",
  "lost packets, where they were the software adapter's",
  "sysctl -w net.core.rmem_max=8388608")
X(CONNTRACK_FULL, "conntrack-full", "udp", WARN,
  "the firewall's table of connections is nearly full ({count} of {max})",
  "packets of new flows are dropped",
  "sysctl -w net.netfilter.nf_conntrack_max={twice}; or notrack for UDP port 4791")

/* other processes on the software adapter */
X(MEMBERS, "members", "software", OK,
  "{count} process(es) use the software adapter now: {members}", "", "")
X(MEMBERS_MANY, "members-many", "software", WARN,
  "{count} of the 255 slots of processes on the software adapter are taken",
  "beyond 255 in one network namespace no device can be opened",
  "unshare -rn (a network namespace of its own for some of them)")

/* queue pairs, CQs and regions that are alive */
X(OBJECTS, "objects", "objects", OK,
  "{device}: {owner} holds {qps} queue pair(s), {cqs} CQ(s), {mrs} memory region(s){size}", "", "")
X(OBJECTS_NONE, "objects-none", "objects", OK,
  "the kernel has no RDMA netlink ({error}): there are no queue pairs but those of the software adapter", "", "")
X(OBJECTS_UNKNOWN, "objects-unknown", "objects", NOTE,
  "who holds queue pairs of {device} cannot be told: RDMA netlink says {error}",
  "a leak, or a queue pair in the error state, is not seen",
  "modprobe ib_core (Linux 4.17 or newer); rdma resource show qp")
X(QP_FAILED, "qp-failed", "objects", WARN,
  "{device}: {count} queue pair(s) of {owner} are in the error state, the first is {qpn}",
  "whatever is posted there ends in WR_FLUSH_ERR; each holds memory of the NIC",
  "rdma resource show qp dev {device} pid {pid}; the first completion with an error says why: verbena explain STATUS")
X(QP_WAITING, "qp-not-connected", "objects", NOTE,
  "{device}: {count} queue pair(s) of {owner} are in RESET or INIT, the first is {qpn}",
  "nothing can be sent or received there until ibv_modify_qp has taken it to RTR and RTS",
  "rdma resource show qp dev {device} pid {pid}; normal while a server waits for its client")
X(OBJECTS_MANY, "objects-many", "objects", WARN,
  "{device}: {count} of {max} {what} are in use",
  "beyond it objects cannot be created (ENOMEM, EINVAL); long before, the NIC's caches miss",
  "rdma resource show; share queue pairs (SRQ, XRC, DCT), register larger pieces")

/* what the counters did in a time (--watch) */
X(WATCH_RATE, "watch", "watch", OK,
  "{device}/{port}: {out} Gb/s out, {in} Gb/s in ({packets_out} and {packets_in} packets/s), of {rate} Gb/s", "", "")
X(WATCH_PACKETS, "watch-packets", "watch", OK,
  "{device}/{port}: {packets_out} packets/s out, {packets_in} in; the device does not count bytes", "", "")
X(WATCH_IDLE, "watch-idle", "watch", NOTE,
  "{device}/{port}: no packet in {seconds} s",
  "the traffic goes by another port, by shared memory or by TCP, or there is none",
  "verbena doctor --gid PEER; look for the device that the program opens")
X(SLOW_HOST, "bottleneck-host", "watch", WARN,
  "{device}/{port}: this host is the bottleneck: packets came faster than it takes them ({counter}: {count} more)",
  "packets are lost, or the sender is stopped",
  "verbena doctor pci cpu")
X(SLOW_RECEIVES, "bottleneck-receives", "watch", WARN,
  "{device}/{port}: missing receives are the bottleneck ({counter}: {count} more)",
  "the sender waits and sends again",
  "post more receives, earlier, at the end that receives; an SRQ with a limit event")
X(SLOW_LOSS, "bottleneck-loss", "watch", WARN,
  "{device}/{port}: lost packets are the bottleneck ({counter}: {count} more)",
  "RC goes back and sends again",
  "verbena doctor counters net; verbena doctor PEER")
X(SLOW_HELD, "bottleneck-held", "watch", NOTE,
  "{device}/{port}: the peer or the switch holds this port back ({counter}: {count} more)",
  "the port stands still while it waits",
  "verbena doctor --watch 5 (at the receiver): that host is the slow one")
X(SLOW_CONGESTION, "bottleneck-network", "watch", NOTE,
  "{device}/{port}: the network is the bottleneck: congestion is marked ({counter}: {count} more)",
  "senders are slowed down; several of them share a link",
  "more paths or fewer senders to one port; spread flows: one UDP source port per queue pair")
X(SLOW_LINK, "bottleneck-link", "watch", OK,
  "{device}/{port}: the link is full ({much})", "", "")
X(SLOW_PROGRAM, "bottleneck-program", "watch", NOTE,
  "{device}/{port}: nothing in NIC and network holds the traffic back; the program gives no more than {much}",
  "one message at a time waits a round trip for each; small ones cost a doorbell each",
  "more work requests under way, larger messages or more queue pairs; verbena doctor cpu")
X(CACHE_MISSES, "cache-misses", "watch", NOTE,
  "process {pid}: {percent} % of its look-ups in the last-level cache missed ({misses} of {lookups})",
  "each miss costs some 100 ns on the way of a message",
  "fewer or smaller buffers in turn; threads and buffers on the adapter's NUMA node; huge pages")
X(CACHE_FEW, "cache-few", "watch", OK,
  "process {pid}: {percent} % of its look-ups in the last-level cache missed ({misses} of {lookups})", "", "")
X(CACHE_UNTOLD, "cache-untold", "watch", NOTE,
  "the cache misses of process {pid} cannot be counted ({reason})",
  "whether its buffers fit into the caches is not known",
  "sysctl -w kernel.perf_event_paranoid=1, or run as its user; a virtual machine has such counters only when its host gives them")

/* the way to a peer (doctor HOST) */
X(PATH, "path", "path", OK,
  "{host} answers on UDP port {port}: round trip {min} / {median} / {p99} us (least, median, 99 %)", "", "")
X(PATH_REFUSED, "path-refused", "path", FAIL,
  "{host} ({address}) is there, but nobody answers on UDP port {port}",
  "the rest of the way cannot be looked at; RoCE may work all the same when its programs run",
  "verbena doctor --serve --port {port} (at {host})")
X(PATH_UNREACHABLE, "path-unreachable", "path", FAIL,
  "{host} ({address}) cannot be reached: {error}",
  "RTR or sends fail",
  "ip route get {address}; ip neigh show {address}")
X(PATH_SILENT, "path-silent", "path", FAIL,
  "{host} ({address}) does not answer on UDP port {port}, in {tries} tries",
  "either nobody listens and a firewall drops the refusal, or it drops UDP port {port}: RoCE needs 4791",
  "verbena doctor --serve --port {port} (at {host}); nft add rule inet filter input udp dport {port} accept")
X(PATH_MTU, "path-mtu", "path", OK,
  "packets of path MTU {path_mtu} reach {host} and come back (the largest IP packet: {largest} bytes)", "", "")
X(PATH_MTU_SMALL, "path-mtu-small", "path", NOTE,
  "the largest IP packet to {host} is {largest} bytes, the interface's MTU: path MTU {path_mtu}",
  "more packets per message; a program that insists on 4096 fails",
  "ip link set NETDEV mtu 4200 (at both ends, and the switch must carry it)")
X(PATH_BLACK_HOLE, "path-black-hole", "path", WARN,
  "IP packets above {largest} bytes vanish on the way to {host}, though the interface takes more",
  "small messages pass; with path MTU {offered} large ones end in RETRY_EXC",
  "path_mtu {path_mtu} in the program, or ip link set NETDEV mtu {largest}; or raise the MTU of the switches")
X(PATH_CLEAN, "path-clean", "path", OK,
  "{sent} packets to {host} and back: none lost, none out of order", "", "")
X(PATH_LOSS, "path-loss", "path", WARN,
  "of {sent} packets {there} were lost on the way to {host}, {back} on the way back",
  "each loss costs RC a round trip or a timeout",
  "verbena doctor counters udp (at both ends); ethtool -S NETDEV | grep -E 'drop|discard|crc'")
X(PATH_REORDER, "path-reorder", "path", WARN,
  "of {sent} packets {there} came out of order at {host}, {back} on the way back",
  "RC takes a packet out of order for a loss, and sends all behind it again",
  "bonding: mode 802.3ad with xmit_hash_policy layer3+4, not balance-rr; switches: paths by flow")
X(PATH_DSCP, "path-dscp", "path", NOTE,
  "DSCP {sent} arrives at {host} as {got}",
  "switches do not see the class of RoCE: PFC and ECN for it do not act",
  "trust DSCP at the ports of the switch: mlnx_qos -i NETDEV --trust dscp at the hosts")
X(PATH_ECN, "path-ecn", "path", NOTE,
  "packets arrive at {host} without their ECN capability",
  "congestion cannot be marked: packets are dropped instead",
  "look for a tunnel or firewall on the way that clears the ECN bits")
/* clang-format on */
