/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	namespace A, one address                namespace B, one address
 *	.------------------------.              .---------------------------------.
 *	| peer 0  peer 1  peer 2 | <= QP 1 =>   | member 0, 1, 2: a service each  |
 *	|                        |              | member 3: none                  |
 *	'------------------------'              '---------------------------------'
 *	            ^                                         ^ kill -9
 *	            '--------------- controller --------------'
 *
 *	e2e_gsi [KILLS [SEED [4|6]]]        runs itself between namespaces (wire_net)
 *
 * Peers ask for services, and write to those who have answered by their communication ids. Members
 * are killed at any time and started anew. Whatever a process gets must be its own: a request for
 * its service, a message for an id of its slot that it has given out, with the word that belongs to
 * it. While nobody is killed every request is answered by the right member, and the one for a
 * service that nobody has is refused; in between those of dead members may be.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "hca/box.h"
#include "hca/kit.h"

#define SERVICE	  0x0000000001060000ull
#define PORT	  1000u
#define MEMBERS	  4u
#define SERVICES  3u /* of them */
#define PEERS	  3u
#define CALM	  40u /* exchanges of each peer between two storms */
#define WRITES	  3u  /* messages by communication id in each */
#define KNOWN	  4096u
#define AGAIN_MS  1000
#define IN_STORM  2u /* times that a message is repeated while members die */
#define CHANNEL	  3  /* descriptor */
#define PER_STORM 4u /* kills */

enum order { READY = 1, RUN, STORM, STOP, DONE };

struct msg {
	uint32_t order, n;
	uint64_t n_exchanges, n_refused, n_stale;
};

static uint32_t n_words;

static void tell(int sock, const struct msg *m)
{
	MUST(send(sock, m, sizeof(*m), MSG_NOSIGNAL) == sizeof(*m));
}

static struct msg hear(int sock)
{
	struct msg m;
	ssize_t n = recv(sock, &m, sizeof(m), 0);

	if (!n)
		_exit(0); /* the controller has ended */
	MUST(n == sizeof(m));
	return m;
}

static bool is_told(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* ---- both kinds of process */

static struct vrb_gid address(bool v6, uint8_t last)
{
	struct vrb_gid g = {{[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 77, [15] = last}};

	if (v6)
		g = (struct vrb_gid){{0xfd, 0x77, [15] = last}};
	return g;
}

/* At the device that has the address. */
static struct box *open_at(const struct vrb_gid *gid)
{
	struct vrb_hdev *list[VRB_DEVICES_MAX];
	struct vrb_hctx *ctx;
	int n = vrb_hca_devices(list);

	for (int d = 0; d < n; d++)
		for (uint32_t i = 0; i < list[d]->n_gids; i++)
			if (list[d]->gid[i].valid &&
			    !memcmp(&list[d]->gid[i].gid, gid, sizeof(*gid))) {
				MUST(!vrb_hctx_open(list[d], &ctx));
				return box_open(ctx);
			}
	MUST(!"no device has the address");
	return NULL;
}

/* ---- member */

/* Ids that were given out in this life, and the word of the request. */
static struct known {
	uint32_t id, word;
} known[KNOWN];
static uint32_t n_known;

static const struct known *find_known(uint32_t id)
{
	for (uint32_t i = 0; i < n_known && i < KNOWN; i++)
		if (known[i].id == id)
			return &known[i];
	return NULL;
}

static void answer(struct box *b, uint32_t me, const struct letter *l)
{
	struct known *k = &known[n_known++ % KNOWN];

	if (me >= SERVICES || l->cm.service_id != SERVICE + PORT + me)
		fprintf(stderr, "member %u got a request for service id 0x%llx\n", me,
			(unsigned long long)l->cm.service_id);
	MUST(me < SERVICES && l->cm.service_id == SERVICE + PORT + me);
	*k = (struct known){vrb_gsi_new_id(b->ctx), box_word(l)};
	/* the answer's word says who has answered, and what */
	box_write(b, &l->src, VRB_CM_REP, (struct box_ids){k->id, l->cm.local_id},
		  box_word(l) << 2 | me);
}

static void __attribute__((noreturn)) member(uint32_t me, bool v6)
{
	struct vrb_gid self = address(v6, 2);
	struct box *b = open_at(&self);
	struct msg m = {.order = READY};
	struct letter l;
	uint64_t n_stale = 0;

	if (me < SERVICES)
		while (vrb_gsi_claim(b->ctx, SERVICE + PORT + me))
			usleep(1000); /* the former owner is being buried */
	tell(CHANNEL, &m);
	for (;;) {
		const struct known *k;

		if (is_told(CHANNEL)) { /* how many messages were for ids of an earlier owner? */
			(void)hear(CHANNEL);
			m.n_stale = n_stale;
			tell(CHANNEL, &m);
		}
		if (!box_take(b, &l, 20))
			continue;
		if (l.cm.kind == VRB_CM_REQ) {
			answer(b, me, &l);
			continue;
		}
		MUST(l.cm.kind == VRB_CM_DREQ && l.cm.remote_id >> 24 == b->ctx->e->slot);
		k = find_known(l.cm.remote_id);
		n_stale += !k;
		MUST(!k || box_word(&l) == k->word);
		if (k)
			box_write(b, &l.src, VRB_CM_DREP, (struct box_ids){k->id, l.cm.local_id},
				  k->word);
	}
}

/* ---- peer */

struct peer {
	struct box *b;
	struct vrb_gid there;
	uint32_t first_id, n_ids;
	bool storm;
	struct msg count;
};

/* The answer to our message `id`, within AGAIN_MS. What comes for earlier ones was repeated. */
static bool hear_from(struct peer *p, uint32_t id, struct letter *l)
{
	double end = now_s() + AGAIN_MS / 1e3;

	while (now_s() < end) {
		if (!box_take(p->b, l, 50))
			continue;
		MUST(l->cm.remote_id >> 24 == p->b->ctx->e->slot);
		MUST(((l->cm.remote_id - p->first_id) & 0xffffff) < p->n_ids);
		if (l->cm.remote_id == id)
			return true;
	}
	return false;
}

static bool give_up(const struct peer *p, uint32_t tries)
{
	if (!p->storm)
		MUST(tries < WAIT_MS / AGAIN_MS);
	return p->storm && (tries >= IN_STORM || is_told(CHANNEL));
}

static bool write_to(struct peer *p, struct box_ids id, uint32_t word)
{
	struct letter l;

	for (uint32_t tries = 0; !give_up(p, tries); tries++) {
		box_write(p->b, &p->there, VRB_CM_DREQ, id, word);
		while (hear_from(p, id.local, &l)) {
			if (l.cm.kind == VRB_CM_REP)
				continue; /* repeated */
			MUST(l.cm.kind == VRB_CM_DREP && l.cm.local_id == id.remote);
			MUST(box_word(&l) == word);
			return true;
		}
	}
	return false;
}

static void ask_again(struct peer *p, uint32_t id, uint64_t service_id, uint32_t word)
{
	struct vrb_cm cm = {.kind = VRB_CM_REQ,
			    .tid = word,
			    .local_id = id,
			    .service_id = service_id,
			    .data = (const uint8_t *)&word,
			    .data_len = sizeof(word)};
	struct vrb_gsi_to to = {.dgid = p->there};
	uint8_t mad[VRB_MAD_LEN];

	MUST(vrb_cm_emit(&cm, mad));
	while (vrb_gid_is_ipv4(&p->b->ctx->dev->gid[to.sgid_index].gid) !=
	       vrb_gid_is_ipv4(&p->there))
		to.sgid_index++;
	(void)vrb_gsi_send(p->b->ctx, &to, mad);
}

/* service SERVICES: nobody has it. */
static void exchange(struct peer *p, uint32_t service)
{
	uint32_t word = ++n_words & 0xffffff, id = vrb_gsi_new_id(p->b->ctx);
	struct letter l;

	if (!p->n_ids++)
		p->first_id = id;
	for (uint32_t tries = 0;; tries++) {
		if (give_up(p, tries))
			return;
		ask_again(p, id, SERVICE + PORT + service, word);
		if (hear_from(p, id, &l))
			break;
	}
	if (l.cm.kind == VRB_CM_REJ) {
		MUST(l.cm.reason == VRB_CM_REJ_SERVICE_ID);
		MUST(p->storm || service == SERVICES);
		p->count.n_refused++;
		return;
	}
	MUST(l.cm.kind == VRB_CM_REP && service < SERVICES);
	MUST(box_word(&l) == (word << 2 | service));
	for (uint32_t i = 0; i < WRITES; i++)
		if (!write_to(p, (struct box_ids){id, l.cm.local_id}, word))
			return;
	p->count.n_exchanges++;
}

static void __attribute__((noreturn)) peer(uint32_t me, bool v6)
{
	struct vrb_gid self = address(v6, 1);
	struct peer p = {.b = open_at(&self), .there = address(v6, 2)};
	struct msg m;

	n_words = me << 20;
	p.count.order = READY;
	tell(CHANNEL, &p.count);
	for (;;) {
		m = hear(CHANNEL);
		p.count = (struct msg){.order = DONE};
		p.storm = m.order == STORM;
		for (uint32_t i = 0; p.storm ? !is_told(CHANNEL) : i < m.n; i++)
			exchange(&p, (i + me) % (SERVICES + 1));
		if (p.storm)
			(void)hear(CHANNEL); /* STOP */
		tell(CHANNEL, &p.count);
	}
}

/* ---- controller */

static const char *self_path, *version;

static void start(struct child *c, const char *kind, uint32_t number)
{
	const char *there = getenv("WIRE_THERE");
	char line[600];
	int s[2];

	snprintf(line, sizeof(line), "exec %s '%s' %s %u %s", *kind == 'm' ? there : "", self_path,
		 kind, number, version);
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s));
	c->pid = fork();
	MUST(c->pid >= 0);
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (s[1] == CHANNEL)
			MUST(!fcntl(s[1], F_SETFD, 0));
		else
			MUST(dup2(s[1], CHANNEL) == CHANNEL);
		execl("/bin/sh", "sh", "-c", line, NULL);
		_exit(127);
	}
	close(s[1]);
	c->sock = s[0];
}

/* Its word, unless it has ended or says nothing. */
static struct msg await(const struct child *c, const char *kind, uint32_t number)
{
	struct pollfd p = {.fd = c->sock, .events = POLLIN};
	struct msg m;

	if (poll(&p, 1, 3 * WAIT_MS) != 1 || recv(c->sock, &m, sizeof(m), 0) != sizeof(m)) {
		fprintf(stderr, "%s %u has ended, or hangs\n", kind, number);
		exit(1);
	}
	return m;
}

static struct child members[MEMBERS], peers[PEERS];

static struct msg all_peers(enum order order, uint32_t n)
{
	const struct msg m = {.order = order, .n = n};
	struct msg sum = {0};

	for (uint32_t i = 0; i < PEERS; i++)
		tell(peers[i].sock, &m);
	for (uint32_t i = 0; order != STORM && i < PEERS; i++) {
		struct msg one = await(&peers[i], "peer", i);

		sum.n_exchanges += one.n_exchanges;
		sum.n_refused += one.n_refused;
	}
	return sum;
}

static void check_members(bool no_stale)
{
	const struct msg ask = {.order = READY};

	for (uint32_t i = 0; i < MEMBERS; i++) {
		struct msg m;

		tell(members[i].sock, &ask);
		m = await(&members[i], "member", i);
		MUST(!no_stale || !m.n_stale);
	}
}

static void storm(uint32_t n_kills)
{
	uint32_t victim;

	(void)all_peers(STORM, 0);
	for (uint32_t i = 0; i < n_kills; i++) {
		usleep((useconds_t)(rand() % 60000));
		victim = (uint32_t)rand() % MEMBERS;
		child_kill(&members[victim]);
		usleep((useconds_t)(rand() % 30000));
		start(&members[victim], "member", victim);
		(void)await(&members[victim], "member", victim);
	}
}

static int control(uint32_t n_kills)
{
	uint64_t n_exchanges = 0, n_refused = 0;
	struct msg m;

	for (uint32_t i = 0; i < MEMBERS; i++) {
		start(&members[i], "member", i);
		(void)await(&members[i], "member", i);
	}
	for (uint32_t i = 0; i < PEERS; i++) {
		start(&peers[i], "peer", i);
		(void)await(&peers[i], "peer", i);
	}
	for (uint32_t done = 0;; done += PER_STORM) {
		m = all_peers(RUN, CALM);
		MUST(m.n_exchanges == PEERS * CALM * SERVICES / (SERVICES + 1));
		MUST(m.n_refused == PEERS * CALM / (SERVICES + 1));
		check_members(!done);
		n_exchanges += m.n_exchanges;
		if (done >= n_kills)
			break;
		storm(PER_STORM);
		m = all_peers(STOP, 0);
		n_exchanges += m.n_exchanges;
		n_refused += m.n_refused;
	}
	printf("%u kills, %llu exchanges, %llu requests of dead members or nobody refused\n",
	       n_kills, (unsigned long long)n_exchanges, (unsigned long long)n_refused);
	return 0;
}

int main(int argc, char **argv)
{
	static char path[256];
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)getpid();

	version = argc > 3 ? argv[3] : "4";
	if (argc == 4 && !strcmp(argv[1], "member"))
		member((uint32_t)atoi(argv[2]), *version == '6');
	if (argc == 4 && !strcmp(argv[1], "peer"))
		peer((uint32_t)atoi(argv[2]), *version == '6');
	MUST(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	self_path = path;
	if (!getenv("WIRE_THERE")) {
		execl(VRB_TEST_DATA "/../e2e/wire_net", "wire_net", "--build", VRB_BUILD, path,
		      argc > 1 ? argv[1] : "8", argc > 2 ? argv[2] : "1", version, NULL);
		return 77;
	}
	srand(seed);
	printf("seed %u\n", seed);
	return control(argc > 1 ? (uint32_t)atoi(argv[1]) : 8);
}
