/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	parent A <--- traffic ---> peer B
 *	   `-- fork: child opens the device anew, talks to B' of its own, uses and destroys A's
 *	       objects, ends in one of three ways; the parent's traffic goes on all the while
 *
 * What the child does to its copies of the parent's objects must fail or do nothing; what it does
 * with objects of its own must work.
 */
#include "stress.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void talk(struct end *a, struct end *b, int n)
{
	for (int i = 0; i < n; i++) {
		memset(a->buf, i, 64);
		MUST(!end_recv(b, 7, 64, 64));
		MUST(!end_send(a, 1, 0, 64, IBV_SEND_SIGNALED));
		end_done(b, 7);
		end_done(a, 1);
		MUST(!memcmp(a->buf, b->buf + 64, 64));
	}
}

static void open_two(struct end *a, struct end *b)
{
	end_open(a, NULL);
	end_open(b, NULL);
	end_connect(a, &b->id);
	end_connect(b, &a->id);
}

/* Posts and polls on objects of the parent: refused or empty, no crash, no wait. */
static void touch_foreign(struct end *a)
{
	struct ibv_wc wc;
	int err = end_send(a, 99, 0, 64, IBV_SEND_SIGNALED);

	MUST(err != 0);
	MUST(ibv_poll_cq(a->cq, 1, &wc) <= 0);
	MUST(!ibv_reg_mr(a->pd, a->buf, 64, 0));
	MUST(!ibv_alloc_pd(a->ctx));
}

static void child(struct end *a, struct end *b, int way)
{
	struct end c, d;

	alarm(CASE_SECONDS / 2);
	if (way != 1)
		touch_foreign(a);
	open_two(&c, &d);
	talk(&c, &d, 50);
	end_close(&d);
	end_close(&c);
	if (way == 2) { /* frees its copies as a cleanup handler would */
		ibv_destroy_qp(a->qp);
		ibv_dereg_mr(a->mr);
		ibv_destroy_cq(a->cq);
		ibv_destroy_qp(b->qp);
		ibv_dealloc_pd(a->pd);
		ibv_close_device(a->ctx);
	}
	if (way == 3)
		execl("/bin/true", "true", (char *)NULL);
	if (way == 4) { /* a grandchild does it all again */
		pid_t pid = fork();

		if (!pid) {
			touch_foreign(a);
			open_two(&c, &d);
			talk(&c, &d, 20);
			_exit(0);
		}
		join_child(pid);
	}
	_exit(0);
}

void test_fork(long n)
{
	struct end a, b;

	open_two(&a, &b);
	talk(&a, &b, 20);
	for (int i = 0; i < n; i++) {
		int status;
		pid_t pid = fork();

		if (!pid)
			child(&a, &b, i % 5);
		while (waitpid(pid, &status, WNOHANG) == 0)
			talk(&a, &b, 5);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			die("child of way %d: wait status 0x%x", i % 5, (unsigned int)status);
		talk(&a, &b, 5);
	}
	end_close(&b);
	end_close(&a);
}
