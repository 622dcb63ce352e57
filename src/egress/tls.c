#include "egress/tls_openssl.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include "base/portable.h"
#include "egress/pump.h"

enum {
	RECORD = 16 << 10,   /* the most that one record holds */
	TAKEN = 32 << 10,    /* from the socket in one read: with a record begun before, it decrypts to less than the scratch holds */
	KEPT = 24 << 10,     /* of memory for what goes out; more is there while much goes out, and goes back with the next little */
};

_Static_assert(TAKEN + RECORD < KR_SCRATCH_BYTES, "what one read decrypts fits the scratch");

struct kr_tls *
kr_tls_new(SSL_CTX *context, const struct kr_tls_host *bound)
{
	struct kr_tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return NULL;
	*tls = (struct kr_tls){ .ssl = SSL_new(context), .in = BIO_new(BIO_s_mem()), .out = BIO_new(BIO_s_mem()), .bound = bound,
		.end = KR_READ_SOME };
	if (!tls->ssl || !tls->in || !tls->out || SSL_set_app_data(tls->ssl, tls) != 1) {
		BIO_free(tls->in);
		BIO_free(tls->out);
		SSL_free(tls->ssl);
		free(tls);
		return NULL;
	}
	(void)BIO_set_mem_eof_return(tls->in, -1);
	SSL_set_bio(tls->ssl, tls->in, tls->out);
	return tls;
}

void
kr_tls_free(struct kr_tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	free(tls);
}

/* Sends, or holds, what the engine wants to go out. */
static bool
flush(struct kr_side *side)
{
	struct kr_tls *tls = side->tls;
	BUF_MEM *memory = NULL;
	char *bytes = NULL;
	long n = BIO_get_mem_data(tls->out, &bytes);
	struct iovec part = { bytes, (size_t)n };
	bool good;
	BIO *fresh;

	if (n <= 0)
		return true;
	good = kr_side_put(side, &part, 1);
	(void)BIO_reset(tls->out);
	(void)BIO_get_mem_ptr(tls->out, &memory);
	if (memory && memory->max > KEPT && n <= RECORD && (fresh = BIO_new(BIO_s_mem()))) {
		SSL_set0_wbio(tls->ssl, fresh); /* the old one is freed */
		tls->out = fresh;
	}
	return good;
}

/* Into the engine, through the scratch. KR_READ_SOME, or what keeps it from that. */
static enum kr_read
feed(struct kr_egress *egress, struct kr_side *side)
{
	ssize_t got = recv(side->watch.fd, egress->scratch, TAKEN, MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? KR_READ_NONE : KR_READ_ERROR;
	if (got == 0)
		return KR_READ_END;
	return BIO_write(side->tls->in, egress->scratch, (int)got) == got ? KR_READ_SOME : KR_READ_ERROR;
}

enum kr_handshake
kr_tls_handshake(struct kr_egress *egress, struct kr_side *side)
{
	struct kr_tls *tls = side->tls;
	enum kr_read fed = feed(egress, side);
	int done;

	ERR_clear_error();
	done = SSL_do_handshake(tls->ssl);
	if (done != 1)
		done = SSL_get_error(tls->ssl, done) == SSL_ERROR_WANT_READ && (fed == KR_READ_SOME || fed == KR_READ_NONE) ? 0 : -1;
	if (!flush(side))
		done = -1;
	return done == 1 ? KR_HANDSHAKE_DONE : done == 0 ? KR_HANDSHAKE_MORE : KR_HANDSHAKE_BAD;
}

/* Decrypts all that is there. */
static size_t
decrypt(struct kr_egress *egress, struct kr_tls *tls)
{
	size_t n = 0;
	int got = 1;

	ERR_clear_error();
	while (n < sizeof(egress->scratch) && got > 0) {
		got = SSL_read(tls->ssl, egress->scratch + n, (int)(sizeof(egress->scratch) - n));
		if (got > 0)
			n += (size_t)got;
	}
	if (got <= 0)
		switch (SSL_get_error(tls->ssl, got)) {
		case SSL_ERROR_WANT_READ:
			break;
		case SSL_ERROR_ZERO_RETURN:
			tls->end = KR_READ_END;
			break;
		default:
			tls->end = KR_READ_ERROR;
		}
	return n;
}

enum kr_read
kr_tls_read(struct kr_egress *egress, struct kr_side *side, size_t *n)
{
	struct kr_tls *tls = side->tls;
	enum kr_read fed;

	if (tls->end != KR_READ_SOME) {
		side->ended = true;
		return tls->end;
	}
	fed = feed(egress, side);
	*n = decrypt(egress, tls);
	if (!flush(side) || (tls->end == KR_READ_SOME && (fed == KR_READ_END || fed == KR_READ_ERROR)))
		tls->end = KR_READ_ERROR;
	if (*n)
		return KR_READ_SOME;
	side->ended = tls->end != KR_READ_SOME;
	return side->ended ? tls->end : KR_READ_NONE;
}

bool
kr_tls_waits(const struct kr_side *side)
{
	return side->tls && !side->ended && (side->tls->end != KR_READ_SOME || BIO_pending(side->tls->in) > 0);
}

/* Memory takes all of it. */
static bool
encrypt(struct kr_tls *tls, const void *bytes, size_t n)
{
	return n == 0 || SSL_write(tls->ssl, bytes, (int)n) == (int)n;
}

/* As one record, when it fits: a head and its body, a chunk and what is around it. */
static bool
encrypt_together(struct kr_tls *tls, const struct iovec *parts, size_t n, size_t bytes)
{
	static char together[RECORD];
	size_t at = 0;
	bool good;

	for (size_t i = 0; i < n; i++) {
		memcpy(together + at, parts[i].iov_base, parts[i].iov_len);
		at += parts[i].iov_len;
	}
	good = encrypt(tls, together, bytes);
	kr_wipe(together, bytes);
	return good;
}

bool
kr_tls_send(struct kr_side *side, const struct iovec *parts, size_t n)
{
	bool good = true;
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += parts[i].iov_len;
	ERR_clear_error();
	if (n > 1 && bytes <= RECORD)
		good = encrypt_together(side->tls, parts, n, bytes);
	else
		for (size_t i = 0; i < n && good; i++)
			good = encrypt(side->tls, parts[i].iov_base, parts[i].iov_len);
	return flush(side) && good;
}

void
kr_tls_close(struct kr_side *side)
{
	ERR_clear_error();
	(void)SSL_shutdown(side->tls->ssl); /* the other side's word is not waited for */
	(void)flush(side);
}
