/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What meet.c (finding each other: names, sockets, messages), peer.c and peer_end.c (the channel
 * that comes of it) share. Everything runs under the engine's lock. Whoever is at the other end of
 * a socket is of the same user, and for the rest believed in nothing.
 */
#ifndef VRB_HCA_PEER_H
#define VRB_HCA_PEER_H

#include "hca/engine.h"

#define VRB_HELLO_FDS	4   /* ring, bell memory, bell event, export */
#define VRB_WELCOME_FDS 3   /* bell memory, bell event, export */
#define VRB_MEET_BODY	400 /* bytes behind the hello: a packet to QP 1 and where it came from */

/* One message. Descriptors belong to the holder of the message; who keeps one puts -1 in its place.
 */
struct vrb_meet_msg {
	struct vrb_meet_hello hello;
	int fd[VRB_HELLO_FDS];
	uint32_t n_fds;
	uint32_t n_body; /* of VRB_MEET_MAD */
	uint8_t body[VRB_MEET_BODY];
};

enum vrb_meet_got { VRB_MEET_NOTHING, VRB_MEET_END, VRB_MEET_MSG };

struct sockaddr_un;

/* slots.c */
/* Binds a free slot's name; *listen_fd is the caller's in any case when it is set. */
int vrb_slot_claim(uint32_t *slot, int *listen_fd);
/* The address of a slot's name, and its length. */
uint32_t vrb_slot_name(struct sockaddr_un *sa, uint32_t slot);
/* A process of another user has it, and none of ours. */
bool vrb_slot_is_of_others(uint32_t slot);

/* meet.c */
/* END: end of file, or what no Verbena of this version sends. */
enum vrb_meet_got vrb_meet_recv(int sock, struct vrb_meet_msg *m);
void vrb_meet_drop(struct vrb_meet_msg *m); /* closes the descriptors that nobody has kept */
int vrb_meet_send(int sock, const struct vrb_meet_hello *hello, const int *fds, uint32_t n_fds);
/* A connection to the owner of a slot, of our user; -ECONNREFUSED: nobody owns it. */
int vrb_meet_connect(uint32_t slot);
/* A connection to who has bound the name, of our user; -ECONNREFUSED: nobody. Never waits. */
int vrb_meet_call(const struct sockaddr_un *sa, uint32_t len);
int vrb_meet_pid(int sock); /* who is at the other end, as the kernel says; 0: not to be seen */
bool vrb_meet_hung_up(int sock);
int vrb_meet_watch(struct vrb_engine *e, uint32_t what, int fd);
/* events: EPOLLIN and the like; 0 with EPOLLONESHOT watches nothing until it is set anew */
int vrb_meet_watch_for(struct vrb_engine *e, int op, uint32_t what, int fd, uint32_t events);
int vrb_meet_rewatch(struct vrb_engine *e, uint32_t what, int fd);
void vrb_meet_unwatch(struct vrb_engine *e, int *fd); /* and closes it */
/* Somebody connects to our slot's name (VRB_EV_LISTEN), or to that of a claim (VRB_EV_CLAIM). */
void vrb_meet_on_listen(struct vrb_engine *e, uint32_t what, int listen_fd);
void vrb_meet_on_accepted(struct vrb_engine *e, int sock);

/* peer.c: a ring towards us was announced on sock. False: refused, the caller closes sock. */
bool vrb_peer_attach(struct vrb_engine *e, int sock, struct vrb_meet_msg *m);

/* peer_end.c: the process behind p has ended. */
void vrb_peer_gone(struct vrb_engine *e, struct vrb_peer *p);

static inline void vrb_peer_tx_reset(struct vrb_shm_tx *tx)
{
	tx->head = tx->used = tx->data_head = tx->data_used = 0;
}

static inline void vrb_peer_rx_reset(struct vrb_shm_rx *rx)
{
	vrb_poke(&rx->tail, 0);
	rx->published = rx->data_tail = rx->data_published = 0;
}

#endif
