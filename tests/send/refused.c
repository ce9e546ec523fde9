/* SPDX-License-Identifier: BSD-2-Clause */
/* Every reason for which libverbena refuses a call or ends a channel, by its name. */
#include "send/kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures, passes;

/* r is the negative errno, and the reason of that name. */
static void refuses(int r, int err, const char *name)
{
	if (r == -err && !strcmp(vrb_error_name(), name) && vrb_error_count(name) &&
	    strstr(vrb_error_text(), "hint")) {
		passes++;
		return;
	}
	printf("not ok: %d, wanted %d %s: %s\n", r, -err, name, vrb_error_text());
	failures++;
}

static void says(const char *text, const char *name)
{
	if (text && strstr(text, name)) {
		passes++;
		return;
	}
	printf("not ok: wanted %s: %s\n", name, text ? text : "nothing");
	failures++;
}

static struct vrb_domain *open_domain(void)
{
	struct vrb_domain *d;

	CHECK(!vrb_open(NULL, &d));
	return d;
}

static void opening(void)
{
	struct vrb_domain_options o[] = {{.device = "nosuch0"},
					 {.port = 9},
					 {.address = "203.0.113.9"},
					 {.address = "no address"},
					 {.pool_bytes = (size_t)1 << 46}};
	struct vrb_domain *d;

	refuses(vrb_open(&o[0], &d), ENODEV, "send_no_device");
	refuses(vrb_open(&o[1], &d), ENETDOWN, "send_no_port");
	refuses(vrb_open(&o[2], &d), EADDRNOTAVAIL, "send_no_gid");
	refuses(vrb_open(&o[3], &d), EINVAL, "send_address");
	refuses(vrb_open(&o[4], &d), ENOMEM, "send_pool");
}

static void memory(void)
{
	struct vrb_domain *d = open_domain();
	static char mem[8192];
	struct vrb_region *r, *other;
	struct vrb_remote remote;
	struct vrb_buf *b;
	uint32_t lkey;

	refuses(vrb_register(d, (void *)4096, 100, 0, &r), EFAULT, "send_register");
	refuses(vrb_register(d, mem, 0, 0, &r), EINVAL, "send_option");
	refuses(vrb_register(d, mem, 1, 8, &r), EINVAL, "send_option");
	CHECK(!vrb_register(d, mem, 4096, 0, &r));
	refuses(vrb_register(d, mem + 4095, 10, 0, &other), EEXIST, "send_overlap");
	refuses(vrb_export(r, &remote), EACCES, "send_rights");
	CHECK(!vrb_lkey(d, mem + 4000, 96, &lkey));
	refuses(vrb_lkey(d, mem + 4000, 97, &lkey), EFAULT, "send_range");
	refuses(vrb_lkey(d, mem + 4096, 1, &lkey), EFAULT, "send_not_registered");
	CHECK(!vrb_buf_get(d, 10, &b));
	refuses(vrb_close(d), EBUSY, "send_busy");
	says(vrb_error_text(), "4096 bytes, send_refused+0x");
	says(vrb_error_text(), " ms ago");
	CHECK(vrb_leak_report(d, 2) == 2);
	vrb_buf_put(b);
	CHECK(!vrb_unregister(r));
	CHECK(!vrb_close(d));
}

static int tcp_to(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(s >= 0 && !connect(s, (struct sockaddr *)&a, sizeof(a)));
	return s;
}

/* A hello made by hand (src/send/frame.h), so that the queue pair number can be wrong. */
static void put_hello(int s, uint32_t magic, uint32_t qpn)
{
	uint32_t w[50] = {0};

	w[0] = magic;
	w[1] = 0x42;
	w[2] = 2;    /* version */
	w[4] = 2;    /* Ethernet */
	w[6] = 1024; /* mtu */
	w[7] = 1;    /* lanes */
	w[8] = 4;    /* recv_depth */
	w[9] = 64;   /* recv_size */
	w[10] = 1;   /* reads */
	memset((char *)w + 14 * 4 + 10, 0xff, 2);
	w[17] = htonl(INADDR_LOOPBACK);
	w[18] = qpn;
	CHECK(send(s, w, sizeof(w), 0) == sizeof(w));
}

static void strangers(void)
{
	struct vrb_domain *d = open_domain();
	struct vrb_channel_options o = {.connect_ms = 100};
	struct vrb_listener *l;
	struct vrb_channel *ch;
	int s;

	CHECK(!vrb_listen(d, "127.0.0.1", "0", &o, &l));
	CHECK(vrb_accept(l, 10 * MS, &ch) == -ETIMEDOUT);
	s = tcp_to(vrb_listener_port(l));
	put_hello(s, 0x20544547, 0x100);
	refuses(vrb_accept(l, S, &ch), EPROTO, "send_stranger");
	close(s);
	s = tcp_to(vrb_listener_port(l));
	close(s);
	refuses(vrb_accept(l, S, &ch), ECONNRESET, "send_exchange");
	s = tcp_to(vrb_listener_port(l)); /* says nothing */
	refuses(vrb_accept(l, S, &ch), ETIMEDOUT, "send_exchange");
	close(s);
	s = tcp_to(vrb_listener_port(l));
	put_hello(s, 0x56524542, 0x1000000);
	refuses(vrb_accept(l, S, &ch), EINVAL, "send_modify");
	says(vrb_error_text(), "dest_qp_num 0x1000000");
	close(s);
	vrb_unlisten(l);
	CHECK(!vrb_close(d));
}

static void connecting(void)
{
	struct vrb_domain *d = open_domain();
	struct vrb_channel_options o = {.qps = 99};
	struct vrb_listener *l, *l2;
	struct vrb_channel *ch;
	struct rlimit was, low;
	char port[16];
	int fd;

	refuses(vrb_connect(d, "127.0.0.1", "1", &o, &ch), EINVAL, "send_option");
	says(vrb_error_text(), "qps");
	o = (struct vrb_channel_options){.moderate_count = 8}; /* for ever? */
	refuses(vrb_connect(d, "127.0.0.1", "1", &o, &ch), EINVAL, "send_option");
	says(vrb_error_text(), "moderate_us");
	refuses(vrb_connect(d, "127.0.0.1", "nosuchservice", NULL, &ch), EINVAL, "send_address");
	refuses(vrb_connect(d, "127.0.0.1", "1", NULL, &ch), ECONNREFUSED, "send_connect");
	CHECK(!vrb_listen(d, "127.0.0.1", "0", NULL, &l));
	snprintf(port, sizeof(port), "%d", vrb_listener_port(l));
	refuses(vrb_listen(d, "127.0.0.1", port, NULL, &l2), EADDRINUSE, "send_listen");
	/* One descriptor for TCP, none for the queue pair's. */
	CHECK(!getrlimit(RLIMIT_NOFILE, &was));
	fd = dup(0);
	close(fd);
	low = (struct rlimit){.rlim_cur = (rlim_t)fd + 1, .rlim_max = was.rlim_max};
	CHECK(!setrlimit(RLIMIT_NOFILE, &low));
	refuses(vrb_connect(d, "127.0.0.1", port, NULL, &ch), EMFILE, "send_create");
	CHECK(!setrlimit(RLIMIT_NOFILE, &was));
	vrb_unlisten(l);
	CHECK(!vrb_close(d));
}

/* The server's pool is too small for its receives; the client is told. */
static void peer_refuses(void)
{
	struct vrb_channel_options o = {.recv_depth = 16300, .qps = 1};
	struct vrb_domain *d;
	struct vrb_listener *l;
	struct vrb_channel *ch;
	char port[16];
	int pid, status, fds[2];

	CHECK(!pipe(fds));
	pid = fork();
	if (!pid) {
		CHECK(read(fds[0], port, sizeof(port)) > 0);
		d = open_domain();
		refuses(vrb_connect(d, "127.0.0.1", port, NULL, &ch), ECONNREFUSED,
			"send_peer_refused");
		CHECK(!vrb_close(d));
		exit(failures);
	}
	d = open_domain();
	CHECK(!vrb_listen(d, "127.0.0.1", "0", &o, &l));
	snprintf(port, sizeof(port), "%d", vrb_listener_port(l));
	CHECK(write(fds[1], port, sizeof(port)) > 0);
	refuses(vrb_accept(l, WAIT, &ch), ENOMEM, "send_pool");
	CHECK(waitpid(pid, &status, 0) == pid);
	failures += status != 0;
	vrb_unlisten(l);
	CHECK(!vrb_close(d));
}

/* ---- on a channel */

static struct vrb_event end_of(struct end *e)
{
	struct vrb_event ev;

	do {
		ev = next_event(e);
		if (ev.kind == VRB_EV_MESSAGE)
			vrb_buf_put(ev.buf);
	} while (ev.kind != VRB_EV_BROKEN && ev.kind != VRB_EV_CLOSED);
	return ev;
}

static void drop(struct end *e)
{
	(void)vrb_disconnect(e->ch, 0);
	e->ch = NULL;
}

static void idle(struct end *e)
{
	struct vrb_event ev = end_of(e);

	CHECK(ev.kind == VRB_EV_CLOSED);
	refuses(vrb_send(e->ch, "x", 1, NULL), ENOTCONN, "send_ended");
	refuses(vrb_poll(e->ch, &ev, 1, 0), ENOTCONN, "send_ended");
}

static void wrong_calls(struct end *e)
{
	char outside[64], *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vrb_remote remote = {.addr = 4096, .len = 64};
	struct vrb_send_options at_1 = {.remote_offset = 1};
	struct iovec iov = {outside, 64};
	struct vrb_region *r;
	struct vrb_buf *b;

	refuses(vrb_write(e->ch, &iov, 1, &remote, NULL), EFAULT, "send_not_registered");
	refuses(vrb_write(e->ch, &iov, 1, &remote, &at_1), ERANGE, "send_remote_range");
	CHECK(!vrb_register(e->d, map, 4000, VRB_READ_ONLY, &r));
	iov.iov_base = map;
	refuses(vrb_read(e->ch, &iov, 1, &remote, NULL), EFAULT, "send_rights");
	iov.iov_base = map + 3999;
	refuses(vrb_write(e->ch, &iov, 1, &remote, NULL), EFAULT, "send_range");
	iov.iov_len = 5000;
	iov.iov_base = outside;
	refuses(vrb_sendv(e->ch, &iov, 1, NULL), EMSGSIZE, "send_too_long");
	CHECK(!vrb_buf_get(e->d, 4096, &b));
	b->len = b->cap + 1;
	refuses(vrb_send_buf(e->ch, b, NULL), EINVAL, "send_buf");
	b->len = 4096;
	CHECK(!vrb_send_buf(e->ch, b, NULL));
	refuses(vrb_send_buf(e->ch, b, NULL), EINVAL, "send_buf");
	refuses(vrb_set_engine(e->ch, (enum vrb_engine)9), EINVAL, "send_option");
	CHECK(!vrb_unregister(r));
	munmap(map, 8192);
}

/* The client writes where nothing is exported; the server hears that its peer broke. */
static void hears(struct end *e)
{
	const char *text = end_of(e).text;

	/* Its adapter may say it first: a request reached where it must not. */
	says(text, strstr(text, "event 3") ? "send_qp_event" : "send_peer_broke");
	drop(e);
}

static void wrong_key(struct end *e)
{
	struct vrb_remote remote = {.addr = 4096, .len = 64, .rkey = 0x12345};
	struct vrb_event ev;
	struct vrb_buf *b;
	struct iovec iov;

	CHECK(!vrb_buf_get(e->d, 64, &b));
	iov = (struct iovec){b->data, 64};
	CHECK(!vrb_write(e->ch, &iov, 1, &remote, NULL));
	ev = want_event(e, VRB_EV_SENT);
	CHECK(ev.outcome == VRB_FAILED);
	says(end_of(e).text, "send_failed");
	drop(e);
	vrb_buf_put(b);
}

static void killed(struct end *e)
{
	CHECK(!kill(child_pid, SIGKILL));
	says(end_of(e).text, "send_peer_gone");
	drop(e);
}

static void stopped(struct end *e)
{
	CHECK(!kill(child_pid, SIGSTOP));
	says(end_of(e).text, "send_peer_mute");
	drop(e);
	kill(child_pid, SIGKILL);
}

static void wait_long(struct end *e)
{
	(void)e;
	sleep(20);
}

/* refused [wrong_key]: all of them, or this one, which is also to hold when the refusal is late. */
int main(int argc, char **argv)
{
	const struct vrb_channel_options lively = {.keepalive_ms = 100};
	const struct vrb_domain_options closed = {.no_remote_read = true};

	if (argc > 1 && !strcmp(argv[1], "wrong_key")) {
		run_pair(&(struct pair){0}, hears, wrong_key);
		return failures != 0;
	}
	peer_refuses();
	run_pair(&(struct pair){.domain = &closed}, idle, wrong_calls);
	run_pair(&(struct pair){0}, hears, wrong_key);
	run_pair(&(struct pair){0}, killed, wait_long);
	run_pair(&(struct pair){.server = &lively}, stopped, wait_long);
	opening();
	memory();
	strangers();
	connecting();
	printf("%d passed, %d failed, 0 skipped\n", passes, failures);
	return failures != 0;
}
