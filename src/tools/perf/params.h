/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is measured, and how: one struct, and one table of its fields. The command's options, what
 * client and server tell each other and what a result records are all made from that
 * table. Zero means "the default of the mode" until vrb_perf_settle has filled it in.
 */
#ifndef VRB_PERF_PARAMS_H
#define VRB_PERF_PARAMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_WHY_BYTES 256
#define PERF_QPS_MAX   64u
#define PERF_SGES_MAX  30u
#define PERF_BATCH_MAX 256u
#define PERF_SIZE_MAX  (1u << 30)
#define PERF_AUTO      UINT32_MAX

enum perf_mode { PERF_LAT, PERF_BW, PERF_RATE };
enum perf_verb { PERF_SEND, PERF_WRITE, PERF_READ };
enum perf_api { PERF_RAW, PERF_LIBRARY };
enum perf_pages { PERF_ANY_PAGES, PERF_SMALL_PAGES, PERF_HUGE_PAGES };
enum perf_engine { PERF_POLL, PERF_EVENT, PERF_ADAPTIVE };

struct perf_params {
	/* both ends have the same */
	uint32_t mode, api, verb, engine;
	uint32_t size; /* of one run; a session goes through a list */
	uint32_t duration_ms, iterations, warmup;
	uint32_t qps, sges, inline_bytes, signal, batch, depth, recv_depth, recv_size;
	uint32_t mod_count, mod_us, align, mtu, pace, slow_register, pages, span;
	uint32_t recv_span;
	/* each end its own */
	uint32_t ib_port, gid_index;
	char device[64];
};

enum perf_type { PERF_NUMBER, PERF_BYTES, PERF_SECONDS, PERF_WORD };

struct perf_field {
	const char *name; /* of the option and in JSON */
	enum perf_type type;
	uint16_t offset;
	uint32_t least, most;
	bool local;	   /* the peer is not told */
	const char *words; /* of a PERF_WORD: "a|b|c" in the order of its enum */
};

extern const struct perf_field vrb_perf_fields[];
extern const unsigned vrb_perf_n_fields;

const char *vrb_perf_mode_name(uint32_t mode);

/* The index of the word in "a|b|c", or -1. */
int vrb_perf_word(const char *words, const char *word);

/* Everything undecided. */
void vrb_perf_params_init(struct perf_params *p, enum perf_mode mode);

/* Text of an option into its field; false with a sentence. */
bool vrb_perf_field_parse(const struct perf_field *f, const char *text, struct perf_params *p,
			  char why[PERF_WHY_BYTES]);

/* A list of sizes ("64", "8,1k,1m", "all") into out; how many, or 0 with a sentence. */
unsigned vrb_perf_sizes_parse(const char *text, uint32_t *out, unsigned max,
			      char why[PERF_WHY_BYTES]);

/* Fills in defaults and refuses what does not go together. */
bool vrb_perf_settle(struct perf_params *p, char why[PERF_WHY_BYTES]);

json_t *vrb_perf_params_json(const struct perf_params *p, bool with_local);
/* What is not there stays as it is; out of range or of another type: false with a sentence. */
bool vrb_perf_params_read(struct perf_params *p, const json_t *from, char why[PERF_WHY_BYTES]);

#endif
