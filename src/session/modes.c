#include "session/modes.h"

#include "base/text.h"

enum { GROUND, ESCAPE, CSI, STRING, STRING_ESCAPE, CHARSET };

/* Private modes that change what a person sees or types. `usual` is a fresh terminal's state. The order is
 * that of the reset: what makes the terminal send bytes first, the alternate screen after it, the cursor at
 * the end. */
static const struct {
	unsigned number;
	bool usual;
} modes_known[] = {
	{ 9, false },                                                       /* mouse, the oldest protocol */
	{ 1000, false },                                                    /* mouse buttons */
	{ 1001, false },                                                    /* mouse highlight */
	{ 1002, false },                                                    /* mouse while a button is down */
	{ 1003, false },                                                    /* mouse always */
	{ 1004, false },                                                    /* focus */
	{ 1005, false },                                                    /* mouse coordinates, three forms */
	{ 1006, false }, { 1015, false }, { 1016, false }, { 2004, false }, /* bracketed paste */
	{ 2026, false },                               /* synchronised output: nothing is drawn */
	{ 2031, false },                               /* colour scheme reports */
	{ 2048, false },                               /* size reports */
	{ 1, false },                                  /* cursor keys of applications */
	{ 47, false },                                 /* alternate screen, three forms */
	{ 1047, false }, { 1049, false }, { 7, true }, /* wrapping at the margin */
	{ 25, true },                                  /* the cursor is shown */
};
_Static_assert(KR_COUNT(modes_known) <= 32, "one bit each");

static void
set_mode(struct kr_modes *m, unsigned number, bool high)
{
	for (size_t i = 0; i < KR_COUNT(modes_known); i++)
		if (modes_known[i].number == number) {
			uint32_t bit = 1u << i;

			m->on = high != modes_known[i].usual ? m->on | bit : m->on & ~bit;
		}
}

/* Reads a number at *p and steps over it and one ';'. Large ones are cut: no mode has them. */
static unsigned
next_number(const char **p)
{
	unsigned n = 0;

	for (; **p >= '0' && **p <= '9'; (*p)++)
		n = n < 100000 ? n * 10 + (unsigned)(**p - '0') : n;
	if (**p == ';')
		(*p)++;
	return n;
}

static void
forget(struct kr_modes *m)
{
	m->on = 0;
	m->keyboard = 0;
	m->keypad = m->region = false;
}

static bool
is_report_request(const char *params, char final)
{
	const char *p = params;

	switch (final) {
	case 'c': /* attributes; with a number other than 0 it is an answer, not a question */
	case 'n': /* status, cursor */
		return true;
	case 'q':
		return params[0] == '>'; /* version */
	case 'u':
		return params[0] == '?'; /* keyboard protocol */
	case 'p':
		return strchr(params, '$') != NULL; /* the state of a mode */
	case 't': {
		unsigned operation = next_number(&p);

		return operation >= 11 && operation <= 21; /* sizes, titles */
	}
	default:
		return false;
	}
}

static void
end_csi(struct kr_modes *m, char final)
{
	const char *p = m->params;

	m->params[m->used] = '\0';
	if (m->too_long)
		return;
	m->queries += is_report_request(m->params, final);
	if (*p == '?' && (final == 'h' || final == 'l') && !strchr(p, '$')) {
		for (p++; *p;) {
			const char *before = p;

			set_mode(m, next_number(&p), final == 'h');
			if (p == before)
				break;
		}
	} else if (final == 'u' && *p == '>') {
		m->keyboard += m->keyboard < 64;
	} else if (final == 'u' && *p == '<') {
		unsigned n = (p++, next_number(&p));

		n = n ? n : 1;
		m->keyboard = n < m->keyboard ? m->keyboard - n : 0;
	} else if (final == 'r' && (*p == '\0' || (*p >= '0' && *p <= '9'))) {
		m->region = *p != '\0';
	} else if (final == 'p' && strcmp(p, "!") == 0) {
		forget(m);
	}
}

static void
after_escape(struct kr_modes *m, char c)
{
	m->state = GROUND;
	switch (c) {
	case '[':
		m->state = CSI;
		m->used = 0;
		m->too_long = false;
		break;
	case ']':
	case 'P':
	case 'X':
	case '^':
	case '_':
		m->state = STRING;
		m->used = 0;
		m->params[m->used++] = c;
		break;
	case '(':
	case ')':
	case '*':
	case '+':
	case '#':
	case '%':
	case ' ':
		m->state = CHARSET;
		break;
	case 'c':
		forget(m);
		break;
	case '=':
		m->keypad = true;
		break;
	case '>':
		m->keypad = false;
		break;
	case '\033':
		m->state = ESCAPE;
		break;
	default:
		break;
	}
}

/* A string's first bytes are enough to know a question: "]11;?" and its like, "P+q", "P$q". */
static void
in_string(struct kr_modes *m, char c)
{
	if (m->used < KR_MODES_PARAMS - 1)
		m->params[m->used++] = c;
	if (m->params[0] == ']' && c == '?')
		m->queries++;
	else if (m->params[0] == 'P' && m->used == 3 && c == 'q')
		m->queries++;
}

static void
step(struct kr_modes *m, char c)
{
	switch (m->state) {
	case ESCAPE:
		after_escape(m, c);
		break;
	case CSI:
		if (c >= 0x40 && c <= 0x7e) {
			end_csi(m, c);
			m->state = GROUND;
		} else if (c == '\033') {
			m->state = ESCAPE;
		} else if (c == 0x18 || c == 0x1a) {
			m->state = GROUND;
		} else if (c >= 0x20 && c < 0x40) {
			if (m->used < KR_MODES_PARAMS - 1)
				m->params[m->used++] = c;
			else
				m->too_long = true;
		}
		break;
	case STRING:
		if (c == '\033')
			m->state = STRING_ESCAPE;
		else if (c == '\a' || c == 0x18 || c == 0x1a)
			m->state = GROUND;
		else
			in_string(m, c);
		break;
	case STRING_ESCAPE:
		m->state = GROUND;
		if (c != '\\')
			after_escape(m, c);
		break;
	default: /* CHARSET: one more byte */
		m->state = GROUND;
		break;
	}
}

void
kr_modes_feed(struct kr_modes *m, const char *bytes, size_t n)
{
	const char *p = bytes, *end = bytes + n;

	while (p < end) {
		if (m->state == GROUND) {
			p = memchr(p, '\033', (size_t)(end - p));
			if (!p)
				return;
			m->any_escape = true;
			m->state = ESCAPE;
			p++;
			continue;
		}
		step(m, *p++);
	}
}

void
kr_modes_reset(const struct kr_modes *m, struct kr_buf *out)
{
	if (!m->any_escape)
		return;
	if (m->state != GROUND)
		kr_buf_adds(out, "\030\033\\"); /* cancel, then end a string that was cut in the middle */
	if (m->keyboard)
		kr_buf_addf(out, "\033[<%uu", m->keyboard);
	if (m->keypad)
		kr_buf_adds(out, "\033>");
	for (size_t i = 0; i < KR_COUNT(modes_known); i++)
		if (m->on & 1u << i)
			kr_buf_addf(out, "\033[?%u%c", modes_known[i].number, modes_known[i].usual ? 'h' : 'l');
	if (m->region)
		kr_buf_adds(out, "\0337\033[r\0338"); /* setting the region moves the cursor home */
	kr_buf_adds(out, "\033(B\017\033[0m");    /* plain letters, plain colours */
}
