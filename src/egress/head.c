/*
 * Two readers of one head disagree where it is not strictly what RFC 9112 says, so what is not is refused:
 * lines end in CR LF and nothing else is a line end; a field is a token, a colon, and a value of visible
 * bytes, blanks and tabs, on one line; a length is digits, once; a transfer coding is "chunked", once, and
 * never beside a length.
 *
 * Three steps: scan (find the end, byte by byte as it comes, and refuse at once what no head holds), parse
 * (lines into fields), frame (what the fields say about the body). Writing starts from the fields; those that
 * speak about one connection are left out by our own list, and framing, Host and Connection are ours.
 */
#include "egress/head.h"

#include <strings.h>

#include "base/portable.h"

static const char *const methods[] = {
#define X(method) #method,
	KR_METHODS(X)
#undef X
};

const char *
kr_method_name(enum kr_method method)
{
	return methods[method];
}

/* ---- bytes ---- */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* RFC 9110 5.6.2 */
static bool
is_token(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		   (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* In a field's value, and in a response's reason. */
static bool
is_text(char c)
{
	return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f);
}

static bool
same_word(struct kr_bytes bytes, const char *word)
{
	return bytes.n == strlen(word) && strncasecmp(bytes.at, word, bytes.n) == 0;
}

static struct kr_bytes
trimmed(const char *at, size_t n)
{
	while (n && (at[0] == ' ' || at[0] == '\t')) {
		at++;
		n--;
	}
	while (n && (at[n - 1] == ' ' || at[n - 1] == '\t'))
		n--;
	return (struct kr_bytes){ at, n };
}

static bool
refuse(const char **why, const char *text)
{
	*why = text;
	return false;
}

/* ---- scan ---- */

enum kr_scan_state
kr_head_scan(struct kr_head_scan *scan, const char *bytes, size_t n)
{
	for (; scan->at < n; scan->at++) {
		size_t i = scan->at;

		if (i >= KR_HEAD_BYTES)
			return KR_SCAN_BAD;
		if (i > 0 && bytes[i - 1] == '\r' && bytes[i] != '\n')
			return KR_SCAN_BAD;
		if (bytes[i] == '\n') {
			if (i == 0 || bytes[i - 1] != '\r')
				return KR_SCAN_BAD;
			if (i == scan->line + 1) {
				scan->at = i + 1;
				return i == 1 ? KR_SCAN_BAD : KR_SCAN_WHOLE;
			}
			scan->line = i + 1;
		} else if (bytes[i] != '\r' && !is_text(bytes[i])) {
			return KR_SCAN_BAD;
		}
	}
	return KR_SCAN_MORE;
}

bool
kr_request_begins(const char *bytes, size_t n)
{
	for (size_t i = 0; i < KR_COUNT(methods); i++) {
		size_t length = strlen(methods[i]), common = n < length ? n : length;

		if (memcmp(bytes, methods[i], common) == 0 && (n <= length || bytes[length] == ' '))
			return true;
	}
	return false;
}

/* ---- fields ---- */

/* Takes the next line, without its end, off the rest. A scanned head has an end on every line. */
static struct kr_bytes
next_line(struct kr_bytes *rest)
{
	const char *end = memmem(rest->at, rest->n, "\r\n", 2);
	struct kr_bytes line = { rest->at, end ? (size_t)(end - rest->at) : rest->n };

	rest->at += line.n + (end ? 2 : 0);
	rest->n -= line.n + (end ? 2 : 0);
	return line;
}

static bool
parse_field(struct kr_bytes line, struct kr_field *out, const char **why)
{
	const char *colon = memchr(line.at, ':', line.n);
	size_t name = colon ? (size_t)(colon - line.at) : 0;

	if (line.n && (line.at[0] == ' ' || line.at[0] == '\t'))
		return refuse(why, "a header field goes on in a second line");
	if (name == 0)
		return refuse(why, "a header line is no 'name: value'");
	for (size_t i = 0; i < name; i++)
		if (!is_token(line.at[i]))
			return refuse(why, "a header field's name holds a character that no name has");
	for (size_t i = name; i < line.n; i++)
		if (!is_text(line.at[i]))
			return refuse(why, "a header field's value holds a control character");
	out->name = (struct kr_bytes){ line.at, name };
	out->value = trimmed(colon + 1, line.n - name - 1);
	return true;
}

static bool
parse_fields(struct kr_bytes rest, struct kr_head *out, const char **why)
{
	while (rest.n) {
		struct kr_bytes line = next_line(&rest);

		if (line.n == 0)
			return rest.n == 0 || refuse(why, "there are bytes behind the head");
		if (out->n == KR_HEAD_FIELDS)
			return refuse(why, "the head has more than 256 header fields");
		if (!parse_field(line, &out->fields[out->n], why))
			return false;
		out->n++;
	}
	return refuse(why, "the head has no end");
}

/* ---- framing ---- */

const struct kr_field *
kr_head_find(const struct kr_head *head, const char *name, size_t *count)
{
	const struct kr_field *found = NULL;

	*count = 0;
	for (size_t i = 0; i < head->n; i++)
		if (same_word(head->fields[i].name, name)) {
			found = &head->fields[i];
			(*count)++;
		}
	return found;
}

/* Up to 18 digits: no sum of ours can overflow, and no file is longer. */
static bool
parse_length(struct kr_bytes text, uint64_t *out)
{
	uint64_t value = 0;

	if (text.n == 0 || text.n > 18)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (!is_digit(text.at[i]))
			return false;
		value = value * 10 + (uint64_t)(text.at[i] - '0');
	}
	*out = value;
	return true;
}

static bool
parse_framing(struct kr_head *head, const char **why)
{
	size_t lengths, codings;
	const struct kr_field *length = kr_head_find(head, "content-length", &lengths);
	const struct kr_field *coding = kr_head_find(head, "transfer-encoding", &codings);

	if (length && coding)
		return refuse(why, "it has both Content-Length and Transfer-Encoding");
	if (lengths > 1 || codings > 1)
		return refuse(why, "it has Content-Length or Transfer-Encoding more than once");
	if (length && !parse_length(length->value, &head->length))
		return refuse(why, "its Content-Length is not a number");
	if (coding && (head->minor == 0 || !same_word(coding->value, "chunked")))
		return refuse(why, "its Transfer-Encoding is something other than 'chunked'");
	head->framing = length ? KR_FRAMING_LENGTH : coding ? KR_FRAMING_CHUNKED : KR_FRAMING_NONE;
	return true;
}

/* A list of words between commas, in any number of fields. */
static bool
says_close(struct kr_bytes value)
{
	while (value.n) {
		const char *comma = memchr(value.at, ',', value.n);
		size_t n = comma ? (size_t)(comma - value.at) : value.n;

		if (same_word(trimmed(value.at, n), "close"))
			return true;
		n += comma != NULL;
		value.at += n;
		value.n -= n;
	}
	return false;
}

bool
kr_head_closes(const struct kr_head *head)
{
	for (size_t i = 0; i < head->n; i++)
		if (same_word(head->fields[i].name, "connection") && says_close(head->fields[i].value))
			return true;
	return head->minor == 0;
}

/* ---- a request ---- */

/* "HTTP/1.0" or "HTTP/1.1", exactly. */
static bool
parse_version(struct kr_bytes text, unsigned *minor)
{
	if (text.n != 8 || memcmp(text.at, "HTTP/1.", 7) != 0 || (text.at[7] != '0' && text.at[7] != '1'))
		return false;
	*minor = (unsigned)(text.at[7] - '0');
	return true;
}

static bool
parse_method(struct kr_bytes text, enum kr_method *out)
{
	for (size_t i = 0; i < KR_COUNT(methods); i++)
		if (text.n == strlen(methods[i]) && memcmp(text.at, methods[i], text.n) == 0) {
			*out = (enum kr_method)i;
			return true;
		}
	return false;
}

static bool
parse_request_line(struct kr_bytes line, struct kr_head *out, const char **why)
{
	const char *first = memchr(line.at, ' ', line.n), *last = kr_memrchr(line.at, ' ', line.n);

	if (!first || first == last)
		return refuse(why, "the request line is not 'METHOD TARGET HTTP/1.1'");
	out->target = (struct kr_bytes){ first + 1, (size_t)(last - first - 1) };
	for (size_t i = 0; i < line.n; i++)
		if (line.at[i] < 0x20 || line.at[i] > 0x7e)
			return refuse(why, "the request line holds a character that is not printable ASCII");
	if (out->target.n == 0 || memchr(out->target.at, ' ', out->target.n))
		return refuse(why, "the request line has more than three parts");
	if (!parse_method((struct kr_bytes){ line.at, (size_t)(first - line.at) }, &out->method))
		return refuse(why, "the method is none that is passed on");
	if (!parse_version((struct kr_bytes){ last + 1, line.n - (size_t)(last + 1 - line.at) }, &out->minor))
		return refuse(why, "the version is not HTTP/1.0 or HTTP/1.1");
	return true;
}

/* What a CONNECT sends behind its head is the tunnel's, whatever the head says: so it must not say otherwise.
 */
static bool
check_request(const struct kr_head *head, const char **why)
{
	size_t hosts;

	(void)kr_head_find(head, "host", &hosts);
	if (hosts > 1)
		return refuse(why, "it has more than one Host");
	if (head->method == KR_METHOD_CONNECT && (head->framing == KR_FRAMING_CHUNKED || head->length))
		return refuse(why, "a CONNECT has no body");
	return true;
}

unsigned
kr_request_parse(const char *bytes, size_t n, struct kr_head *out, const char **why)
{
	struct kr_bytes rest = { bytes, n };
	const struct kr_field *expect;
	const char *line_why = NULL;
	size_t expects;

	*out = (struct kr_head){ .n = 0 };
	if (!parse_request_line(next_line(&rest), out, why))
		line_why = *why;
	if (!parse_fields(rest, out, why) || line_why || !parse_framing(out, why) || !check_request(out, why)) {
		*why = line_why ? line_why : *why;
		return 400;
	}
	expect = kr_head_find(out, "expect", &expects);
	if (expect && (expects > 1 || !same_word(expect->value, "100-continue"))) {
		*why = "it expects something other than '100-continue'";
		return 417;
	}
	out->expects = expect && out->minor > 0;
	return 0;
}

/* ---- a response ---- */

static bool
parse_status_line(struct kr_bytes line, struct kr_head *out, const char **why)
{
	if (line.n < 12 || !parse_version((struct kr_bytes){ line.at, 8 }, &out->minor) || line.at[8] != ' ' ||
		!is_digit(line.at[9]) || !is_digit(line.at[10]) || !is_digit(line.at[11]) ||
		(line.n > 12 && line.at[12] != ' '))
		return refuse(why, "its status line is not 'HTTP/1.1 NUMBER REASON'");
	out->status = (unsigned)(line.at[9] - '0') * 100 + (unsigned)(line.at[10] - '0') * 10 +
				  (unsigned)(line.at[11] - '0');
	if (out->status < 100 || out->status > 599)
		return refuse(why, "its status is not between 100 and 599");
	if (line.n > 13)
		out->reason = (struct kr_bytes){ line.at + 13, line.n - 13 };
	for (size_t i = 0; i < out->reason.n; i++)
		if (!is_text(out->reason.at[i]))
			return refuse(why, "its status line holds a control character");
	return true;
}

bool
kr_response_parse(const char *bytes, size_t n, struct kr_head *out, const char **why)
{
	struct kr_bytes rest = { bytes, n };

	*out = (struct kr_head){ .reason = { "", 0 } };
	return parse_status_line(next_line(&rest), out, why) && parse_fields(rest, out, why) &&
		   parse_framing(out, why);
}

/* ---- where to ---- */

static bool
split_url(struct kr_bytes url, struct kr_bytes *authority, struct kr_bytes *path, const char **why)
{
	size_t n;

	if (url.n < 7 || strncasecmp(url.at, "http://", 7) != 0)
		return refuse(
			why, "a plain request needs an absolute 'http://' URL; anything else goes through CONNECT");
	url.at += 7;
	url.n -= 7;
	for (n = 0; n < url.n && !memchr("/?", url.at[n], 2); n++)
		;
	*authority = (struct kr_bytes){ url.at, n };
	*path = (struct kr_bytes){ url.at + n, url.n - n };
	return !memchr(path->at, '#', path->n) || refuse(why, "the URL holds a fragment");
}

bool
kr_request_destination(const struct kr_head *head, struct kr_destination *out, const char **why)
{
	struct kr_bytes authority = head->target, path = { "", 0 };
	bool tunnel = head->method == KR_METHOD_CONNECT;

	if (!tunnel && !split_url(head->target, &authority, &path, why))
		return false;
	if (!kr_target_parse(authority.at, authority.n, &out->target, why))
		return refuse(why, "the host or port in the request is not valid");
	if (tunnel && out->target.port == 0)
		return refuse(why, "CONNECT needs 'host:port'");
	kr_target_format(&out->target, out->authority);
	if (out->target.port == 0)
		out->target.port = 80;
	out->path = path;
	return true;
}

/* ---- written anew ---- */

/* Of one connection, or said by us instead. */
static const char *const hop_by_hop[] = { "connection", "proxy-connection", "keep-alive", "te", "trailer",
	"upgrade", "http2-settings", "transfer-encoding", "content-length", "proxy-authorization",
	"proxy-authenticate", "proxy-authentication-info" };

static bool
is_hop_by_hop(struct kr_bytes name)
{
	for (size_t i = 0; i < KR_COUNT(hop_by_hop); i++)
		if (same_word(name, hop_by_hop[i]))
			return true;
	return false;
}

static bool
is_of_request(struct kr_bytes name)
{
	return same_word(name, "host") || same_word(name, "expect");
}

static void
add(struct kr_buf *out, struct kr_bytes bytes)
{
	kr_buf_add(out, bytes.at, bytes.n);
}

/* request: NULL for a response. */
static void
add_fields(struct kr_buf *out, const struct kr_head *head, const struct kr_request_write *request)
{
	for (size_t i = 0; i < head->n; i++) {
		const struct kr_field *field = &head->fields[i];

		if (is_hop_by_hop(field->name) || (request && is_of_request(field->name)) ||
			(request && request->is_dropped && request->is_dropped(request->context, field)))
			continue;
		add(out, field->name);
		kr_buf_add(out, ": ", 2);
		add(out, field->value);
		kr_buf_add(out, "\r\n", 2);
	}
}

static void
add_framing(struct kr_buf *out, enum kr_framing framing, uint64_t length)
{
	if (framing == KR_FRAMING_LENGTH)
		kr_buf_addf(out, "Content-Length: %llu\r\n", (unsigned long long)length);
	if (framing == KR_FRAMING_CHUNKED)
		kr_buf_adds(out, "Transfer-Encoding: chunked\r\n");
}

/* RFC 9112 3.2.1 and 3.2.4: no path is "/", and "*" for OPTIONS. */
static void
add_path(struct kr_buf *out, const struct kr_request_write *request)
{
	struct kr_bytes path = request->to->path;

	if (path.n == 0 && request->head->method == KR_METHOD_OPTIONS)
		kr_buf_adds(out, request->upstream ? "" : "*");
	else if (path.n == 0 || (path.at[0] != '/' && path.at[0] != '*'))
		kr_buf_adds(out, "/");
	add(out, path);
}

void
kr_request_write(const struct kr_request_write *request, struct kr_buf *out)
{
	const struct kr_head *head = request->head;

	kr_buf_addf(out, "%s ", kr_method_name(head->method));
	if (request->upstream)
		kr_buf_addf(out, "http://%s", request->to->authority);
	add_path(out, request);
	kr_buf_addf(out, " HTTP/1.1\r\nHost: %s\r\n", request->to->authority);
	add_fields(out, head, request);
	if (request->add)
		request->add(request->context, head, out);
	if (head->expects)
		kr_buf_adds(out, "Expect: 100-continue\r\n");
	if (request->upstream && request->authorization[0])
		kr_buf_addf(out, "Proxy-Authorization: %s\r\n", request->authorization);
	add_framing(out, head->framing, head->length);
	kr_buf_adds(out, request->keeps ? "\r\n" : "Connection: close\r\n\r\n");
}

static bool
has_no_length(unsigned status)
{
	return status < 200 || status == 204;
}

void
kr_response_write(const struct kr_head *head, enum kr_framing framing, bool keeps, struct kr_buf *out)
{
	kr_buf_addf(out, "HTTP/1.1 %u ", head->status);
	add(out, head->reason);
	kr_buf_adds(out, "\r\n");
	add_fields(out, head, NULL);
	if (!has_no_length(head->status))
		add_framing(out, framing, head->length);
	kr_buf_adds(out, head->status < 200 || keeps ? "\r\n" : "Connection: close\r\n\r\n");
}

void
kr_connect_write(const struct kr_destination *to, const char *authorization, struct kr_buf *out)
{
	kr_buf_addf(out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", to->authority, to->authority);
	if (authorization[0])
		kr_buf_addf(out, "Proxy-Authorization: %s\r\n", authorization);
	kr_buf_adds(out, "\r\n");
}

const char *
kr_status_reason(unsigned status)
{
	switch (status) {
	case 200:
		return "OK";
	case 201:
		return "Created";
	case 202:
		return "Accepted";
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 406:
		return "Not Acceptable";
	case 407:
		return "Proxy Authentication Required";
	case 408:
		return "Request Timeout";
	case 409:
		return "Conflict";
	case 411:
		return "Length Required";
	case 413:
		return "Content Too Large";
	case 415:
		return "Unsupported Media Type";
	case 417:
		return "Expectation Failed";
	case 422:
		return "Unprocessable Content";
	case 426:
		return "Upgrade Required";
	case 429:
		return "Too Many Requests";
	case 500:
		return "Internal Server Error";
	case 502:
		return "Bad Gateway";
	case 503:
		return "Service Unavailable";
	case 504:
		return "Gateway Timeout";
	case 507:
		return "Insufficient Storage";
	default:
		return "Answer of kraft";
	}
}

/* What the status asks to be said with it. */
static const char *
own_field(unsigned status)
{
	return status == 405 ? "Allow: POST\r\n" : status == 407 ? "Proxy-Authenticate: Basic realm=\"kraft\"\r\n" : "";
}

void
kr_refusal_write(unsigned status, const char *why, bool with_body, struct kr_buf *out)
{
	kr_buf_addf(out,
		"HTTP/1.1 %u %s\r\n%sContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		status, kr_status_reason(status), own_field(status),
		strlen("kraft: ") + strlen(why) + 1);
	if (with_body)
		kr_buf_addf(out, "kraft: %s\n", why);
}
