/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The six exchanges of the demo. Each has a sender's and a receiver's half; the halves meet at
 * vrb_demo_sync: the receiver calls it when its receives are posted, the sender before it sends.
 * What was received is compared byte for byte with a pattern that both compute.
 */
#include "tools/demo.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define CHUNKS	    3
#define INLINE_LEN  64u
#define IMM_VALUE   0x56524201u
#define CHAIN	    10
#define CHAIN_SLOT  256u /* distance of the chained messages in the buffer */
#define GUARD_BYTES 16u	 /* behind a received message, must stay as it was */
#define GUARD	    0xa5

static const uint32_t chunk_offset[CHUNKS] = {0, 1000, 5000};
static const uint32_t chunk_len[CHUNKS] = {256, 512, 128};
#define GATHERED (256u + 512u + 128u)

/* A different byte at each place of each message; never GUARD for long runs. */
static uint8_t pattern(uint32_t message, uint32_t i)
{
	return (uint8_t)(message * 131u + i * 7u + (i >> 8));
}

static void fill(struct demo *d, uint32_t message, uint32_t offset, uint32_t len, uint32_t from)
{
	for (uint32_t i = 0; i < len; i++)
		d->buf[offset + i] = pattern(message, from + i);
}

static bool verify(struct demo *d, uint32_t message, uint32_t offset, uint32_t len, uint32_t from)
{
	for (uint32_t i = 0; i < len; i++)
		if (d->buf[offset + i] != pattern(message, from + i))
			return vrb_demo_fail(d, "byte %u is 0x%02x, 0x%02x was sent", from + i,
					     d->buf[offset + i], pattern(message, from + i));
	return true;
}

static void set_guard(struct demo *d, uint32_t offset)
{
	memset(d->buf + offset, GUARD, GUARD_BYTES);
}

static bool check_guard(struct demo *d, uint32_t offset)
{
	for (uint32_t i = 0; i < GUARD_BYTES; i++)
		if (d->buf[offset + i] != GUARD)
			return vrb_demo_fail(d, "byte %u behind the message was overwritten", i);
	return true;
}

/* Fills the three chunks with one message and lists them. */
static void gather(struct demo *d, uint32_t message, struct ibv_sge *sge)
{
	uint32_t from = 0;

	for (int i = 0; i < CHUNKS; i++) {
		fill(d, message, chunk_offset[i], chunk_len[i], from);
		sge[i] = vrb_demo_sge(d, chunk_offset[i], chunk_len[i]);
		from += chunk_len[i];
	}
}

/* Posts one receive, tells the sender, waits for the message and compares it. */
static bool receive_one(struct demo *d, uint32_t message, uint32_t len, struct ibv_wc *wc)
{
	memset(d->buf + DEMO_RECV_OFFSET, 0, len);
	set_guard(d, DEMO_RECV_OFFSET + len);
	if (!vrb_demo_post_recv(d, message, DEMO_RECV_OFFSET, len + GUARD_BYTES) ||
	    !vrb_demo_sync(d) || !vrb_demo_wait(d, d->recv_cq, wc))
		return false;
	if (wc->wr_id != message || wc->opcode != IBV_WC_RECV || wc->byte_len != len)
		return vrb_demo_fail(d, "unexpected completion: wr_id %llu, %u bytes",
				     (unsigned long long)wc->wr_id, wc->byte_len);
	return verify(d, message, DEMO_RECV_OFFSET, len, 0) &&
	       check_guard(d, DEMO_RECV_OFFSET + len);
}

static bool send_and_wait(struct demo *d, struct ibv_send_wr *wr)
{
	struct ibv_wc wc;

	return vrb_demo_sync(d) && vrb_demo_post_send(d, wr) && vrb_demo_wait(d, d->send_cq, &wc);
}

static bool step_gather(struct demo *d)
{
	struct ibv_sge sge[CHUNKS];
	struct ibv_send_wr wr = {.sg_list = sge,
				 .num_sge = CHUNKS,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	if (!d->is_sender)
		return receive_one(d, 1, GATHERED, &wc);
	gather(d, 1, sge);
	return send_and_wait(d, &wr);
}

/* The data lies in memory that was never registered, and is gone when the call returns. */
static bool step_inline(struct demo *d)
{
	uint8_t data[INLINE_LEN];
	struct ibv_sge sge = {.addr = (uintptr_t)data, .length = sizeof(data), .lkey = 0};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
	struct ibv_wc wc;

	if (!d->is_sender)
		return receive_one(d, 2, INLINE_LEN, &wc);
	for (uint32_t i = 0; i < INLINE_LEN; i++)
		data[i] = pattern(2, i);
	if (!vrb_demo_sync(d) || !vrb_demo_post_send(d, &wr))
		return false;
	memset(data, 0, sizeof(data));
	return vrb_demo_wait(d, d->send_cq, &wc);
}

static bool receive_event(struct demo *d)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *user;

	set_guard(d, DEMO_RECV_OFFSET + INLINE_LEN);
	if (!vrb_demo_post_recv(d, 3, DEMO_RECV_OFFSET, INLINE_LEN + GUARD_BYTES))
		return false;
	if (ibv_req_notify_cq(d->recv_cq, 1))
		return vrb_demo_fail(d, "ibv_req_notify_cq failed");
	if (!vrb_demo_sync(d))
		return false;
	if (ibv_get_cq_event(d->channel, &cq, &user))
		return vrb_demo_fail(d, "ibv_get_cq_event failed");
	ibv_ack_cq_events(cq, 1);
	if (!vrb_demo_wait(d, d->recv_cq, &wc))
		return false;
	if (!(wc.wc_flags & IBV_WC_WITH_IMM) || ntohl(wc.imm_data) != IMM_VALUE)
		return vrb_demo_fail(d, "immediate data is 0x%08x", ntohl(wc.imm_data));
	return verify(d, 3, DEMO_RECV_OFFSET, INLINE_LEN, 0) &&
	       check_guard(d, DEMO_RECV_OFFSET + INLINE_LEN);
}

static bool step_event(struct demo *d)
{
	struct ibv_sge sge = vrb_demo_sge(d, 0, INLINE_LEN);
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
				 .imm_data = htonl(IMM_VALUE)};

	if (!d->is_sender)
		return receive_event(d);
	fill(d, 3, 0, INLINE_LEN, 0);
	return send_and_wait(d, &wr);
}

static uint32_t chain_len(uint32_t i)
{
	return 100 + 11 * i;
}

static bool receive_chain(struct demo *d)
{
	for (uint32_t i = 0; i < CHAIN; i++) {
		uint32_t at = DEMO_RECV_OFFSET + i * CHAIN_SLOT;

		set_guard(d, at + chain_len(i));
		if (!vrb_demo_post_recv(d, 100 + i, at, CHAIN_SLOT))
			return false;
	}
	if (!vrb_demo_sync(d))
		return false;
	for (uint32_t i = 0; i < CHAIN; i++) {
		uint32_t at = DEMO_RECV_OFFSET + i * CHAIN_SLOT;
		struct ibv_wc wc;

		if (!vrb_demo_wait(d, d->recv_cq, &wc))
			return false;
		if (wc.wr_id != 100 + i || wc.byte_len != chain_len(i))
			return vrb_demo_fail(d, "message %u: wr_id %llu, %u bytes", i,
					     (unsigned long long)wc.wr_id, wc.byte_len);
		if (!verify(d, 100 + i, at, chain_len(i), 0) || !check_guard(d, at + chain_len(i)))
			return false;
	}
	return true;
}

static bool step_chain(struct demo *d)
{
	struct ibv_send_wr wr[CHAIN] = {{0}};
	struct ibv_sge sge[CHAIN];
	struct ibv_wc wc;

	if (!d->is_sender)
		return receive_chain(d);
	for (uint32_t i = 0; i < CHAIN; i++) {
		fill(d, 100 + i, i * CHAIN_SLOT, chain_len(i), 0);
		sge[i] = vrb_demo_sge(d, i * CHAIN_SLOT, chain_len(i));
		wr[i].wr_id = i;
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].next = i + 1 < CHAIN ? &wr[i + 1] : NULL;
	}
	wr[CHAIN - 1].send_flags = IBV_SEND_SIGNALED;
	if (!vrb_demo_sync(d) || !vrb_demo_post_send(d, wr) || !vrb_demo_wait(d, d->send_cq, &wc))
		return false;
	if (wc.wr_id != CHAIN - 1)
		return vrb_demo_fail(d, "a completion for request %llu, which is not signaled",
				     (unsigned long long)wc.wr_id);
	if (ibv_poll_cq(d->send_cq, 1, &wc))
		return vrb_demo_fail(d, "more than one completion");
	return true;
}

static bool step_write(struct demo *d)
{
	struct ibv_sge sge[CHUNKS];
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = CHUNKS,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = d->remote.addr + DEMO_RECV_OFFSET,
			    .rkey = d->remote.rkey},
	};

	if (d->is_sender) {
		gather(d, 5, sge);
		return send_and_wait(d, &wr) && vrb_demo_sync(d);
	}
	memset(d->buf + DEMO_RECV_OFFSET, 0, GATHERED);
	set_guard(d, DEMO_RECV_OFFSET + GATHERED);
	return vrb_demo_sync(d) && vrb_demo_sync(d) &&
	       verify(d, 5, DEMO_RECV_OFFSET, GATHERED, 0) &&
	       check_guard(d, DEMO_RECV_OFFSET + GATHERED);
}

/* Here the sender is the one who receives. */
static bool step_read(struct demo *d)
{
	struct ibv_sge sge[CHUNKS];
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = CHUNKS,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = d->remote.addr, .rkey = d->remote.rkey},
	};
	uint32_t from = 0;

	if (!d->is_sender) {
		fill(d, 6, 0, GATHERED, 0);
		return vrb_demo_sync(d) && vrb_demo_sync(d);
	}
	for (int i = 0; i < CHUNKS; i++) {
		uint32_t at = DEMO_RECV_OFFSET + chunk_offset[i];

		memset(d->buf + at, 0, chunk_len[i]);
		set_guard(d, at + chunk_len[i]);
		sge[i] = vrb_demo_sge(d, at, chunk_len[i]);
	}
	if (!send_and_wait(d, &wr) || !vrb_demo_sync(d))
		return false;
	for (int i = 0; i < CHUNKS; i++) {
		uint32_t at = DEMO_RECV_OFFSET + chunk_offset[i];

		if (!verify(d, 6, at, chunk_len[i], from) || !check_guard(d, at + chunk_len[i]))
			return false;
		from += chunk_len[i];
	}
	return true;
}

static const struct step {
	const char *name;
	bool (*run)(struct demo *d);
} steps[] = {
	{"SEND gathered from three chunks of one MR (256 + 512 + 128 bytes)", step_gather},
	{"inline SEND of 64 bytes from memory that is not registered", step_inline},
	{"SEND with immediate, solicited, to a receiver asleep on its channel", step_event},
	{"ten SENDs chained in one post, only the last one signaled", step_chain},
	{"RDMA WRITE gathered from three chunks (896 bytes)", step_write},
	{"RDMA READ scattered to three chunks (896 bytes)", step_read},
};

/* The receiver tells the sender what it found; the sender prints for both. */
static bool settle(struct demo *d, const struct step *s, bool ok)
{
	if (!d->is_sender)
		return vrb_demo_settle_write(d, ok) && ok;
	ok = vrb_demo_settle_read(d, ok);
	if (!d->json)
		printf("  %-4s  %s%s%s\n", ok ? "ok" : "FAIL", s->name, ok ? "" : ": ",
		       ok ? "" : d->why);
	fflush(stdout);
	json_array_append_new(json_object_get(d->report, "steps"),
			      json_pack("{s:s, s:b}", "step", s->name, "ok", ok));
	return ok;
}

bool vrb_demo_steps(struct demo *d)
{
	json_object_set_new(d->report, "steps", json_array());
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		bool ok = steps[i].run(d);

		if (!settle(d, &steps[i], ok))
			return false;
	}
	return true;
}
