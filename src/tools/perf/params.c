/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of parameters, and how each is read and written. See params.h. */
#include "tools/perf/params.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field)    (uint16_t) offsetof(struct perf_params, field)
#define MODES	     "lat|bw|rate"
#define ALL_SIZES    21 /* 1 B to 1 MiB */
#define HOUR_MS	     3600000u
#define SECONDS_MOST 3600.0

/* clang-format off */
const struct perf_field vrb_perf_fields[] = {
	{"api",           PERF_WORD,    AT(api),           0, 1,              false, "raw|send"},
	{"verb",          PERF_WORD,    AT(verb),          0, 2,              false, "send|write|read"},
	{"engine",        PERF_WORD,    AT(engine),        0, 2,              false, "poll|event|adaptive"},
	{"seconds",       PERF_SECONDS, AT(duration_ms),   1, HOUR_MS,        false, NULL},
	{"iterations",    PERF_NUMBER,  AT(iterations),    1, UINT32_MAX - 1, false, NULL},
	{"warmup",        PERF_NUMBER,  AT(warmup),        0, 100000000,      false, NULL},
	{"qps",           PERF_NUMBER,  AT(qps),           1, PERF_QPS_MAX,   false, NULL},
	{"sges",          PERF_NUMBER,  AT(sges),          1, PERF_SGES_MAX,  false, NULL},
	{"inline",        PERF_BYTES,   AT(inline_bytes),  0, 4096,           false, NULL},
	{"signal",        PERF_NUMBER,  AT(signal),        1, 16384,          false, NULL},
	{"batch",         PERF_NUMBER,  AT(batch),         1, PERF_BATCH_MAX, false, NULL},
	{"depth",         PERF_NUMBER,  AT(depth),         1, 16384,          false, NULL},
	{"recv-depth",    PERF_NUMBER,  AT(recv_depth),    8, 16384,          false, NULL},
	{"recv-size",     PERF_BYTES,   AT(recv_size),    64, 1u << 20,       false, NULL},
	{"mod-count",     PERF_NUMBER,  AT(mod_count),     1, 65535,          false, NULL},
	{"mod-us",        PERF_NUMBER,  AT(mod_us),        1, 65535,          false, NULL},
	{"align",         PERF_BYTES,   AT(align),         1, 4096,           false, NULL},
	{"mtu",           PERF_NUMBER,  AT(mtu),         256, 4096,           false, NULL},
	{"pace",          PERF_NUMBER,  AT(pace),          1, 100000000,      false, NULL},
	{"register-each", PERF_NUMBER,  AT(slow_register), 0, 1,              false, NULL},
	{"pages",         PERF_WORD,    AT(pages),         0, 2,              false, "any|small|huge"},
	{"span",          PERF_BYTES,   AT(span),          0, 1u << 30,       false, NULL},
	{"recv-span",     PERF_BYTES,   AT(recv_span),     0, 1u << 30,       false, NULL},
	{"ib-port",       PERF_NUMBER,  AT(ib_port),       1, 255,            true,  NULL},
	{"gid-index",     PERF_NUMBER,  AT(gid_index),     0, 65535,          true,  NULL},
};
/* clang-format on */
const unsigned vrb_perf_n_fields = sizeof(vrb_perf_fields) / sizeof(vrb_perf_fields[0]);

static bool refuse(char why[PERF_WHY_BYTES], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool refuse(char why[PERF_WHY_BYTES], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, PERF_WHY_BYTES, fmt, ap);
	va_end(ap);
	return false;
}

static uint32_t *field_at(const struct perf_field *f, struct perf_params *p)
{
	return (uint32_t *)(void *)((char *)p + f->offset);
}

static uint32_t field_value(const struct perf_field *f, const struct perf_params *p)
{
	return *(const uint32_t *)(const void *)((const char *)p + f->offset);
}

/* The word number `at` of "a|b|c". */
static void word_at(const char *words, uint32_t at, char *out, size_t size)
{
	for (; at && *words; words++)
		at -= *words == '|';
	snprintf(out, size, "%.*s", (int)strcspn(words, "|"), words);
}

int vrb_perf_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (int i = 0; *words; i++) {
		size_t n = strcspn(words, "|");

		if (n == len && !memcmp(words, word, n))
			return i;
		words += n + (words[n] == '|');
	}
	return -1;
}

const char *vrb_perf_mode_name(uint32_t mode)
{
	static const char *const name[] = {"lat", "bw", "rate"};

	return mode < 3 ? name[mode] : "?";
}

void vrb_perf_params_init(struct perf_params *p, enum perf_mode mode)
{
	memset(p, 0, sizeof(*p));
	p->mode = mode;
	p->inline_bytes = PERF_AUTO;
	p->gid_index = PERF_AUTO;
	p->warmup = PERF_AUTO;
}

/* A whole number, with k, m or g behind it where bytes are counted. */
static bool parse_number(const char *text, bool with_unit, uint64_t *out)
{
	static const char unit[] = "kmg";
	char *end;
	const char *u;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (!*end)
		return true;
	u = with_unit ? strchr(unit, tolower((unsigned char)*end)) : NULL;
	if (!u || !*u || end[1] || *out > UINT32_MAX)
		return false;
	*out <<= 10 * (u - unit + 1);
	return true;
}

static bool parse_seconds(const char *text, uint64_t *ms)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end || !isfinite(s) || s < 0.001 || s > SECONDS_MOST)
		return false;
	*ms = (uint64_t)(s * 1000 + 0.5);
	return true;
}

bool vrb_perf_field_parse(const struct perf_field *f, const char *text, struct perf_params *p,
			  char why[PERF_WHY_BYTES])
{
	uint64_t v = 0;
	int word;

	if (f->type == PERF_WORD) {
		word = vrb_perf_word(f->words, text);
		if (word < 0)
			return refuse(why, "--%s takes one of %s, not `%s`", f->name, f->words,
				      text);
		*field_at(f, p) = (uint32_t)word;
		return true;
	}
	if (f->type == PERF_SECONDS) {
		if (!parse_seconds(text, &v))
			return refuse(why, "--%s takes a time from 0.001 to %.0f, not `%s`",
				      f->name, SECONDS_MOST, text);
	} else if (!parse_number(text, f->type == PERF_BYTES, &v) || v < f->least || v > f->most) {
		return refuse(why, "--%s takes a whole number from %u to %u, not `%s`", f->name,
			      f->least, f->most, text);
	}
	*field_at(f, p) = (uint32_t)v;
	return true;
}

unsigned vrb_perf_sizes_parse(const char *text, uint32_t *out, unsigned max,
			      char why[PERF_WHY_BYTES])
{
	unsigned n = 0;

	if (!strcmp(text, "all")) {
		for (; n < ALL_SIZES && n < max; n++)
			out[n] = 1u << n;
		return n;
	}
	for (;;) {
		size_t len = strcspn(text, ",");
		char one[32];
		uint64_t v;

		snprintf(one, sizeof(one), "%.*s", (int)len, text);
		if (len >= sizeof(one) || !parse_number(one, true, &v) || !v || v > PERF_SIZE_MAX) {
			refuse(why,
			       "--size takes bytes from 1 to 1g, a list of them, or all; not `%s`",
			       one);
			return 0;
		}
		if (n == max) {
			refuse(why, "--size takes at most %u sizes", max);
			return 0;
		}
		out[n++] = (uint32_t)v;
		if (!text[len])
			return n;
		text += len + 1;
	}
}

json_t *vrb_perf_params_json(const struct perf_params *p, bool with_local)
{
	json_t *o = json_object();
	char word[32];

	json_object_set_new(o, "mode", json_string(vrb_perf_mode_name(p->mode)));
	json_object_set_new(o, "size", json_integer(p->size));
	if (with_local)
		json_object_set_new(o, "device", json_string(p->device));
	for (unsigned i = 0; i < vrb_perf_n_fields; i++) {
		const struct perf_field *f = &vrb_perf_fields[i];
		uint32_t v = field_value(f, p);

		if (f->local && !with_local)
			continue;
		if (f->type == PERF_WORD) {
			word_at(f->words, v, word, sizeof(word));
			json_object_set_new(o, f->name, json_string(word));
		} else if (f->type == PERF_SECONDS) {
			json_object_set_new(o, f->name, json_real(v / 1000.0));
		} else {
			json_object_set_new(o, f->name,
					    v == PERF_AUTO ? json_null() : json_integer(v));
		}
	}
	return o;
}

static bool read_field(struct perf_params *p, const struct perf_field *f, const json_t *v,
		       char why[PERF_WHY_BYTES])
{
	double n = json_number_value(v);
	int word;

	if (json_is_null(v))
		return true;
	if (f->type == PERF_WORD) {
		word = json_is_string(v) ? vrb_perf_word(f->words, json_string_value(v)) : -1;
		if (word < 0)
			return refuse(why, "the peer's %s is none of %s", f->name, f->words);
		*field_at(f, p) = (uint32_t)word;
		return true;
	}
	if (f->type == PERF_SECONDS)
		n = n * 1000 + 0.5;
	if (!json_is_number(v) || n < 0 || n >= f->most + 1.0)
		return refuse(why, "the peer's %s is no number from 0 to %u", f->name, f->most);
	*field_at(f, p) = (uint32_t)n;
	return true;
}

bool vrb_perf_params_read(struct perf_params *p, const json_t *from, char why[PERF_WHY_BYTES])
{
	const char *mode = json_string_value(json_object_get(from, "mode"));
	json_int_t size = json_integer_value(json_object_get(from, "size"));
	int word = mode ? vrb_perf_word(MODES, mode) : -1;

	if (word < 0)
		return refuse(why, "the peer asks for no mode of %s", MODES);
	if (size < 1 || size > PERF_SIZE_MAX)
		return refuse(why, "the peer asks for messages of %lld bytes", (long long)size);
	p->mode = (uint32_t)word;
	p->size = (uint32_t)size;
	for (unsigned i = 0; i < vrb_perf_n_fields; i++) {
		const struct perf_field *f = &vrb_perf_fields[i];
		const json_t *v = json_object_get(from, f->name);

		if (v && !f->local && !read_field(p, f, v, why))
			return false;
	}
	return true;
}

static void set_default(uint32_t *v, uint32_t to)
{
	if (!*v)
		*v = to;
}

static void fill_in(struct perf_params *p)
{
	bool rate = p->mode == PERF_RATE;
	uint32_t signal, most, recv = p->size;

	set_default(&p->qps, 1);
	set_default(&p->sges, 1);
	set_default(&p->batch, rate ? 16 : 1);
	set_default(&p->depth, rate ? 1024 : 128);
	if (p->batch > p->depth / 2 && p->depth == 128)
		p->depth = 2 * p->batch;
	signal = p->mode == PERF_BW ? 16 : 64;
	most = p->batch <= p->depth ? p->depth - p->batch + 1 : 1;
	set_default(&p->signal, signal < most ? signal : most);
	if (p->mode == PERF_LAT && p->verb == PERF_READ)
		p->signal = 1;
	set_default(&p->recv_depth, rate ? 4096 : p->api == PERF_LIBRARY ? 128 : 512);
	/* what is READ needs no large receives */
	set_default(&p->recv_size, recv < 4096 || recv > 65536 ? 4096 : recv);
	set_default(&p->align, 4096);
	if (p->mod_us)
		set_default(&p->mod_count, 65535);
	if (p->mod_count)
		set_default(&p->mod_us, 16);
	if (p->warmup == PERF_AUTO)
		p->warmup = p->mode == PERF_LAT ? 1000 : 2 * p->depth;
	if (!p->iterations)
		set_default(&p->duration_ms, 1000);
	else if (!p->duration_ms)
		p->duration_ms = HOUR_MS;
}

static bool check_library(const struct perf_params *p, char why[PERF_WHY_BYTES])
{
	if (p->qps > 16)
		return refuse(why, "--api send has at most 16 queue pairs");
	if (p->mod_count)
		return refuse(why, "--mod-count and --mod-us go with --api raw");
	if (p->gid_index != PERF_AUTO)
		return refuse(why,
			      "--gid-index goes with --api raw; libverbena chooses by address");
	if (p->pages || p->span || p->recv_span)
		return refuse(why, "--pages, --span and --recv-span go with --api raw");
	if (p->mode == PERF_LAT && p->verb == PERF_WRITE)
		return refuse(why, "lat --verb write looks at memory, which goes with --api raw");
	return true;
}

bool vrb_perf_settle(struct perf_params *p, char why[PERF_WHY_BYTES])
{
	bool lat = p->mode == PERF_LAT;

	if (p->signal && p->depth && p->signal > p->depth)
		return refuse(why,
			      "--signal %u leaves no signaled request among --depth %u: the "
			      "send queue would never be free again",
			      p->signal, p->depth);
	fill_in(p);
	if (p->sges > p->size)
		return refuse(why, "%u bytes cannot be cut into --sges %u pieces", p->size,
			      p->sges);
	if (p->batch > p->depth)
		return refuse(why, "--batch %u does not fit into --depth %u", p->batch, p->depth);
	if (p->signal + p->batch - 1 > p->depth)
		return refuse(why,
			      "with --signal %u and --batch %u a queue of --depth %u could fill "
			      "up without a signaled request in it, and never be free again",
			      p->signal, p->batch, p->depth);
	if (p->verb == PERF_SEND && p->api == PERF_RAW && p->batch > p->recv_depth / 2)
		return refuse(why,
			      "--batch %u needs a --recv-depth of twice as many: credit comes "
			      "back in parts",
			      p->batch);
	if (lat && p->batch > 1)
		return refuse(why, "--batch goes with bw and rate: lat has one message under way");
	if (p->mod_count && p->engine == PERF_POLL)
		return refuse(why,
			      "CQ moderation delays events: it needs --engine event or adaptive");
	if (lat && p->verb == PERF_WRITE && p->engine != PERF_POLL)
		return refuse(why, "lat --verb write looks at memory and cannot sleep; it needs "
				   "--engine poll");
	if (p->slow_register && !(lat && p->verb == PERF_SEND))
		return refuse(why, "--register-each goes with lat --verb send");
	if (p->span && (lat || p->verb == PERF_READ || p->sges > 1 || p->span < p->size))
		return refuse(why, "--span takes no less than a message, and goes with bw or rate "
				   "of SEND or WRITE in one piece");
	if (p->recv_span && (p->verb != PERF_SEND || p->recv_span < p->size))
		return refuse(why, "--recv-span takes no less than a message, and goes with SEND");
	if (p->mtu & (p->mtu - 1))
		return refuse(why, "--mtu takes 256, 512, 1024, 2048 or 4096, not %u", p->mtu);
	return p->api != PERF_LIBRARY || check_library(p, why);
}
