/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 by folding with carry-less multiplication. Bits are reflected: the first bit of the first
 * byte stands for the highest power of x. A register of 128 bits that lies d bits before another
 * counts as itself times x^d; its two halves, each times a constant modulo the polynomial, are
 * added to the other. Four registers side by side hide the multiplier's latency; wider ones (two or
 * four lanes) do the same to each lane. What is left, 128 bits, is folded to 64 and reduced
 * (Barrett).
 *
 * The constants are x^n mod P in reflected form, shifted left by one, since the product of two
 * reflected 64-bit numbers is a reflected number of 127 bits.
 */
#include "wire/crc32_x86.h"

#ifdef __x86_64__

#include <stdbool.h>

#include <cpuid.h>
#include <immintrin.h>

#define T128   __attribute__((target("pclmul,sse4.1,ssse3")))
#define T256   __attribute__((target("avx2,vpclmulqdq,pclmul")))
#define T512   __attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul")))
#define INLINE static inline __attribute__((always_inline))

/* What a register is multiplied with to stand d bits further: x^(d + 32) for the low half, x^(d -
 * 32) for the high one. */
#define FOLD_128_LO  0x1751997d0
#define FOLD_128_HI  0x0ccaa009e
#define FOLD_256_LO  0x0f1da05aa
#define FOLD_256_HI  0x15a546366
#define FOLD_512_LO  0x154442bd4
#define FOLD_512_HI  0x1c6e41596
#define FOLD_1024_LO 0x1e88ef372
#define FOLD_1024_HI 0x14a7fe880
#define FOLD_2048_LO 0x11542778a
#define FOLD_2048_HI 0x1322d1430
/* x^96, x^64, the quotient x^64 / P and P itself */
#define X_96	 0x0ccaa009e
#define X_64	 0x163cd6124
#define QUOTIENT 0x1f7011641
#define POLY	 0x1db710641

#define K(d) _mm_set_epi64x(FOLD_##d##_HI, FOLD_##d##_LO)

/* The state of one computation: dst NULL when nothing is copied. */
struct run {
	uint8_t *dst;
	const uint8_t *src;
	size_t len;
};

INLINE void advance(struct run *r, size_t n)
{
	r->src += n;
	r->len -= n;
	if (r->dst)
		r->dst += n;
}

/* ---- 128 bits */

T128 INLINE __m128i take128(struct run *r)
{
	__m128i v = _mm_loadu_si128((const __m128i *)r->src);

	if (r->dst)
		_mm_storeu_si128((__m128i *)r->dst, v);
	advance(r, sizeof(v));
	return v;
}

T128 INLINE __m128i fold128(__m128i x, __m128i k, __m128i next)
{
	return _mm_xor_si128(next, _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00),
						 _mm_clmulepi64_si128(x, k, 0x11)));
}

/*
 * The last 1 to 15 bytes: the first of x go a register further, and the rest of x moves up to make
 * room for them behind it. At least 16 bytes lie before the end, of which the last register is
 * read, and the bytes already written are written again as they are.
 */
T128 INLINE __m128i tail(__m128i x, struct run *r)
{
	static const uint8_t shuffle[48] = {
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0,    1,    2,	  3,	4,    5,    6,	  7,
		8,    9,    10,	  11,	12,   13,   14,	  15,	0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
	size_t n = r->len;
	const __m128i up = _mm_loadu_si128((const __m128i *)(shuffle + n));
	const __m128i down = _mm_loadu_si128((const __m128i *)(shuffle + 16 + n));
	__m128i last = _mm_loadu_si128((const __m128i *)(r->src + n - 16));

	if (r->dst) {
		__m128i *at = (__m128i *)(r->dst + n - 16);

		_mm_storeu_si128(at, _mm_blendv_epi8(_mm_loadu_si128(at), last, down));
	}
	last = _mm_blendv_epi8(_mm_shuffle_epi8(x, down), last, down);
	return fold128(_mm_shuffle_epi8(x, up), K(128), last);
}

T128 INLINE uint32_t reduce(__m128i x)
{
	const __m128i k = _mm_set_epi64x(X_64, X_96), b = _mm_set_epi64x(QUOTIENT, POLY);
	const __m128i low = _mm_set_epi32(0, 0, 0, -1);
	__m128i t, q;

	t = _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_srli_si128(x, 8));
	t = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(t, low), k, 0x10),
			  _mm_srli_si128(t, 4));
	q = _mm_clmulepi64_si128(_mm_and_si128(t, low), b, 0x10);
	q = _mm_clmulepi64_si128(_mm_and_si128(q, low), b, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(q, t), 1);
}

/* x stands for all before r. */
T128 INLINE uint32_t finish(__m128i x, struct run *r)
{
	while (r->len >= 16)
		x = fold128(x, K(128), take128(r));
	return reduce(r->len ? tail(x, r) : x);
}

T128 INLINE uint32_t run128(uint32_t reg, struct run r)
{
	const __m128i start = _mm_cvtsi32_si128((int)reg);
	__m128i a, b, c, d;

	if (r.len < 64)
		return finish(_mm_xor_si128(take128(&r), start), &r);
	a = _mm_xor_si128(take128(&r), start);
	b = take128(&r);
	c = take128(&r);
	d = take128(&r);
	while (r.len >= 64) {
		a = fold128(a, K(512), take128(&r));
		b = fold128(b, K(512), take128(&r));
		c = fold128(c, K(512), take128(&r));
		d = fold128(d, K(512), take128(&r));
	}
	b = fold128(a, K(128), b);
	c = fold128(b, K(128), c);
	return finish(fold128(c, K(128), d), &r);
}

/* ---- 256 bits */

T256 INLINE __m256i take256(struct run *r)
{
	__m256i v = _mm256_loadu_si256((const __m256i *)r->src);

	if (r->dst)
		_mm256_storeu_si256((__m256i *)r->dst, v);
	advance(r, sizeof(v));
	return v;
}

T256 INLINE __m256i fold256(__m256i x, __m128i k, __m256i next)
{
	const __m256i kk = _mm256_broadcastsi128_si256(k);

	return _mm256_xor_si256(next, _mm256_xor_si256(_mm256_clmulepi64_epi128(x, kk, 0x00),
						       _mm256_clmulepi64_epi128(x, kk, 0x11)));
}

T256 INLINE uint32_t finish256(__m256i x, struct run *r)
{
	while (r->len >= 32)
		x = fold256(x, K(256), take256(r));
	return finish(fold128(_mm256_castsi256_si128(x), K(128), _mm256_extracti128_si256(x, 1)),
		      r);
}

T256 INLINE uint32_t run256(uint32_t reg, struct run r)
{
	const __m256i start = _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)reg));
	__m256i a, b, c, d;

	if (r.len < 32)
		return run128(reg, r);
	a = _mm256_xor_si256(take256(&r), start);
	if (r.len < 96)
		return finish256(a, &r);
	b = take256(&r);
	c = take256(&r);
	d = take256(&r);
	while (r.len >= 128) {
		a = fold256(a, K(1024), take256(&r));
		b = fold256(b, K(1024), take256(&r));
		c = fold256(c, K(1024), take256(&r));
		d = fold256(d, K(1024), take256(&r));
	}
	b = fold256(a, K(256), b);
	c = fold256(b, K(256), c);
	return finish256(fold256(c, K(256), d), &r);
}

/* ---- 512 bits */

T512 INLINE __m512i take512(struct run *r)
{
	__m512i v = _mm512_loadu_si512(r->src);

	if (r->dst)
		_mm512_storeu_si512(r->dst, v);
	advance(r, sizeof(v));
	return v;
}

T512 INLINE __m512i fold512(__m512i x, __m128i k, __m512i next)
{
	const __m512i kk = _mm512_broadcast_i32x4(k);

	/* three-way exclusive or */
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, kk, 0x00),
					 _mm512_clmulepi64_epi128(x, kk, 0x11), next, 0x96);
}

T512 INLINE uint32_t finish512(__m512i x, struct run *r)
{
	__m256i y;

	while (r->len >= 64)
		x = fold512(x, K(512), take512(r));
	y = fold256(_mm512_castsi512_si256(x), K(256), _mm512_extracti64x4_epi64(x, 1));
	return finish256(y, r);
}

T512 INLINE uint32_t run512(uint32_t reg, struct run r)
{
	const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)reg));
	__m512i a, b, c, d;

	if (r.len < 64)
		return run256(reg, r);
	a = _mm512_xor_si512(take512(&r), start);
	if (r.len < 192)
		return finish512(a, &r);
	b = take512(&r);
	c = take512(&r);
	d = take512(&r);
	while (r.len >= 256) {
		a = fold512(a, K(2048), take512(&r));
		b = fold512(b, K(2048), take512(&r));
		c = fold512(c, K(2048), take512(&r));
		d = fold512(d, K(2048), take512(&r));
	}
	b = fold512(a, K(512), b);
	c = fold512(b, K(512), c);
	return finish512(fold512(c, K(512), d), &r);
}

/* ---- two bodies each: with and without the copy */

T128 uint32_t vrb_crc32_fold128(uint32_t reg, uint8_t *dst, const uint8_t *src, size_t len)
{
	return dst ? run128(reg, (struct run){dst, src, len})
		   : run128(reg, (struct run){NULL, src, len});
}

T256 uint32_t vrb_crc32_fold256(uint32_t reg, uint8_t *dst, const uint8_t *src, size_t len)
{
	return dst ? run256(reg, (struct run){dst, src, len})
		   : run256(reg, (struct run){NULL, src, len});
}

T512 uint32_t vrb_crc32_fold512(uint32_t reg, uint8_t *dst, const uint8_t *src, size_t len)
{
	return dst ? run512(reg, (struct run){dst, src, len})
		   : run512(reg, (struct run){NULL, src, len});
}

/* ---- what there is */

/* Which registers the system saves; only with OSXSAVE. */
static uint32_t saved_state(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

enum vrb_crc32_x86 vrb_crc32_x86_level(void)
{
	enum { YMM = 0x06, ZMM = 0xe6 };
	const uint32_t need512 = bit_AVX512F | bit_AVX512BW | bit_AVX512VL;
	uint32_t a, b, c, d, ext_b, ext_c, state;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_PCLMUL) || !(c & bit_SSE4_1))
		return VRB_CRC32_NONE;
	state = c & bit_OSXSAVE ? saved_state() : 0;
	if (!__get_cpuid_count(7, 0, &a, &ext_b, &ext_c, &d) || !(ext_c & bit_VPCLMULQDQ) ||
	    !(ext_b & bit_AVX2) || (state & YMM) != YMM)
		return VRB_CRC32_128;
	if ((ext_b & need512) != need512 || (state & ZMM) != ZMM)
		return VRB_CRC32_256;
	return VRB_CRC32_512;
}

#else

typedef int vrb_crc32_no_x86;

#endif
