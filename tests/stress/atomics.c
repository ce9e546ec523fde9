/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	4 initiator processes --- FETCH_ADD on word 0, CAS increments on word 1 ---> one target
 *	the target itself adds to both words the same way, through a QP of its own process
 *
 * No update may be lost, whatever path it came by: both words end at the exact sum.
 */
#include "stress.h"

#include <string.h>
#include <unistd.h>

#define INITIATORS 4

/* Adds up to n times to both words; returns how often. */
static long add_all(struct end *e, const struct end_id *t, long n)
{
	uint64_t *result = (uint64_t *)(void *)e->buf, guess = 0, last = 0;
	long i;

	for (i = 0; go_on(i, n); i++) {
		MUST(!end_atomic(e, false, t->addr, t->rkey, 1, 0));
		end_done(e, 1);
		MUST(i == 0 || *result > last); /* the word only grows */
		last = *result;
		for (;;) {
			MUST(!end_atomic(e, true, t->addr + 8, t->rkey, guess, guess + 1));
			end_done(e, 1);
			if (*result == guess)
				break;
			guess = *result;
		}
		guess++;
	}
	return i;
}

static void initiator(int sock, long n)
{
	struct end_id peer;
	struct end e;

	end_open(&e, NULL);
	MUST(end_meet(&e, sock, &peer));
	n = add_all(&e, &peer, n);
	MUST(put_all(sock, &n, sizeof(n)));
	end_close(&e);
	_exit(0);
}

void test_atomics(long n)
{
	struct end served[INITIATORS], mine, near;
	struct end_opts shared = {.len = 4096};
	struct end_id peer, words = {0};
	int sock[INITIATORS];
	pid_t pid[INITIATORS];
	uint64_t *word;
	long sum, more;

	for (int i = 0; i < INITIATORS; i++) {
		pid[i] = start_child(&sock[i]);
		if (!pid[i])
			initiator(sock[i], n);
	}
	end_open(&near, &shared); /* the words are in its region; one PD serves all QPs */
	for (int i = 0; i < INITIATORS; i++) {
		struct ibv_qp_init_attr init = {.send_cq = near.cq,
						.recv_cq = near.cq,
						.qp_type = IBV_QPT_RC,
						.cap = {16, 16, 1, 1, 0}};

		served[i] = near;
		MUST((served[i].qp = ibv_create_qp(near.pd, &init)) != NULL);
		served[i].id.qpn = served[i].qp->qp_num;
		end_init(&served[i]);
		if (!end_meet(&served[i], sock[i], &peer))
			join_child(pid[i]);
	}
	end_open(&mine, NULL);
	end_connect(&mine, &near.id);
	end_connect(&near, &mine.id);
	words = near.id;
	sum = add_all(&mine, &words, n);
	for (int i = 0; i < INITIATORS; i++) {
		MUST(get_all(sock[i], &more, sizeof(more)));
		sum += more;
		join_child(pid[i]);
	}
	word = (uint64_t *)(void *)near.buf;
	if (word[0] != (uint64_t)sum || word[1] != word[0])
		die("lost updates: %llu and %llu, want %ld", (unsigned long long)word[0],
		    (unsigned long long)word[1], sum);
}
