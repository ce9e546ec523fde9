/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes on the TCP connection that made the channel. It stays open to tell what the queue pairs
 * cannot: a peer that is gone (end of file, reset, or the kernel's own probes unanswered), one that
 * is there but does not poll (asked, no answer), one that leaves in order, one that has failed.
 */
#include <errno.h>
#include <sys/socket.h>

#include "send/channel.h"
#include "send/fail.h"

int vrb_note_send(struct vrb_channel *ch, enum vrb_note_kind kind)
{
	struct vrb_note n = {.kind = htole32(kind)};

	for (uint32_t i = 0; i < ch->n_lanes; i++)
		n.count[i] = htole32(ch->lane[i]->sent_count);
	/* Notes are rare and small: where one does not fit, the peer has not looked for minutes. */
	return send(ch->tcp, &n, sizeof(n), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(n) ? 0 : -errno;
}

int vrb_lane_note(const struct vrb_lane *l, enum vrb_note_kind kind)
{
	struct vrb_note n = {.kind = htole32(kind), .lane = htole32(l->index)};

	n.count[0] = htole32(l->qp ? l->qp->qp_num : 0);
	n.count[1] = htole32(l->psn);
	return send(l->ch->tcp, &n, sizeof(n), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(n) ? 0
											 : -errno;
}

static void on_note(struct vrb_channel *ch, const struct vrb_note *n)
{
	ch->heard = true;
	switch ((enum vrb_note_kind)le32toh(n->kind)) {
	case VRB_NOTE_PING:
		(void)vrb_note_send(ch, VRB_NOTE_PONG);
		break;
	case VRB_NOTE_BYE:
		ch->peer_bye = true;
		for (uint32_t i = 0; i < ch->n_lanes; i++)
			ch->bye_count[i] = le32toh(n->count[i]);
		break;
	case VRB_NOTE_BROKEN:
		ch->peer_broke = true; /* soon: our adapter may know more about it */
		break;
	case VRB_NOTE_LANE_FAILED:
	case VRB_NOTE_LANE_OVER:
	case VRB_NOTE_LANE_NEW:
	case VRB_NOTE_LANE_READY:
		vrb_repair_note(ch, le32toh(n->kind), n);
		break;
	case VRB_NOTE_READY:
	case VRB_NOTE_PONG:
		break;
	default:
		vrb_channel_break(ch, VRB_V_SEND_PROTOCOL, le32toh(n->kind), sizeof(*n), 0);
		break;
	}
}

void vrb_notes_read(struct vrb_channel *ch)
{
	while (ch->state == VRB_UP) {
		ssize_t r = recv(ch->tcp, (char *)&ch->note_in + ch->note_got,
				 sizeof(ch->note_in) - ch->note_got, MSG_DONTWAIT);

		if (r < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (r <= 0) {
			if (!ch->peer_bye && !ch->peer_broke)
				vrb_channel_break(ch, VRB_V_SEND_PEER_GONE,
						  r < 0 ? (uint64_t)errno : 0, 0, 0);
			return;
		}
		ch->note_got += (uint32_t)r;
		if (ch->note_got < sizeof(ch->note_in))
			continue;
		ch->note_got = 0;
		on_note(ch, &ch->note_in);
	}
}

void vrb_keepalive(struct vrb_channel *ch, uint64_t now)
{
	uint64_t after = (uint64_t)ch->opt.keepalive_ms * VRB_NS_PER_MS;

	if (ch->heard || !ch->heard_ns)
		ch->heard_ns = now;
	ch->heard = false;
	if (!after || ch->state != VRB_UP || ch->peer_bye)
		return;
	if (now - ch->heard_ns >= 2 * after)
		vrb_channel_break(ch, VRB_V_SEND_PEER_MUTE, (now - ch->heard_ns) / VRB_NS_PER_MS, 0,
				  0);
	else if (now - ch->heard_ns >= after && now - ch->asked_ns >= after) {
		ch->asked_ns = now;
		(void)vrb_note_send(ch, VRB_NOTE_PING);
	}
}
