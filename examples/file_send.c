/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	file_send                 the receiver: writes what comes to the file "received"
 *	file_send HOST FILE       the sender
 *
 * A file of any size over several queue pairs, straight from the page cache. Parts come in any
 * order: each says where it belongs. In the end the sender tells the checksum of its file (the sum
 * of all bytes, each multiplied by where it stands, so that swapped parts show).
 *
 *	verbena run ./file_send &  verbena run ./file_send 127.0.0.1 FILE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <verbena/verbena.h>

#define PORT "18602"

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
	perror(what);
	exit(1);
}

static uint64_t add(uint64_t sum, uint64_t offset, const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += (offset + i + 1) * data[i];
	return sum;
}

static void bar(uint64_t got, uint64_t total)
{
	static int shown = -1;
	int percent = total ? (int)(100 * got / total) : 100;

	if (percent != shown && isatty(2))
		fprintf(stderr, "\r[%-50.*s] %3d %%%s", percent / 2,
			"##################################################", percent,
			percent == 100 ? "\n" : "");
	shown = percent;
}

/* A part at its place; zeros need not be written: the file is long enough in the end. */
static uint64_t put(int fd, const struct vrb_event *ev, uint64_t sum)
{
	const unsigned char *data = ev->buf->data;
	uint32_t len = ev->buf->len;

	if (len && (data[0] || memcmp(data, data + 1, len - 1) != 0))
		must(pwrite(fd, data, len, (off_t)ev->offset) == (ssize_t)len, "pwrite");
	return add(sum, ev->offset, data, len);
}

/* Until the end of the file and the checksum have come, in any order. */
static int take(struct vrb_channel *ch, int fd)
{
	uint64_t sum = 0, got = 0, told = 0;
	int ended = 0, summed = 0;
	struct vrb_event ev;

	while (!ended || !summed) {
		check(vrb_poll(ch, &ev, 1, VRB_FOREVER), "poll");
		if (ev.kind == VRB_EV_FILE) {
			sum = put(fd, &ev, sum);
			bar(got += ev.buf->len, ev.total);
		} else if (ev.kind == VRB_EV_FILE_END) {
			ended = 1;
			if (ev.outcome != VRB_DONE) {
				fprintf(stderr, "not received: %s\n", vrb_outcome_str(ev.outcome));
				return 1;
			}
			must(!ftruncate(fd, (off_t)ev.total), "ftruncate");
		} else if (ev.kind == VRB_EV_MESSAGE && ev.buf->len == sizeof(told)) {
			memcpy(&told, ev.buf->data, sizeof(told));
			summed = 1;
		} else if (ev.kind == VRB_EV_BROKEN || ev.kind == VRB_EV_CLOSED) {
			fprintf(stderr, "not received: %s\n", ev.text ? ev.text : "closed");
			return 1;
		}
		if (ev.buf)
			vrb_buf_put(ev.buf);
	}
	/* The sender leaves first: else it might never hear that its last message has come. */
	while (ev.kind != VRB_EV_CLOSED && ev.kind != VRB_EV_BROKEN)
		check(vrb_poll(ch, &ev, 1, VRB_FOREVER), "poll");
	printf("received %llu bytes, checksum %016llx: %s\n", (unsigned long long)got,
	       (unsigned long long)sum, sum == told ? "right" : "WRONG");
	return sum != told;
}

static int receiver(struct vrb_domain *domain)
{
	struct vrb_listener *listener;
	struct vrb_channel *ch;
	int fd = open("received", O_RDWR | O_CREAT | O_TRUNC, 0644), status;

	must(fd >= 0, "received");
	check(vrb_listen(domain, NULL, PORT, NULL, &listener), "listen");
	check(vrb_accept(listener, VRB_FOREVER, &ch), "accept");
	status = take(ch, fd);
	(void)vrb_disconnect(ch, 1000000000);
	vrb_unlisten(listener);
	must(!close(fd), "close");
	return status;
}

static uint64_t sum_of(int fd)
{
	static unsigned char block[1 << 16];
	uint64_t sum = 0, at = 0;
	ssize_t n;

	while ((n = pread(fd, block, sizeof(block), (off_t)at)) > 0) {
		sum = add(sum, at, block, (size_t)n);
		at += (uint64_t)n;
	}
	must(n == 0, "pread");
	return sum;
}

static int sender(struct vrb_domain *domain, const char *host, const char *path)
{
	struct vrb_channel *ch;
	struct vrb_event ev;
	int fd = open(path, O_RDONLY);
	uint64_t sum;

	must(fd >= 0, path);
	check(vrb_connect(domain, host, PORT, NULL, &ch), "connect");
	check(vrb_send_file(ch, fd, 0, UINT64_MAX, NULL), "send");
	do
		check(vrb_poll(ch, &ev, 1, VRB_FOREVER), "poll");
	while (ev.kind != VRB_EV_SENT && ev.kind != VRB_EV_BROKEN);
	if (ev.kind == VRB_EV_BROKEN || ev.outcome != VRB_DONE) {
		fprintf(stderr, "%s: not sent: %s\n", path,
			ev.kind == VRB_EV_BROKEN ? ev.text : vrb_outcome_str(ev.outcome));
		(void)vrb_disconnect(ch, 1000000000);
		close(fd);
		return 1;
	}
	sum = sum_of(fd);
	printf("sent, checksum %016llx\n", (unsigned long long)sum);
	check(vrb_send(ch, &sum, sizeof(sum), NULL), "checksum");
	check(vrb_disconnect(ch, 10000000000), "disconnect");
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	struct vrb_domain *domain;
	int status;

	check(vrb_open(NULL, &domain), "open");
	status = argc < 3 ? receiver(domain) : sender(domain, argv[1], argv[2]);
	check(vrb_close(domain), "close");
	return status;
}
