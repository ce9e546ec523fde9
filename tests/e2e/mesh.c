/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The controller of the mesh (mesh.h):
 *
 *	test_mesh NETNS-A NETNS-B [KILLS [SEED]]
 *
 * Kills members at random moments, one or two at once, or stops one for a moment, and starts the
 * killed ones anew, until KILLS have been made; then every pair must be connected and at work.
 */
#include "mesh.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 30.0 /* s: many times what a pair needs to notice, or to connect */
#define SOME	 20u  /* messages that each direction must still carry at the end */

enum state { NONE, OFFERED, CONNECTING, READY, RUNNING, LOSING };

/* One end of a pair. */
struct half {
	enum state state;
	uint32_t epoch;
	struct end_id id;
	uint64_t count;
	double since; /* of the state; RUNNING: of the last progress */
};

struct member {
	pid_t pid;
	int sock;
	uint32_t life;
	double wakes_at; /* stopped until then; 0: not */
	struct half half[MESH_N];
};

static struct member member[2 * MESH_N];
static int netns[2];
static uint64_t seed;
static uint32_t n_kills, n_stops, n_lost;
static uint64_t n_done; /* by members that have been killed */

static struct half *other_half(uint32_t who, uint32_t j, uint32_t *other)
{
	*other = (who < MESH_N ? MESH_N : 0) + j;
	return &member[*other].half[who % MESH_N];
}

static void set(struct half *h, enum state state)
{
	h->state = state;
	h->since = now_s();
}

static void tell(uint32_t who, struct mesh_msg *m)
{
	/* who has just been killed does not listen */
	(void)!send(member[who].sock, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void start(uint32_t who)
{
	struct member *m = &member[who];
	uint32_t life = m->life + 1;
	int s[2];

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s));
	m->pid = fork();
	MUST(m->pid >= 0);
	if (!m->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (uint32_t i = 0; i < 2 * MESH_N; i++)
			if (member[i].sock > 0)
				close(member[i].sock);
		close(s[0]);
		MUST(!setns(netns[who / MESH_N], CLONE_NEWNET));
		mesh_member(s[1], who, life);
	}
	close(s[1]);
	memset(m->half, 0, sizeof(m->half));
	m->sock = s[0];
	m->life = life;
	m->wakes_at = 0;
	for (uint32_t j = 0; j < MESH_N; j++)
		set(&m->half[j], NONE);
}

static void kill_member(uint32_t who)
{
	struct member *m = &member[who];

	kill(m->pid, SIGKILL);
	MUST(waitpid(m->pid, NULL, 0) == m->pid);
	close(m->sock);
	n_kills++;
	for (uint32_t j = 0; j < MESH_N; j++) {
		struct mesh_msg renew = {.type = MESH_RENEW, .j = who % MESH_N};
		uint32_t other;
		struct half *h = other_half(who, j, &other);

		n_done += m->half[j].count;
		renew.epoch = h->epoch;
		if (h->state == RUNNING) {
			set(h, LOSING);
		} else if (h->state == CONNECTING || h->state == READY) {
			set(h, NONE);
			tell(other, &renew);
		}
	}
	start(who);
}

static void connect_pair(uint32_t who, uint32_t j)
{
	struct half *mine = &member[who].half[j], *its;
	struct mesh_msg m = {.type = MESH_CONNECT, .j = j, .epoch = mine->epoch};
	uint32_t other;

	its = other_half(who, j, &other);
	if (mine->state != OFFERED || its->state != OFFERED)
		return;
	m.life = member[other].life;
	m.id = its->id;
	tell(who, &m);
	m = (struct mesh_msg){.type = MESH_CONNECT, .j = who % MESH_N, .epoch = its->epoch};
	m.life = member[who].life;
	m.id = mine->id;
	tell(other, &m);
	set(mine, CONNECTING);
	set(its, CONNECTING);
}

static void go(uint32_t who, uint32_t j)
{
	struct half *mine = &member[who].half[j], *its;
	struct mesh_msg m = {.type = MESH_GO, .j = j, .epoch = mine->epoch};
	uint32_t other;

	its = other_half(who, j, &other);
	if (mine->state != READY || its->state != READY)
		return;
	tell(who, &m);
	m.j = who % MESH_N;
	m.epoch = its->epoch;
	tell(other, &m);
	set(mine, RUNNING);
	set(its, RUNNING);
}

static void lost(uint32_t who, const struct mesh_msg *m)
{
	struct half *h = &member[who].half[m->j];
	uint32_t other;

	(void)other_half(who, m->j, &other);
	if (h->state != LOSING)
		die("member %u lost member %u, which lives (%s)", who, other,
		    ibv_wc_status_str((enum ibv_wc_status)m->status));
	if (m->status != IBV_WC_RETRY_EXC_ERR)
		die("member %u lost member %u, which was killed, by %s", who, other,
		    ibv_wc_status_str((enum ibv_wc_status)m->status));
	n_lost++;
	set(h, NONE);
}

static void count(struct member *m, const struct mesh_msg *msg)
{
	for (uint32_t j = 0; j < MESH_N; j++) {
		if (m->half[j].count != msg->count[j])
			m->half[j].since = m->half[j].state == RUNNING ? now_s() : m->half[j].since;
		m->half[j].count = msg->count[j];
	}
}

static void on_msg(uint32_t who, const struct mesh_msg *m)
{
	struct half *h = &member[who].half[m->j];

	switch (m->type) {
	case MESH_ID:
		h->epoch = m->epoch;
		h->id = m->id;
		set(h, OFFERED);
		connect_pair(who, m->j);
		break;
	case MESH_READY:
		if (h->state != CONNECTING || m->epoch != h->epoch)
			break;
		set(h, READY);
		go(who, m->j);
		break;
	case MESH_LOST:
		lost(who, m);
		break;
	case MESH_COUNT:
		count(&member[who], m);
		break;
	case MESH_CONNECT:
	case MESH_GO:
	case MESH_RENEW:
		die("member %u says what only the controller says", who);
	}
}

static void hear(uint32_t who)
{
	struct mesh_msg m;
	ssize_t n;
	int status;

	while ((n = recv(member[who].sock, &m, sizeof(m), MSG_DONTWAIT)) == (ssize_t)sizeof(m))
		on_msg(who, &m);
	if (n < 0 && errno == EAGAIN)
		return;
	MUST(waitpid(member[who].pid, &status, 0) == member[who].pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77);
	die("member %u ended by itself: wait status 0x%x", who, (unsigned int)status);
}

static void watch(void)
{
	static const char *const name[] = {"without a queue pair", "waiting for the other end",
					   "connecting",	   "connected",
					   "without progress",	   "not noticing the kill"};
	double now = now_s();

	for (uint32_t who = 0; who < 2 * MESH_N; who++) {
		struct member *m = &member[who];

		if (m->wakes_at && now > m->wakes_at) {
			kill(m->pid, SIGCONT);
			m->wakes_at = 0;
		}
		for (uint32_t j = 0; j < MESH_N; j++)
			if (now - m->half[j].since > PATIENCE)
				die("member %u to number %u: %s for %.0f s (%u kills)", who, j,
				    name[m->half[j].state], PATIENCE, n_kills);
	}
}

/* Listens until the moment. */
static void run_until(double until)
{
	struct pollfd p[2 * MESH_N];

	do {
		for (uint32_t i = 0; i < 2 * MESH_N; i++)
			p[i] = (struct pollfd){.fd = member[i].sock, .events = POLLIN};
		(void)poll(p, 2 * MESH_N, 5);
		for (uint32_t i = 0; i < 2 * MESH_N; i++)
			if (p[i].revents)
				hear(i);
		watch();
	} while (now_s() < until);
}

static void strike(void)
{
	uint32_t who = (uint32_t)(rnd(&seed) % (2 * MESH_N)), r = (uint32_t)(rnd(&seed) % 8);

	if (member[who].wakes_at)
		return;
	if (r == 0) { /* shorter than what its peers bear */
		kill(member[who].pid, SIGSTOP);
		member[who].wakes_at = now_s() + 0.05 + (double)(rnd(&seed) % 200) / 1000.0;
		n_stops++;
		return;
	}
	kill_member(who);
	if (r == 1)
		kill_member((who + 1 + (uint32_t)(rnd(&seed) % 7)) % (2 * MESH_N));
}

/* Every pair is at work. */
static void settle(void)
{
	uint64_t before[2 * MESH_N][MESH_N];
	uint32_t n_behind = 1;

	for (uint32_t i = 0; i < 2 * MESH_N; i++)
		for (uint32_t j = 0; j < MESH_N; j++)
			before[i][j] = member[i].half[j].count;
	while (n_behind) { /* bounded by watch() */
		run_until(now_s() + 0.05);
		n_behind = 0;
		for (uint32_t i = 0; i < 2 * MESH_N; i++)
			for (uint32_t j = 0; j < MESH_N; j++)
				n_behind += member[i].half[j].state != RUNNING ||
					    member[i].half[j].count < before[i][j] + SOME;
	}
}

int main(int argc, char **argv)
{
	uint32_t kills = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 12;
	uint64_t total = 0;

	if (argc < 3)
		die("usage: test_mesh NETNS-A NETNS-B [KILLS [SEED]]");
	seed = argc > 4 ? strtoull(argv[4], NULL, 0) | 1 : 4791;
	for (int i = 0; i < 2; i++)
		MUST((netns[i] = open(argv[1 + i], O_RDONLY | O_CLOEXEC)) >= 0);
	for (uint32_t who = 0; who < 2 * MESH_N; who++)
		start(who);
	settle();
	while (n_kills < kills) {
		run_until(now_s() + 0.05 + (double)(rnd(&seed) % 800) / 1000.0);
		strike();
	}
	settle();
	for (uint32_t who = 0; who < 2 * MESH_N; who++)
		for (uint32_t j = 0; j < MESH_N; j++)
			total += member[who].half[j].count;
	for (uint32_t who = 0; who < 2 * MESH_N; who++)
		kill(member[who].pid, SIGKILL);
	printf("%u kills, %u stops: %u queue pairs ended with RETRY_EXC and connected anew; %llu "
	       "messages and READs checked\n",
	       n_kills, n_stops, n_lost, (unsigned long long)(n_done + total));
	return 0;
}
