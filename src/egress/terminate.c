#include "egress/terminate.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/authority.h"
#include "egress/confine.h"
#include "egress/managed.h"
#include "egress/pump.h"
#include "egress/secret.h"
#include "egress/tls_openssl.h"

enum { MANAGED_FD = 5, EXIT_MANAGED = 78, EXIT_AUTHORITY = 77, CHAIN_MAX = 10 };

/* A host and port of one rule or more. */
struct kr_tls_host {
	struct kr_target target;
	const struct kr_managed_rule *rules[KR_MANAGED_RULES];
	size_t n;
	struct kr_echo *echo; /* from the first connection on */
	X509 *leaf;
	time_t leaf_until;
};

struct kr_terminator {
	struct kr_arena arena;
	struct kr_managed managed;
	struct kr_authority authority;
	SSL_CTX *for_clients, *for_servers;
	struct kr_tls_host bounds[KR_MANAGED_RULES];
	size_t n;
	bool told[KR_MANAGED_RULES][KR_TOLD_END]; /* but OTHER_NAME, which is told with each name */
};

/* ---- what kraft is told ---- */

static size_t
place_of(const struct kr_terminator *t, const struct kr_managed_rule *rule)
{
	return (size_t)(rule - t->managed.rules);
}

static void
tell(const struct kr_connection *connection, const struct kr_managed_rule *rule, unsigned told, const char *name)
{
	struct kr_terminator *t = connection->egress->terminator;
	size_t place = place_of(t, rule);
	struct kr_ask ask = { .type = KR_ASK_TOLD, .id = (uint32_t)place, .bytes = told };

	if (told != KR_TOLD_OTHER_NAME && t->told[place][told])
		return;
	t->told[place][told] = true;
	memcpy(ask.host, name, strlen(name));
	kr_egress_tell(connection->egress, &ask);
}

static void
refuse(struct kr_connection *connection, const struct kr_tls_host *bound, unsigned status, enum kr_told told, const char *more)
{
	char text[512];

	tell(connection, bound->rules[0], told, "");
	snprintf(text, sizeof(text), "%s%s", kr_told_words(told), more);
	kr_connection_refuse(connection, status, text);
}

/* ---- at the start ---- */

static int
give_authority(void)
{
	struct kr_buf out = { 0 };
	bool good = kr_confine_memory() == KR_CONFINE_DONE && kr_authority_make(&out) &&
				kr_write_all(STDOUT_FILENO, out.data, out.len, NULL) == 0;

	kr_managed_wipe(&out);
	return good ? 0 : EXIT_AUTHORITY;
}

/* kraft holds it no more, and once it is closed here nobody can open it. It stays as long as the process. */
static const char *
map_managed(size_t *n)
{
	struct stat st;
	void *bytes;

	if (fstat(MANAGED_FD, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > KR_MANAGED_PACKED_BYTES)
		return NULL;
	*n = (size_t)st.st_size;
	bytes = mmap(NULL, *n, PROT_READ, MAP_PRIVATE, MANAGED_FD, 0);
	(void)close(MANAGED_FD);
	if (bytes == MAP_FAILED)
		return NULL;
	(void)madvise(bytes, *n, MADV_DONTDUMP); /* no core is written anyway */
	(void)mlock(bytes, *n);                  /* where the limit lets it: not to be swapped out */
	return bytes;
}

static bool
add_bound(struct kr_terminator *t, const struct kr_managed_rule *rule)
{
	struct kr_tls_host *bound = NULL;

	for (size_t i = 0; i < t->n; i++)
		if (kr_managed_is_of(rule, t->bounds[i].target.host, t->bounds[i].target.port))
			bound = &t->bounds[i];
	if (!bound) {
		bound = &t->bounds[t->n++];
		if (!kr_target_of_host(rule->host, &bound->target))
			return false;
		bound->target.port = rule->port;
	}
	bound->rules[bound->n++] = rule;
	return true;
}

/* ---- contexts ---- */

static int
refuse_hello(struct kr_tls *tls, enum kr_told why, const char *name)
{
	tls->why = why;
	snprintf(tls->name, sizeof(tls->name), "%s", name);
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* The name must be the one that was asked for; of a literal address there is none. Without one OpenSSL asks here too. */
static int
on_name(SSL *ssl, int *alert, void *unused)
{
	struct kr_tls *tls = SSL_get_app_data(ssl);
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	const struct kr_target *target = &tls->bound->target;
	struct kr_target other;

	(void)unused;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	if (!name)
		return target->is_address ? SSL_TLSEXT_ERR_OK : refuse_hello(tls, KR_TOLD_NO_NAME, "");
	if (strcasecmp(name, target->host) == 0)
		return SSL_TLSEXT_ERR_OK;
	if (!kr_target_parse(name, strlen(name), &other, NULL) || other.port || other.is_address || strcmp(other.host, target->host) == 0)
		return refuse_hello(tls, KR_TOLD_BAD_NAME, "");
	return refuse_hello(tls, KR_TOLD_OTHER_NAME, other.host);
}

static const unsigned char http[] = "\x08http/1.1";

static int
on_protocols(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in, unsigned n, void *unused)
{
	(void)unused;
	for (unsigned at = 0; at < n && at + 1 + in[at] <= n; at += 1u + in[at])
		if (in[at] == http[0] && memcmp(in + at, http, sizeof(http) - 1) == 0) {
			*out = in + at + 1;
			*out_n = in[at];
			return SSL_TLSEXT_ERR_OK;
		}
	return refuse_hello(SSL_get_app_data(ssl), KR_TOLD_PROTOCOL, "");
}

static SSL_CTX *
new_context(const SSL_METHOD *method)
{
	SSL_CTX *context = SSL_CTX_new(method);

	if (!context)
		return NULL;
	(void)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	(void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_num_tickets(context, 0);
	(void)SSL_CTX_set_max_early_data(context, 0);
	return context;
}

static bool
open_for_clients(struct kr_terminator *t)
{
	t->for_clients = new_context(TLS_server_method());
	if (!t->for_clients)
		return false;
	SSL_CTX_set_tlsext_servername_callback(t->for_clients, on_name);
	SSL_CTX_set_alpn_select_cb(t->for_clients, on_protocols, NULL);
	return true;
}

/* Who publishes no list revokes nothing; a list that has run out, or that somebody else has signed, fails what it is about. */
static int
on_verified(int good, X509_STORE_CTX *context)
{
	if (good || X509_STORE_CTX_get_error(context) != X509_V_ERR_UNABLE_TO_GET_CRL)
		return good;
	X509_STORE_CTX_set_error(context, X509_V_OK);
	return 1;
}

static size_t
count(const char *bytes, size_t n, const char *text)
{
	const char *end = bytes + n;
	size_t found = 0;

	for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), text, strlen(text))); at++)
		found++;
	return found;
}

/* A root that cannot be read is left out: what it has issued is not trusted then. Not so a list of what is revoked. */
static bool
add_roots(X509_STORE *store, const char *pem, size_t n)
{
	BIO *bio = BIO_new_mem_buf(pem, (int)n);
	size_t roots = 0, lists = 0;
	bool more = bio != NULL;

	while (more) {
		char *name = NULL, *header = NULL;
		unsigned char *der = NULL;
		long der_n = 0;
		bool is_read = PEM_read_bio(bio, &name, &header, &der, &der_n) == 1;
		const unsigned char *at = der;

		more = is_read || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
		if (is_read && strcmp(name, PEM_STRING_X509_CRL) == 0) {
			X509_CRL *list = d2i_X509_CRL(NULL, &at, der_n);

			lists += list && X509_STORE_add_crl(store, list) == 1;
			X509_CRL_free(list);
		} else if (is_read) {
			X509 *root = strcmp(name, PEM_STRING_X509) == 0 ? d2i_X509(NULL, &at, der_n) : NULL;

			roots += root && X509_STORE_add_cert(store, root) == 1;
			X509_free(root);
		}
		OPENSSL_free(name);
		OPENSSL_free(header);
		OPENSSL_free(der);
		ERR_clear_error();
	}
	BIO_free(bio);
	if (lists)
		(void)X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return roots > 0 && lists == count(pem, n, "-----BEGIN " PEM_STRING_X509_CRL "-----");
}

static bool
open_for_servers(struct kr_terminator *t)
{
	t->for_servers = new_context(TLS_client_method());
	if (!t->for_servers || SSL_CTX_set_alpn_protos(t->for_servers, http, sizeof(http) - 1) != 0)
		return false;
	SSL_CTX_set_verify(t->for_servers, SSL_VERIFY_PEER, on_verified);
	SSL_CTX_set_verify_depth(t->for_servers, CHAIN_MAX);
	return add_roots(SSL_CTX_get_cert_store(t->for_servers), t->managed.roots, t->managed.roots_bytes);
}

/* NULL: there is no memory. */
static X509 *
leaf_of(struct kr_terminator *t, struct kr_tls_host *bound)
{
	time_t now = time(NULL);

	if (bound->leaf && now < bound->leaf_until && now > bound->leaf_until - KR_LEAF_AGAIN_HOURS * 3600 - KR_EARLY_S)
		return bound->leaf;
	X509_free(bound->leaf);
	bound->leaf = kr_authority_sign(&t->authority, bound->target.host, bound->target.is_address);
	bound->leaf_until = now + KR_LEAF_AGAIN_HOURS * 3600;
	return bound->leaf;
}

static struct kr_terminator *
open_terminator(const char *bytes, size_t n)
{
	struct kr_terminator *t = calloc(1, sizeof(*t));
	bool good = t && kr_managed_unpack(&t->arena, bytes, n, &t->managed);

	for (size_t i = 0; good && i < t->managed.rule_count; i++)
		good = add_bound(t, &t->managed.rules[i]);
	/* The first leaf now: to work with dates the C library reads the time zone, and later there is no call for it. */
	if (good && kr_authority_init(&t->authority, t->managed.authority) && open_for_clients(t) && open_for_servers(t) &&
		leaf_of(t, &t->bounds[0]))
		return t;
	return NULL; /* the process ends */
}

bool
kr_terminator_start(int argc, char **argv, struct kr_terminator **out, int *status)
{
	const char *bytes;
	size_t n;

	*status = EXIT_MANAGED;
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
		return false;
	if (argc == 2 && strcmp(argv[1], "authority") == 0) {
		*status = give_authority();
		return false;
	}
	if (kr_confine_memory() != KR_CONFINE_DONE)
		return false;
	bytes = map_managed(&n);
	*out = bytes ? open_terminator(bytes, n) : NULL;
	return *out != NULL;
}

/* ---- hosts ---- */

const struct kr_tls_host *
kr_tls_host_of(const struct kr_egress *egress, const struct kr_target *target)
{
	const struct kr_terminator *t = egress->terminator;

	for (size_t i = 0; t && i < t->n; i++)
		if (t->bounds[i].target.port == target->port && strcmp(t->bounds[i].target.host, target->host) == 0)
			return &t->bounds[i];
	return NULL;
}

void
kr_tls_host_destination(const struct kr_tls_host *bound, struct kr_destination *out)
{
	struct kr_target written = bound->target;

	*out = (struct kr_destination){ .target = bound->target, .path = { "", 0 } };
	written.port = written.port == 443 ? 0 : written.port;
	kr_target_format(&written, out->authority);
}

bool
kr_is_refused_plain(struct kr_connection *connection, const struct kr_target *target)
{
	const struct kr_terminator *t = connection->egress->terminator;

	for (size_t i = 0; t && i < t->n; i++)
		if (strcmp(t->bounds[i].target.host, target->host) == 0) {
			refuse(connection, &t->bounds[i], 403, KR_TOLD_PLAIN, "");
			return true;
		}
	return false;
}

/* ---- the client's TLS ---- */

static bool
watch_for_echoes(struct kr_tls_host *bound)
{
	const char *values[KR_MANAGED_RULES];

	for (size_t i = 0; i < bound->n; i++)
		values[i] = bound->rules[i]->value;
	if (!bound->echo)
		bound->echo = kr_echo_new(values, bound->n);
	return bound->echo != NULL;
}

static struct kr_tls *
new_for_client(struct kr_terminator *t, struct kr_tls_host *bound)
{
	X509 *leaf = leaf_of(t, bound);
	struct kr_tls *tls = leaf && watch_for_echoes(bound) ? kr_tls_new(t->for_clients, bound) : NULL;

	if (!tls)
		return NULL;
	SSL_set_accept_state(tls->ssl);
	if (SSL_use_certificate(tls->ssl, leaf) == 1 && SSL_use_PrivateKey(tls->ssl, t->authority.leaf_key) == 1)
		return tls;
	kr_tls_free(tls);
	return NULL;
}

void
kr_terminate_begin(struct kr_connection *connection, const struct kr_tls_host *bound)
{
	static const char established[] = "HTTP/1.1 200 Connection Established\r\n\r\n";
	struct iovec part = { (char *)(uintptr_t)established, sizeof(established) - 1 };
	struct kr_terminator *t = connection->egress->terminator;
	struct kr_intake *intake = &connection->client.intake;
	const int on = 1;
	struct kr_tls *tls;

	if (intake->n > intake->scan.at) {
		refuse(connection, bound, 400, KR_TOLD_EARLY, "");
		return;
	}
	tls = new_for_client(t, &t->bounds[bound - t->bounds]);
	if (!tls) {
		kr_connection_refuse(connection, 503, "out of memory");
		return;
	}
	kr_intake_clear(intake);
	connection->bound = bound;
	connection->stage = KR_STAGE_HANDSHAKE;
	kr_connection_set_deadline(connection, KR_HEAD_MS);
	/* Else the last word of TLS waits for the client to acknowledge the answer before it; only slower without, or no TCP at all. */
	(void)setsockopt(connection->client.watch.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (kr_side_send(&connection->client, &part, 1)) {
		connection->client.tls = tls;
		return;
	}
	kr_tls_free(tls);
	kr_connection_end(connection, true);
}

/* Its alert is on its way; nothing else is said to who does not speak TLS. */
static void
end_client(struct kr_connection *connection)
{
	struct kr_tls *tls = connection->client.tls;
	const bool has_begun = SSL_get_state(tls->ssl) != TLS_ST_BEFORE;

	if (has_begun)
		tell(connection, connection->bound->rules[0], tls->why ? tls->why : KR_TOLD_CLIENT,
			tls->why == KR_TOLD_OTHER_NAME ? tls->name : "");
	kr_tls_free(kr_steal(connection->client.tls));
	kr_connection_linger(connection);
}

static void
shake_with_client(struct kr_connection *connection)
{
	switch (kr_tls_handshake(connection->egress, &connection->client)) {
	case KR_HANDSHAKE_MORE:
		break;
	case KR_HANDSHAKE_DONE:
		kr_connection_next(connection);
		break;
	case KR_HANDSHAKE_BAD:
		end_client(connection);
		break;
	}
}

/* ---- the server's ---- */

static bool
expect_host(SSL *ssl, const struct kr_target *target)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (target->is_address)
		return X509_VERIFY_PARAM_set1_ip_asc(param, target->host) == 1;
	return X509_VERIFY_PARAM_set1_host(param, target->host, 0) == 1 && SSL_set_tlsext_host_name(ssl, target->host) == 1;
}

void
kr_terminate_server(struct kr_connection *connection)
{
	struct kr_tls *tls = kr_tls_new(connection->egress->terminator->for_servers, connection->bound);

	connection->server.tls = tls;
	if (!tls || !expect_host(tls->ssl, &connection->bound->target)) {
		kr_connection_refuse(connection, 503, "out of memory");
		return;
	}
	SSL_set_connect_state(tls->ssl);
	connection->stage = KR_STAGE_HANDSHAKE;
	kr_connection_set_deadline(connection, KR_UPSTREAM_REPLY_MS);
	kr_terminate_ready(connection, false, KR_POLL_OUT);
}

static void
refuse_server(struct kr_connection *connection)
{
	long verified = SSL_get_verify_result(connection->server.tls->ssl);
	char more[256] = "";

	if (verified == X509_V_OK) {
		refuse(connection, connection->bound, 502, KR_TOLD_SERVER, "");
		return;
	}
	snprintf(more, sizeof(more), ": %s", X509_verify_cert_error_string(verified));
	refuse(connection, connection->bound, 502, KR_TOLD_CERTIFICATE, more);
}

static bool
is_verified(const SSL *ssl)
{
	return SSL_get_verify_result(ssl) == X509_V_OK && SSL_get0_peer_certificate(ssl);
}

static void
shake_with_server(struct kr_connection *connection)
{
	enum kr_handshake state = kr_tls_handshake(connection->egress, &connection->server);

	if (state == KR_HANDSHAKE_BAD || (state == KR_HANDSHAKE_DONE && !is_verified(connection->server.tls->ssl)))
		refuse_server(connection);
	else if (state == KR_HANDSHAKE_DONE)
		kr_connection_send_request(connection);
}

/* ---- both ---- */

void
kr_terminate_ready(struct kr_connection *connection, bool client, unsigned events)
{
	struct kr_egress *egress = connection->egress;
	bool with_server = connection->server.tls != NULL;

	if (!kr_side_flush(&connection->client) || (client && with_server && events & KR_POLL_END))
		kr_connection_end(connection, true);
	else if (client && with_server)
		(void)kr_watch_set(egress, &connection->client.watch, 0); /* it is in the set: no failure */
	else if (!with_server)
		shake_with_client(connection);
	else if (!kr_side_flush(&connection->server))
		refuse_server(connection);
	else
		shake_with_server(connection);
}

void
kr_terminate_events(const struct kr_connection *connection, int *client, int *server)
{
	const struct kr_side *c = &connection->client, *s = &connection->server;

	*client = s->tls ? c->watch.events : KR_POLL_IN | (kr_side_is_clear(c) ? 0 : KR_POLL_OUT);
	*server = KR_POLL_IN | (kr_side_is_clear(s) ? 0 : KR_POLL_OUT);
}

void
kr_terminate_overdue(struct kr_connection *connection)
{
	if (!connection->server.tls)
		kr_connection_end(connection, true);
	else
		refuse(connection, connection->bound, 502, KR_TOLD_SERVER, ": it took too long");
}

/* ---- requests inside ---- */

static struct kr_secret_host
secrets_of(const struct kr_connection *connection)
{
	const struct kr_terminator *t = connection->egress->terminator;
	const struct kr_tls_host *bound = connection->bound;

	return (struct kr_secret_host){ &bound->target, bound->rules, bound->n, t->managed.rules, t->managed.rule_count };
}

bool
kr_terminate_judge(struct kr_connection *connection, const struct kr_head *head)
{
	const struct kr_secret_host host = secrets_of(connection);
	const struct kr_managed_rule *rule;
	enum kr_secret_reason reason = kr_secret_judge(&host, head, &rule);
	char words[KR_SECRET_WORDS];

	/* What clients of the field take for "do it without": one that was sent on without its Upgrade is tried again and again. */
	if (reason == KR_SECRET_GOOD && kr_secret_is_websocket(head)) {
		kr_connection_refuse(connection, 426, "a WebSocket cannot be looked through for the secret: ask without one");
		return false;
	}
	if (reason == KR_SECRET_GOOD)
		return true;
	tell(connection, rule, KR_TOLD_HEAD + (unsigned)reason, "");
	kr_secret_words(reason, rule, words);
	kr_connection_refuse(connection, 403, words);
	return false;
}

void
kr_terminate_write(const struct kr_connection *connection, const struct kr_head *head, struct kr_buf *out)
{
	const struct kr_secret_host host = secrets_of(connection);
	struct kr_destination to;

	kr_tls_host_destination(connection->bound, &to);
	kr_secret_write(&host, head, to.authority, out);
}

/* ---- responses ---- */

const struct kr_echo *
kr_terminate_echo(const struct kr_connection *connection)
{
	return connection->bound ? connection->bound->echo : NULL;
}

void
kr_terminate_echoed(struct kr_connection *connection, int which)
{
	tell(connection, connection->bound->rules[which], KR_TOLD_ECHO, "");
}
