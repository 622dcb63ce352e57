/* kraft-egress: no TLS ends here. No connection is ever bound and no side has a struct kr_tls, so what needs one is not reached. */
#include "egress/terminate.h"
#include "egress/tls.h"

bool
kr_terminator_start(int argc, char **argv, struct kr_terminator **out, int *status)
{
	(void)argc;
	(void)argv;
	(void)status;
	*out = NULL;
	return true;
}

const struct kr_tls_host *
kr_tls_host_of(const struct kr_egress *egress, const struct kr_target *target)
{
	(void)egress;
	(void)target;
	return NULL;
}

bool
kr_is_refused_plain(struct kr_connection *connection, const struct kr_target *target)
{
	(void)connection;
	(void)target;
	return false;
}

const struct kr_echo *
kr_terminate_echo(const struct kr_connection *connection)
{
	KR_BUG_IF(connection->bound);
	return NULL;
}

bool
kr_tls_waits(const struct kr_side *side)
{
	KR_BUG_IF(side->tls);
	return false;
}

void
kr_tls_free(struct kr_tls *tls)
{
	KR_BUG_IF(tls);
}

/* ---- never reached ---- */

enum kr_handshake
kr_tls_handshake(struct kr_egress *egress, struct kr_side *side)
{
	KR_BUG_IF(egress || side);
	return KR_HANDSHAKE_BAD;
}

enum kr_read
kr_tls_read(struct kr_egress *egress, struct kr_side *side, size_t *n)
{
	KR_BUG_IF(egress || side || n);
	return KR_READ_ERROR;
}

bool
kr_tls_send(struct kr_side *side, const struct iovec *parts, size_t n)
{
	KR_BUG_IF(side || parts || n);
	return false;
}

bool
kr_terminate_judge(struct kr_connection *connection, const struct kr_head *head)
{
	KR_BUG_IF(connection || head);
	return false;
}

void
kr_terminate_echoed(struct kr_connection *connection, int which)
{
	KR_BUG_IF(connection || which);
}

void
kr_tls_close(struct kr_side *side)
{
	KR_BUG_IF(side);
}

void
kr_tls_host_destination(const struct kr_tls_host *bound, struct kr_destination *out)
{
	KR_BUG_IF(bound || out);
}

void
kr_terminate_begin(struct kr_connection *connection, const struct kr_tls_host *bound)
{
	KR_BUG_IF(connection || bound);
}

void
kr_terminate_server(struct kr_connection *connection)
{
	KR_BUG_IF(connection);
}

void
kr_terminate_ready(struct kr_connection *connection, bool client, unsigned events)
{
	KR_BUG_IF(connection || client || events);
}

void
kr_terminate_events(const struct kr_connection *connection, int *client, int *server)
{
	KR_BUG_IF(connection || client || server);
}

void
kr_terminate_overdue(struct kr_connection *connection)
{
	KR_BUG_IF(connection);
}

void
kr_terminate_write(const struct kr_connection *connection, const struct kr_head *head, struct kr_buf *out)
{
	KR_BUG_IF(connection || head || out);
}
