/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	send_basic [-s] [-g INDEX] [HOST]
 *
 * Without HOST: the receiver. -s: sleep instead of polling. -g: which entry of the GID table, that
 * is, which address of ours (0; `verbena devinfo` lists them, on a NIC `show_gids` or /sys).
 *
 * The shortest complete program around RDMA SEND: two processes exchange what they must know of
 * each other over TCP, connect a queue pair, and one SEND carries a line of text. Everything is
 * plain verbs, so it runs on any RDMA device; without one:
 *
 *	verbena run ./send_basic &  verbena run ./send_basic 127.0.0.1
 */
#include <infiniband/verbs.h>

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT	"18600"
#define BUF_LEN 4096

/* What the other side must know. */
struct address {
	union ibv_gid gid;
	uint32_t qpn, psn;
};

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* A TCP connection for the exchange: to host, or from whoever comes. */
static int rendezvous(const char *host)
{
	struct addrinfo hints = {.ai_flags = host ? 0 : AI_PASSIVE,
				 .ai_family = AF_INET,
				 .ai_socktype = SOCK_STREAM};
	struct addrinfo *a;
	int s, one = 1, tries = 50;

	check(!getaddrinfo(host, PORT, &hints, &a), "getaddrinfo");
	s = socket(a->ai_family, a->ai_socktype, 0);
	check(s >= 0, "socket");
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (host) {
		while (connect(s, a->ai_addr, a->ai_addrlen) && --tries)
			usleep(100000); /* the receiver is not there yet */
		check(tries, "connect");
	} else {
		check(!bind(s, a->ai_addr, a->ai_addrlen) && !listen(s, 1), "listen");
		s = accept(s, NULL, NULL);
		check(s >= 0, "accept");
	}
	freeaddrinfo(a);
	return s;
}

static struct ibv_context *open_first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	check(list && list[0], "no RDMA device (try it under `verbena run`)");
	ctx = ibv_open_device(list[0]);
	check(ctx != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	return ctx;
}

/* RESET to RTS. A receive posted late does no harm: the sender is told and tries again. */
static void connect_qp(struct ibv_qp *qp, const struct address *mine, const struct address *peer,
		       int gid_index)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer->qpn,
				  .rq_psn = peer->psn,
				  .max_dest_rd_atomic = 1,
				  .min_rnr_timer = 12, /* 0.64 ms */
				  .ah_attr = {.is_global = 1,
					      .port_num = 1,
					      .grh = {.dgid = peer->gid,
						      .sgid_index = (uint8_t)gid_index,
						      .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .sq_psn = mine->psn,
				  .timeout = 14, /* 67 ms */
				  .retry_cnt = 7,
				  .rnr_retry = 7, /* for ever */
				  .max_rd_atomic = 1};

	check(!ibv_modify_qp(qp, &init,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      "INIT");
	check(!ibv_modify_qp(qp, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	check(!ibv_modify_qp(qp, &rts,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
}

/* One completion: polled for, or slept for. */
static struct ibv_wc wait_completion(struct ibv_cq *cq, struct ibv_comp_channel *sleep_on)
{
	struct ibv_wc wc;
	void *user;

	while (ibv_poll_cq(cq, 1, &wc) == 0) {
		if (!sleep_on)
			continue;
		/* Arm, look once more (it may have come in between), then sleep. */
		check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		if (ibv_poll_cq(cq, 1, &wc))
			break;
		check(!ibv_get_cq_event(sleep_on, &cq, &user), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
	return wc;
}

static void send_line(struct ibv_qp *qp, struct ibv_sge sge, char *buf)
{
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};

	sge.length = (uint32_t)snprintf(buf, BUF_LEN, "a line by RDMA SEND") + 1;
	check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void post_receive(struct ibv_qp *qp, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	check(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void run(const char *host, int sleeping, int gid_index)
{
	struct ibv_context *ctx = open_first_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_comp_channel *ch = sleeping ? ibv_create_comp_channel(ctx) : NULL;
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, ch, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);
	char *buf = calloc(1, BUF_LEN);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, BUF_LEN, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = BUF_LEN};
	struct address mine = {.psn = 0x123456}, peer;
	int s = rendezvous(host);
	struct ibv_wc wc;

	check(pd && cq && qp && mr, "making the objects");
	sge.lkey = mr->lkey;
	check(!ibv_query_gid(ctx, 1, gid_index, &mine.gid), "ibv_query_gid");
	mine.qpn = qp->qp_num;
	check(write(s, &mine, sizeof(mine)) == sizeof(mine) &&
		      recv(s, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer),
	      "exchange");
	connect_qp(qp, &mine, &peer, gid_index);
	if (host)
		send_line(qp, sge, buf);
	else
		post_receive(qp, sge);
	wc = wait_completion(cq, ch);
	if (host)
		printf("sent\n");
	else
		printf("received %u bytes: %s\n", wc.byte_len, buf);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	if (ch)
		ibv_destroy_comp_channel(ch);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	free(buf);
	close(s);
}

int main(int argc, char **argv)
{
	int sleeping = 0, gid_index = 0, opt;
	const char *host;

	while ((opt = getopt(argc, argv, "sg:")) != -1) {
		if (opt == '?')
			return 2;
		sleeping |= opt == 's';
		gid_index = opt == 'g' ? atoi(optarg) : gid_index;
	}
	host = argv[optind]; /* NULL when there is none */
	run(host, sleeping, gid_index);
	return 0;
}
