/* SPDX-License-Identifier: BSD-2-Clause */
/* Classic pcap in the byte order of its writer (only little-endian files, microseconds). */
#include "support/pcap.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC	     0xa1b2c3d4u
#define FILE_HEADER  24u
#define FRAME_HEADER 16u
#define LINK_ETHER   1u
#define LINK_RAW_IP  101u
#define ETHER_LEN    14u
#define SIZE_MAX_OK  (64u << 20)

static uint32_t le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

bool pcap_open(struct pcap *p, const char *path)
{
	FILE *f = fopen(path, "rb");
	long size;

	memset(p, 0, sizeof(*p));
	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < (long)FILE_HEADER ||
	    size > (long)SIZE_MAX_OK)
		goto err_file;
	rewind(f);
	p->bytes = malloc((size_t)size);
	if (!p->bytes || fread(p->bytes, 1, (size_t)size, f) != (size_t)size ||
	    le32(p->bytes) != MAGIC)
		goto err_file;
	fclose(f);
	p->len = (size_t)size;
	p->pos = FILE_HEADER;
	p->link_type = le32(p->bytes + 20);
	return true;

err_file:
	fprintf(stderr, "%s: no pcap file\n", path);
	if (f)
		fclose(f);
	pcap_close(p);
	return false;
}

bool pcap_next(struct pcap *p, struct pcap_frame *f)
{
	size_t skip = p->link_type == LINK_ETHER ? ETHER_LEN : 0, len;

	if (p->len - p->pos < FRAME_HEADER)
		return false;
	len = le32(p->bytes + p->pos + 8);
	p->pos += FRAME_HEADER;
	if (len > p->len - p->pos || len < skip)
		return false;
	f->ip = p->bytes + p->pos + skip;
	f->len = len - skip;
	p->pos += len;
	return true;
}

void pcap_close(struct pcap *p)
{
	free(p->bytes);
	memset(p, 0, sizeof(*p));
}

FILE *pcap_create(const char *path)
{
	const uint32_t head[6] = {MAGIC, 2 | 4 << 16, 0, 0, 65535, LINK_RAW_IP};
	FILE *f = fopen(path, "wb");

	if (f)
		fwrite(head, sizeof(head), 1, f);
	return f;
}

void pcap_write(FILE *f, uint64_t now_ns, const void *ip, size_t len)
{
	const uint32_t head[4] = {(uint32_t)(now_ns / 1000000000),
				  (uint32_t)(now_ns / 1000 % 1000000), (uint32_t)len,
				  (uint32_t)len};

	fwrite(head, sizeof(head), 1, f);
	fwrite(ip, len, 1, f);
}
