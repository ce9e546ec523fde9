/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	multi_qp              the server
 *	multi_qp HOST [QPS]   the client: 8 flows over QPS queue pairs (4)
 *
 * One queue pair is one flow through the network: its packets keep their order and take one
 * way. Several spread over ways and engines; then only messages of one flow keep their order.
 * Which queue pair a flow takes is a hash of addresses and ports, as in a network card.
 *
 *	verbena run ./multi_qp &  verbena run ./multi_qp 127.0.0.1
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <verbena/verbena.h>

#define PORT	 "18603"
#define FLOWS	 8
#define MESSAGES 1000 /* of each flow */

struct message {
	uint32_t flow, number;
};

/* What a packet of TCP has to say where it comes from and goes to, in network order. */
struct tuple {
	uint32_t source, destination;
	uint16_t source_port, destination_port;
};

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, vrb_error_text());
	exit(1);
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

/* Each flow must come in order; between flows anything may happen. */
static void serve(struct vrb_domain *domain)
{
	const struct vrb_channel_options o = {.qps = 16}; /* the client's number is smaller */
	uint32_t next[FLOWS] = {0}, got = 0;
	struct vrb_listener *listener;
	struct vrb_channel *ch;
	struct vrb_event ev;
	struct message m;

	check(vrb_listen(domain, NULL, PORT, &o, &listener), "listen");
	check(vrb_accept(listener, VRB_FOREVER, &ch), "accept");
	vrb_unlisten(listener);
	for (;;) {
		check(vrb_poll(ch, &ev, 1, VRB_FOREVER), "poll");
		if (ev.kind == VRB_EV_CLOSED)
			break;
		must(ev.kind != VRB_EV_BROKEN, ev.text);
		if (ev.kind != VRB_EV_MESSAGE)
			continue;
		must(ev.buf->len == sizeof(m), "a message of another size");
		memcpy(&m, ev.buf->data, sizeof(m));
		vrb_buf_put(ev.buf);
		must(m.flow < FLOWS && m.number == next[m.flow], "a flow is out of order");
		next[m.flow]++;
		got++;
	}
	(void)vrb_disconnect(ch, 0);
	printf("%u messages of %d flows, each in order\n", got, FLOWS);
}

/* A queue that is full, or a peer without a receive, is no error: polling makes room. */
static void send_surely(struct vrb_channel *ch, const struct message *m,
			const struct vrb_send_options *o)
{
	struct vrb_event ev;
	int r;

	while ((r = vrb_send(ch, m, sizeof(*m), o)) == -EAGAIN) {
		check(vrb_poll(ch, &ev, 1, VRB_FOREVER), "poll");
		must(ev.kind == VRB_EV_ROOM, ev.text ? ev.text : "the server is gone");
	}
	check(r, "send");
}

static void client(struct vrb_domain *domain, const char *host, unsigned qps)
{
	const struct vrb_channel_options o = {.qps = qps};
	struct vrb_send_options flow[FLOWS];
	struct vrb_channel_info info;
	struct vrb_channel *ch;

	check(vrb_connect(domain, host, PORT, &o, &ch), "connect");
	vrb_channel_info(ch, &info);
	for (int i = 0; i < FLOWS; i++) {
		const struct tuple t = {.source = htonl(0xc6336401), /* 198.51.100.1 */
					.destination = htonl(0xcb007101),
					.source_port = htons((uint16_t)(40000 + i)),
					.destination_port = htons(443)};
		unsigned qp;

		flow[i] = (struct vrb_send_options){.flow = vrb_flow_hash(ch, &t, sizeof(t)),
						    .flags = VRB_HASHED};
		qp = vrb_flow_qp(ch, flow[i].flow, VRB_HASHED);
		printf("port %d: hash %08x, queue pair %u of %u (QPN 0x%06x)\n", 40000 + i,
		       flow[i].flow, qp, info.qps, info.qp_num[qp]);
	}
	for (uint32_t k = 0; k < MESSAGES; k++)
		for (uint32_t i = 0; i < FLOWS; i++)
			send_surely(ch, &(struct message){i, k}, &flow[i]);
	check(vrb_disconnect(ch, 10000000000), "disconnect"); /* until all has arrived */
	printf("%d messages sent\n", FLOWS * MESSAGES);
}

int main(int argc, char **argv)
{
	struct vrb_domain *domain;

	check(vrb_open(NULL, &domain), "open");
	if (argc < 2)
		serve(domain);
	else
		client(domain, argv[1], argc > 2 ? (unsigned)atoi(argv[2]) : 4);
	check(vrb_close(domain), "close");
	return 0;
}
