#include "session/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"

static const char *const stream_names[] = {
#define X(stream, name) [KR_LOG_##stream] = name,
	KR_LOG_STREAMS(X)
#undef X
};

static const char *const data_names[] = { "log", "log.1", "log.2" };
static const char *const index_names[] = { "log.idx", "log.1.idx", "log.2.idx" };

#define MAGIC 0x31676f6c7466616bull /* "kraftlog1" shortened to eight bytes; this machine's byte order */
enum { CHUNK = 16384, RECORDS = 256, CHECK_EVERY = 4 << 20, STREAM_SHIFT = 56 };

#define CUT_MARK                                                                                            \
	"\n[kraft: the log is cut here; the newest output is in log.1 and log.2, 'kraft view logs' shows both " \
	"ends]\n"

struct header {
	uint64_t magic, generation;
	uint64_t start; /* bytes of output before this part */
	uint64_t zero;
};
struct record {
	uint64_t where; /* stream << 56 | offset in the part */
	uint64_t ms;
};

const char *
kr_log_stream_name(enum kr_log_stream stream)
{
	return (unsigned)stream < KR_LOG_STREAM_COUNT ? stream_names[stream] : "unknown";
}

static size_t
part_of(uint64_t generation)
{
	return generation == 0 ? 0 : generation & 1 ? 1 : 2;
}

/* ---- writing ---- */

void
kr_log_init(struct kr_log *log, int dir_fd, uint64_t limit_bytes)
{
	*log = (struct kr_log){ .dir_fd = dir_fd, .data_fd = -1, .index_fd = -1, .limit_bytes = limit_bytes };
}

void
kr_log_close(struct kr_log *log)
{
	kr_close_p(&log->data_fd);
	kr_close_p(&log->index_fd);
}

static void
stop(struct kr_log *log, int sys_errno)
{
	log->sys_errno = sys_errno ? sys_errno : EIO;
	kr_log_close(log);
}

static bool
has_room(const struct kr_log *log)
{
	struct statvfs fs;

	if (fstatvfs(log->dir_fd, &fs) < 0)
		return true; /* the write itself will tell */
	return (uint64_t)fs.f_bavail * fs.f_frsize >= KR_LOG_RESERVE_BYTES;
}

/*
 * Files of a new part. A reader that finds the index at its name knows that the data beside it belongs to it:
 * the old index goes first, the new one comes last.
 */
static int
open_part(struct kr_log *log)
{
	size_t part = part_of(log->generation);
	struct header header = { .magic = MAGIC, .generation = log->generation, .start = log->total };
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;

	kr_log_close(log);
	(void)unlinkat(log->dir_fd, index_names[part], 0); /* mostly absent */
	(void)unlinkat(log->dir_fd, data_names[part], 0);
	(void)unlinkat(log->dir_fd, "log.idx.new", 0);
	log->data_fd = openat(log->dir_fd, data_names[part], flags | O_APPEND, 0600);
	log->index_fd = openat(log->dir_fd, "log.idx.new", flags | O_APPEND, 0600);
	if (log->data_fd < 0 || log->index_fd < 0)
		return -1;
	if (kr_write_all(log->index_fd, &header, sizeof(header), NULL) < 0 ||
		renameat(log->dir_fd, "log.idx.new", log->dir_fd, index_names[part]) < 0)
		return -1;
	log->part_bytes = 0;
	log->part_records = 0;
	return 0;
}

/* How many bytes of data the present part still takes beside a record for them. */
static uint64_t
room_in_part(const struct kr_log *log)
{
	uint64_t share = log->generation ? log->limit_bytes / 4 : log->limit_bytes / 2;
	uint64_t used = sizeof(struct header) + log->part_bytes + (log->part_records + 1) * sizeof(struct record);

	if (!log->generation)
		used += sizeof(struct record) + sizeof(CUT_MARK) - 1;
	return used < share ? share - used : 0;
}

static int
add_piece(struct kr_log *log, enum kr_log_stream stream, const char *bytes, size_t n, uint64_t now_ms)
{
	struct record record = { .where = (uint64_t)stream << STREAM_SHIFT | log->part_bytes, .ms = now_ms };
	bool same = log->part_records && stream == log->last_stream && now_ms == log->last_ms;

	/* The record first: bytes then never count as the stream's before. */
	if (!same) {
		if (kr_write_all(log->index_fd, &record, sizeof(record), NULL) < 0)
			return -1;
		log->part_records++;
		log->last_stream = stream;
		log->last_ms = now_ms;
	}
	if (kr_write_all(log->data_fd, bytes, n, NULL) < 0)
		return -1;
	log->part_bytes += n;
	log->total += n;
	return 0;
}

/* The first part stays for good, so it says that it is not all. It does not count as output. */
static int
mark_cut(struct kr_log *log, uint64_t now_ms)
{
	uint64_t total = log->total;
	int result = log->generation ? 0 : add_piece(log, KR_LOG_MARK, CUT_MARK, sizeof(CUT_MARK) - 1, now_ms);

	log->total = total;
	return result;
}

void
kr_log_add(struct kr_log *log, enum kr_log_stream stream, const void *bytes, size_t n, uint64_t now_ms)
{
	const char *p = bytes;

	while (n && !log->sys_errno) {
		size_t piece;
		uint64_t room;

		if ((log->data_fd < 0 || log->unchecked >= CHECK_EVERY) && !has_room(log)) {
			stop(log, ENOSPC);
			return;
		}
		if (log->unchecked >= CHECK_EVERY)
			log->unchecked = 0;
		errno = 0;
		if (log->data_fd < 0 && open_part(log) < 0) {
			stop(log, errno);
			return;
		}
		room = room_in_part(log);
		if (!room) {
			if (mark_cut(log, now_ms) < 0 || (log->generation++, open_part(log)) < 0) {
				stop(log, errno);
				return;
			}
			continue;
		}
		piece = n < room ? n : (size_t)room;
		if (add_piece(log, stream, p, piece, now_ms) < 0) {
			stop(log, errno);
			return;
		}
		log->unchecked += piece;
		p += piece;
		n -= piece;
	}
}

/* ---- reading ---- */

void
kr_log_reader_init(struct kr_log_reader *reader, int dir_fd)
{
	*reader = (struct kr_log_reader){ .dir_fd = dir_fd, .data_fd = -1, .index_fd = -1 };
}

void
kr_log_reader_fini(struct kr_log_reader *reader)
{
	kr_close_p(&reader->data_fd);
	kr_close_p(&reader->index_fd);
}

struct opened_part {
	int data_fd, index_fd;
	struct header header;
};

static void
close_part(struct opened_part *part)
{
	kr_close_p(&part->data_fd);
	kr_close_p(&part->index_fd);
}

/* Opens index and data of one part that belong together; false when there is none (now). */
static bool
open_pair(int dir_fd, size_t part, struct opened_part *out)
{
	struct stat opened, now;

	for (int tries = 0; tries < 5; tries++) {
		int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

		out->index_fd = openat(dir_fd, index_names[part], flags);
		if (out->index_fd < 0)
			return false;
		out->data_fd = openat(dir_fd, data_names[part], flags);
		if (out->data_fd >= 0 && fstat(out->index_fd, &opened) == 0 &&
			fstatat(dir_fd, index_names[part], &now, AT_SYMLINK_NOFOLLOW) == 0 &&
			opened.st_ino == now.st_ino &&
			pread(out->index_fd, &out->header, sizeof(out->header), 0) == sizeof(out->header) &&
			out->header.magic == MAGIC)
			return true;
		close_part(out);
	}
	return false;
}

/* The oldest part that is newer than what the reader has; false when there is none. */
static bool
open_next(const struct kr_log_reader *reader, struct opened_part *best)
{
	bool found = false, fresh = reader->data_fd < 0;

	for (size_t i = 0; i < KR_COUNT(data_names); i++) {
		struct opened_part part = { .data_fd = -1, .index_fd = -1 };

		if (!open_pair(reader->dir_fd, i, &part))
			continue;
		if ((fresh || part.header.generation > reader->generation) &&
			(!found || part.header.generation < best->header.generation)) {
			if (found)
				close_part(best);
			*best = part;
			found = true;
		} else {
			close_part(&part);
		}
	}
	return found;
}

struct visitor {
	int (*visit)(void *context, const struct kr_log_piece *piece);
	void *context;
	long pieces;
};

static int
tell(struct visitor *v, const struct kr_log_piece *piece)
{
	v->pieces++;
	return v->visit(v->context, piece);
}

static int
deliver(struct kr_log_reader *reader, struct visitor *v, const struct record *record, uint64_t end,
	struct kr_error *err)
{
	char chunk[CHUNK];
	struct kr_log_piece piece = {
		.stream = (enum kr_log_stream)(record->where >> STREAM_SHIFT), .ms = record->ms, .bytes = chunk
	};

	while (reader->data_at < end) {
		uint64_t want = end - reader->data_at;
		ssize_t got =
			pread(reader->data_fd, chunk, want < CHUNK ? (size_t)want : CHUNK, (off_t)reader->data_at);

		if (got <= 0)
			return kr_fail_errno(err, KR_E_SYSTEM, got < 0 ? errno : 0, "cannot read the log");
		piece.n = (size_t)got;
		reader->data_at += (uint64_t)got;
		if (piece.stream == KR_LOG_MARK) {
			reader->start -= (uint64_t)got; /* so that start + data_at stays the place in the output */
			continue;
		}
		if (tell(v, &piece) < 0)
			return 1;
	}
	return 0;
}

/*
 * What the open part holds beyond the reader's place. The size is read before the records: then every byte
 * within it has its record. The last record stays the present one, since more bytes may still come to it.
 * Returns 1 when the visitor had enough.
 */
static int
drain(struct kr_log_reader *reader, struct visitor *v, struct kr_error *err)
{
	struct stat st;
	uint64_t mask = (1ull << STREAM_SHIFT) - 1, size;

	if (fstat(reader->data_fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot read the log");
	size = (uint64_t)st.st_size;
	for (;;) {
		struct record records[RECORDS + 1];
		off_t at = (off_t)(sizeof(struct header) + reader->record * sizeof(struct record));
		ssize_t got = pread(reader->index_fd, records, sizeof(records), at);
		size_t n = got > 0 ? (size_t)got / sizeof(struct record) : 0;
		bool more = n == RECORDS + 1; /* the last one read is then only the end of the one before */

		if (got < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot read the log");
		for (size_t i = 0; i + more < n; i++) {
			bool is_last = i + 1 == n;
			uint64_t end = is_last ? size : records[i + 1].where & mask;
			int result;

			if (end > size)
				end = size;
			if (end < reader->data_at || records[i].where >> STREAM_SHIFT >= KR_LOG_STREAM_COUNT)
				return kr_fail(err, KR_E_SYSTEM, "the index of the log is damaged");
			result = deliver(reader, v, &records[i], end, err);
			if (result || (!is_last && (records[i + 1].where & mask) > size))
				return result;
			reader->record += !is_last;
		}
		if (!more)
			return 0;
	}
}

/* Switches to the next part and marks what is missing in between. */
static int
enter(struct kr_log_reader *reader, const struct opened_part *part, struct visitor *v)
{
	char text[96];
	uint64_t end = reader->start + reader->data_at;
	struct kr_log_piece gap = { .stream = KR_LOG_NOTE, .bytes = text };

	kr_log_reader_fini(reader);
	reader->data_fd = part->data_fd;
	reader->index_fd = part->index_fd;
	reader->generation = part->header.generation;
	reader->start = part->header.start;
	reader->record = 0;
	reader->data_at = 0;
	if (reader->start <= end)
		return 0;
	gap.n = (size_t)snprintf(text, sizeof(text), "%llu bytes of output are left out here",
		(unsigned long long)(reader->start - end));
	return tell(v, &gap) < 0;
}

long
kr_log_reader_next(struct kr_log_reader *reader,
	int (*visit)(void *context, const struct kr_log_piece *piece), void *context, struct kr_error *err)
{
	struct visitor v = { .visit = visit, .context = context };

	for (;;) {
		struct opened_part next = { .data_fd = -1, .index_fd = -1 };
		bool has_next = open_next(reader, &next);
		int result = 0;

		/* Looked for the next one before draining: its existence means that the present one is complete. */
		if (reader->data_fd >= 0)
			result = drain(reader, &v, err);
		if (result == 0 && has_next)
			result = enter(reader, &next, &v);
		else if (has_next)
			close_part(&next);
		if (result < 0)
			return -1;
		if (result > 0 || !has_next)
			return v.pieces;
	}
}

size_t
kr_log_tail(int dir_fd, char *out, size_t n)
{
	struct kr_log_reader reader;
	struct opened_part part = { .data_fd = -1, .index_fd = -1 }, newest = part;
	size_t have = 0;

	kr_log_reader_init(&reader, dir_fd);
	while (open_next(&reader, &part)) {
		kr_log_reader_fini(&reader);
		reader.generation = part.header.generation;
		reader.data_fd = part.data_fd;
		reader.index_fd = part.index_fd;
		newest = part;
	}
	if (newest.data_fd >= 0) {
		struct stat st;
		off_t from;
		ssize_t got = 0;

		if (fstat(newest.data_fd, &st) == 0) {
			from = st.st_size > (off_t)n ? st.st_size - (off_t)n : 0;
			got = pread(newest.data_fd, out, n, from);
		}
		have = got > 0 ? (size_t)got : 0;
	}
	kr_log_reader_fini(&reader);
	return have;
}
