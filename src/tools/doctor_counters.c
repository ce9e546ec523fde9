/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port counters that mean something. They count since the driver was loaded, so a finding says what
 * has happened, not that it happens now; a few are normal in small numbers and count in relation to
 * the packets. Rows with the same text have it from one macro. Names: the IBTA's port counters;
 * those of the vendors' drivers and of soft-RoCE as the kernel documents them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor_counters.h"

#define SAYS "{device}/{port}: {counter} = {count}{how}: "

#define WAIT_PER_PACKET 10 /* of port_xmit_wait */

/* clang-format off */
#define LOSS_COSTS "RC goes back and sends again: each loss costs a round trip, or a timeout and its whole window"
#define LOSS_MEND  "look for drops at both NICs and the switch; PFC or ECN for the traffic class: mlnx_qos -i {netdev}"
#define CABLE_COSTS "packets are lost or sent again below; in large numbers bandwidth falls"
#define CABLE_MEND  "clean or change cable and transceiver; mlxlink -d {slot}, ethtool -m {netdev}"
#define RNR_COSTS "the sender waits (min_rnr_timer) and sends again; with rnr_retry used up the QP ends in RNR_RETRY_EXC"
#define RNR_MEND  "post more receives, earlier; rnr_retry=7 while you look for the place"
#define BUG_MEND  "verbena run COMMAND explains each such work request"

#define ROW(name, severity, sentence, costs, mend) \
	{"counter-" name, "counters", VRB_SEV_##severity, SAYS sentence, costs, mend},

const struct vrb_finding vrb_counter_findings[] = {
	/* counters/ */
	ROW("symbol_error", WARN, "bits arrived broken", CABLE_COSTS, CABLE_MEND)
	ROW("link_error_recovery", WARN, "the link was trained anew after errors", CABLE_COSTS, CABLE_MEND)
	ROW("link_downed", NOTE, "the link went down that often", "connections across it end in RETRY_EXC", CABLE_MEND)
	ROW("port_rcv_errors", WARN, "packets with errors arrived", CABLE_COSTS, CABLE_MEND)
	ROW("port_rcv_remote_physical_errors", NOTE, "packets arrived that were broken further away", CABLE_COSTS, "look at the links behind the switch: ibqueryerrors")
	ROW("port_rcv_switch_relay_errors", NOTE, "packets that the switch could not forward", "UD and multicast messages vanish", "ibqueryerrors; check LIDs and partitions")
	ROW("port_xmit_discards", WARN, "packets were thrown away before sending: the port was down or congested", LOSS_COSTS, LOSS_MEND)
	ROW("port_xmit_wait", NOTE, "ticks with data to send and no credit: the receiver or the fabric was too slow", "the port stands still while it waits", "look for the slow receiver; PCIe and NUMA findings there")
	ROW("port_xmit_constraint_errors", WARN, "packets not sent: partition or raw filter", "messages vanish", "compare pkeys: cat /sys/class/infiniband/{device}/ports/{port}/pkeys/*")
	ROW("port_rcv_constraint_errors", WARN, "packets refused on arrival: partition or raw filter", "messages vanish", "compare pkeys: cat /sys/class/infiniband/{device}/ports/{port}/pkeys/*")
	ROW("local_link_integrity_errors", WARN, "too many local errors on the link", CABLE_COSTS, CABLE_MEND)
	ROW("excessive_buffer_overrun_errors", WARN, "the buffer of the port ran over", CABLE_COSTS, CABLE_MEND)
	ROW("VL15_dropped", NOTE, "management packets were dropped", "the subnet manager may find the port slowly", "ibqueryerrors")
	/* hw_counters/: loss and order */
	ROW("out_of_sequence", WARN, "packets arrived out of order, after a loss on the way here or by several paths", LOSS_COSTS, LOSS_MEND)
	ROW("packet_seq_err", WARN, "peers asked for packets again (NAK, PSN sequence error)", LOSS_COSTS, LOSS_MEND)
	ROW("implied_nak_seq_err", WARN, "answers came out of order: a READ or ATOMIC response was lost", LOSS_COSTS, LOSS_MEND)
	ROW("local_ack_timeout_err", WARN, "nothing came back within the ACK timeout", "each costs 4.096 us * 2^timeout; after retry_cnt of them the QP ends in RETRY_EXC", "the peer is gone, or packets are lost: first `verbena doctor` there; a timeout of 14 to 18")
	ROW("duplicate_request", NOTE, "requests came twice: the peer sent again what had arrived", "bandwidth is spent twice; ACKs were lost, or the peer's timeout is too short", LOSS_MEND)
	ROW("rx_icrc_encapsulated", WARN, "RoCE packets arrived with a wrong ICRC", LOSS_COSTS, "a device on the way changes packets (a tunnel, a firewall, a broken NIC)")
	ROW("roce_adp_retrans", NOTE, "adaptive retransmissions", LOSS_COSTS, LOSS_MEND)
	ROW("roce_adp_retrans_to", NOTE, "adaptive retransmissions after a timeout", LOSS_COSTS, LOSS_MEND)
	ROW("roce_slow_restart", NOTE, "slow restarts after idle time", "the first messages after a pause are slower", "mlxreg, ROCE_ACCL: turn roce_slow_restart off where the fabric is lossless")
	ROW("req_transport_retries_exceeded", WARN, "queue pairs ended in RETRY_EXC", "those connections are gone", "peer gone, wrong GID index or MTU, or loss; `verbena explain RETRY_EXC_ERR`")
	ROW("req_rnr_retries_exceeded", WARN, "queue pairs ended in RNR_RETRY_EXC", "those connections are gone", RNR_MEND)
	/* receives and buffers */
	ROW("rnr_nak_retry_err", WARN, "peers had no receive posted (RNR NAK)", RNR_COSTS, RNR_MEND)
	ROW("out_of_buffer", WARN, "messages came while no receive was posted here", RNR_COSTS, RNR_MEND)
	ROW("rx_discards", WARN, "the NIC had no room for arriving packets", LOSS_COSTS, "PCIe, NUMA and IOMMU findings first; then PFC: mlnx_qos -i {netdev}")
	ROW("rx_discards_phy", WARN, "the NIC had no room for arriving packets", LOSS_COSTS, "PCIe, NUMA and IOMMU findings first; then PFC: mlnx_qos -i {netdev}")
	ROW("rx_out_of_buffer", NOTE, "the kernel's network had no receive buffer", "sockets lose packets; RoCE is not concerned", "ethtool -G {netdev} rx 8192")
	/* pause frames, of the whole port and by priority */
	ROW("rx_pause_ctrl_phy", NOTE, "pause frames came: the switch or the peer stopped this port", "the port stands still while it is stopped", "look for the slow receiver; PCIe and NUMA findings there")
	ROW("tx_pause_ctrl_phy", NOTE, "pause frames were sent: this host is slower than what arrives", "the sender stands still, and with it others behind the same switch", "PCIe, NUMA and IOMMU findings here")
	ROW("rx_prio*_pause", NOTE, "PFC frames came: the switch or the peer stopped a priority", "that class stands still while it is stopped", "look for the slow receiver; PCIe and NUMA findings there")
	ROW("tx_prio*_pause", NOTE, "PFC frames were sent: this host is slower than what arrives", "the sender stands still, and with it others behind the same switch", "PCIe, NUMA and IOMMU findings here")
	ROW("rx_prio*_discards", WARN, "packets of a priority were thrown away at the port", LOSS_COSTS, "PFC and buffers of that priority: mlnx_qos -i {netdev}")
	ROW("tx_pause_storm_warning_events", WARN, "this host stopped its sender for very long (pause storm)", "everything behind the same switch stands still", "a program or the host hangs; PCIe, NUMA and IOMMU findings here")
	/* congestion */
	ROW("np_ecn_marked_roce_packets", NOTE, "packets arrived with a congestion mark", "the sender is told to slow down", "normal under congestion: more paths, or fewer senders to one port")
	ROW("np_cnp_sent", NOTE, "congestion notifications sent: senders were told to slow down", "their rate falls for milliseconds", "normal under congestion: more paths, or fewer senders to one port")
	ROW("rp_cnp_handled", NOTE, "congestion notifications came: this port slowed down", "the rate falls for milliseconds", "normal under congestion: more paths, or fewer senders to one port")
	ROW("rp_cnp_ignored", WARN, "congestion notifications came and were ignored", "the switch drops packets instead", "echo 1 >/sys/class/net/{netdev}/ecn/roce_rp/enable/3")
	/* refused operations */
	ROW("resp_local_length_error", NOTE, "messages were longer than the receive posted for them", "both queue pairs end in an error", BUG_MEND)
	ROW("resp_remote_access_errors", NOTE, "peers used a wrong rkey, range or right", "both queue pairs end in an error", BUG_MEND)
	ROW("req_remote_access_errors", NOTE, "requests were refused by peers: wrong rkey, range or right", "both queue pairs end in an error", BUG_MEND)
	ROW("req_remote_invalid_request", NOTE, "requests were refused by peers as invalid", "both queue pairs end in an error", BUG_MEND)
	ROW("req_cqe_error", NOTE, "requests completed with an error", "their queue pairs are in the error state", BUG_MEND)
	ROW("resp_cqe_error", NOTE, "receives completed with an error", "their queue pairs are in the error state", BUG_MEND)
	/* soft-RoCE */
	ROW("out_of_seq_request", WARN, "requests arrived out of order", LOSS_COSTS, "sysctl -w net.core.rmem_max=8388608; the kernel dropped packets of its own, or the network did")
	ROW("rcvd_seq_err", WARN, "peers asked for packets again (NAK, PSN sequence error)", LOSS_COSTS, LOSS_MEND)
	ROW("rcvd_rnr_err", WARN, "peers had no receive posted (RNR NAK)", RNR_COSTS, RNR_MEND)
	ROW("send_rnr_err", WARN, "messages came while no receive was posted here", RNR_COSTS, RNR_MEND)
	ROW("retry_exceeded_err", WARN, "queue pairs ended in RETRY_EXC", "those connections are gone", "peer gone, wrong GID index or MTU, or loss; `verbena explain RETRY_EXC_ERR`")
	ROW("retry_rnr_exceeded_err", WARN, "queue pairs ended in RNR_RETRY_EXC", "those connections are gone", RNR_MEND)
	ROW("completer_retry_err", NOTE, "requests were sent again", LOSS_COSTS, LOSS_MEND)
	ROW("send_err", WARN, "packets could not be given to the interface", LOSS_COSTS, "ip -s link show {netdev}")
};
/* clang-format on */
const unsigned vrb_n_counter_findings =
	sizeof(vrb_counter_findings) / sizeof(vrb_counter_findings[0]);

_Static_assert(sizeof(vrb_counter_findings) / sizeof(vrb_counter_findings[0]) <= VRB_DOC_COUNTERS,
	       "room for each counter");

static const char *counter_name(const struct vrb_finding *row)
{
	return row->word + strlen("counter-");
}

void vrb_port_sample(const struct vrb_doc *d, const struct vrb_doc_device *dev, const char *port,
		     struct vrb_port_sample *s)
{
	char path[160], rate[48], *ethtool;

	memset(s, 0, sizeof(*s));
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s", dev->name, port);
	snprintf(s->device, sizeof(s->device), "%s", dev->name);
	snprintf(s->port, sizeof(s->port), "%s", port);
	snprintf(s->slot, sizeof(s->slot), "%s", dev->slot);
	vrb_doc_port_netdev(d, dev->name, port, s->netdev);
	if (vrb_doc_line(d, rate, sizeof(rate), "%s/rate", path))
		s->rate = strtod(rate, NULL);
	/* soft-RoCE has the second of each, and no bytes */
	if (!vrb_doc_number(d, &s->packets_out, "%s/counters/port_xmit_packets", path))
		(void)vrb_doc_number(d, &s->packets_out, "%s/hw_counters/sent_pkts", path);
	if (!vrb_doc_number(d, &s->packets_in, "%s/counters/port_rcv_packets", path))
		(void)vrb_doc_number(d, &s->packets_in, "%s/hw_counters/rcvd_pkts", path);
	/* these count words of 4 bytes */
	if (vrb_doc_number(d, &s->bytes_out, "%s/counters/port_xmit_data", path))
		s->bytes_out *= 4;
	if (vrb_doc_number(d, &s->bytes_in, "%s/counters/port_rcv_data", path))
		s->bytes_in *= 4;
	ethtool = vrb_doc_ethtool(d, s->netdev);
	for (unsigned i = 0; i < vrb_n_counter_findings; i++) {
		const char *name = counter_name(&vrb_counter_findings[i]);

		if (!vrb_doc_number(d, &s->value[i], "%s/hw_counters/%s", path, name) &&
		    !vrb_doc_number(d, &s->value[i], "%s/counters/%s", path, name))
			(void)vrb_doc_ethtool_sum(ethtool, name, &s->value[i]);
	}
	free(ethtool);
}

void vrb_port_judge(struct vrb_doc *d, const struct vrb_port_sample *s, int seconds)
{
	for (unsigned i = 0; i < vrb_n_counter_findings; i++) {
		const struct vrb_finding *row = &vrb_counter_findings[i];

		if (s->value[i] <= 0 || (!strcmp(counter_name(row), "port_xmit_wait") &&
					 s->value[i] < s->packets_out * WAIT_PER_PACKET))
			continue;
		vrb_doc_add_row(d, row,
				json_pack("{s:s, s:s, s:s, s:I, s:s, s:i, s:s, s:s}", "device",
					  s->device, "port", s->port, "counter", counter_name(row),
					  "count", (json_int_t)s->value[i], "how", "", "seconds",
					  seconds, "netdev", s->netdev, "slot", s->slot));
		if (seconds)
			vrb_doc_say(d, "how", VRB_TR(" more in {seconds} s"));
	}
}

long long vrb_port_value(const struct vrb_port_sample *s, const char *name)
{
	for (unsigned i = 0; i < vrb_n_counter_findings; i++)
		if (!strcmp(counter_name(&vrb_counter_findings[i]), name))
			return s->value[i];
	return 0;
}

static void check_port(struct vrb_doc *d, const struct vrb_doc_device *dev, const char *port)
{
	struct vrb_port_sample s;

	vrb_port_sample(d, dev, port, &s);
	vrb_port_judge(d, &s, 0);
}

void vrb_check_counters(struct vrb_doc *d)
{
	vrb_doc_each_port(d, check_port);
}
