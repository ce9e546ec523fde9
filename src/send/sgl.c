/* SPDX-License-Identifier: BSD-2-Clause */
#include "send/sgl.h"

bool vrb_sgl_total(const struct iovec *iov, int n, uint64_t max, uint64_t *total)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len > max - sum)
			return false;
		sum += iov[i].iov_len;
	}
	*total = sum;
	return true;
}

/* The right that is missing, as the public header numbers them. */
static uint64_t right_of(uint32_t missing)
{
	if (missing & IBV_ACCESS_REMOTE_READ)
		return 1;
	return missing & IBV_ACCESS_REMOTE_WRITE ? 2 : 4;
}

/* Bytes of the piece at addr that its region holds, 0 with the reason. */
static uint64_t look_up(struct vrb_sgl_walk *w, uint64_t addr, uint64_t len, struct vrb_report *r)
{
	uint64_t piece = (uint64_t)w->i, room;

	if (w->own && w->own[w->i].len) {
		w->hit = w->own[w->i];
	} else if (!vrb_regions_find(w->regions, addr, &w->hit)) {
		*r = (struct vrb_report){.verdict = VRB_V_SEND_NOT_REGISTERED,
					 .val = {piece, addr, len}};
		return 0;
	}
	if ((w->hit.access & w->access) != w->access) {
		*r = (struct vrb_report){
			.verdict = VRB_V_SEND_RIGHTS,
			.val = {piece, addr, right_of(w->access & ~w->hit.access)}};
		return 0;
	}
	room = w->hit.len - (addr - w->hit.base);
	if (room < len) {
		struct vrb_hit beyond = {.len = 0};

		/* Two regions may lie side by side. */
		if (!vrb_regions_search(w->regions, addr + room, &beyond)) {
			*r = (struct vrb_report){.verdict = VRB_V_SEND_RANGE,
						 .val = {piece, addr, len, len - room}};
			return 0;
		}
		return room;
	}
	return len;
}

static bool joins(const struct ibv_sge *last, uint64_t addr, uint32_t lkey, uint64_t len)
{
	return last->lkey == lkey && last->addr + last->length == addr &&
	       len <= UINT32_MAX - last->length;
}

int vrb_sgl_next(struct vrb_sgl_walk *w, struct ibv_sge *out, int max, uint64_t max_bytes,
		 struct vrb_report *r)
{
	int n = 0;

	while (w->i < w->n) {
		uint64_t addr = (uintptr_t)w->iov[w->i].iov_base + w->off;
		uint64_t left = w->iov[w->i].iov_len - w->off, len;

		if (!left) {
			w->i++;
			w->off = 0;
			continue;
		}
		if (!max_bytes)
			break;
		len = look_up(w, addr, left, r);
		if (!len)
			return -1;
		len = len < max_bytes ? len : max_bytes;
		len = len < (1u << 31) ? len : 1u << 31;
		if (n && joins(&out[n - 1], addr, w->hit.lkey, len))
			out[n - 1].length += (uint32_t)len;
		else if (n == max)
			break;
		else
			out[n++] = (struct ibv_sge){
				.addr = addr, .length = (uint32_t)len, .lkey = w->hit.lkey};
		w->off += len;
		max_bytes -= len;
	}
	return n;
}
