#include "guest/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h> /* renameat alone */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LAST_WORDS_MS = 2000 }; /* for a kraft that does not read */

void
kg_control_drop(struct kg_control *control)
{
	close(control->fd);
	control->fd = -1;
	for (size_t i = 0; i < control->queued; i++)
		if (control->queue_fd[i] >= 0)
			close(control->queue_fd[i]);
	control->queued = 0;
}

void
kg_control_flush(struct kg_control *control)
{
	size_t sent = 0;
	int failed = 0;

	while (sent < control->queued && !failed) {
		failed = kg_send(control->fd, &control->queue[sent], control->queue_fd[sent], MSG_DONTWAIT);
		if (failed)
			break;
		if (control->queue_fd[sent] >= 0)
			close(control->queue_fd[sent]);
		sent++;
	}
	control->queued -= sent;
	memmove(control->queue, control->queue + sent, control->queued * sizeof(*control->queue));
	memmove(control->queue_fd, control->queue_fd + sent, control->queued * sizeof(*control->queue_fd));
	if (failed && failed != EAGAIN)
		kg_control_drop(control);
}

void
kg_control_tell(struct kg_control *control, const struct kg_message *message, int fd)
{
	if (control->fd < 0 || control->queued == KG_CONTROL_QUEUE) {
		if (fd >= 0)
			close(fd);
		return;
	}
	control->queue[control->queued] = *message;
	control->queue_fd[control->queued++] = fd;
	kg_control_flush(control);
}

bool
kg_control_has_room(const struct kg_control *control)
{
	return control->queued + 2 <= KG_CONTROL_QUEUE;
}

void
kg_control_wait(struct kg_control *control)
{
	struct pollfd out = { .fd = control->fd, .events = POLLOUT };

	if (poll(&out, 1, LAST_WORDS_MS) == 1)
		kg_control_flush(control);
	else
		kg_control_drop(control);
}

bool
kg_control_hear(struct kg_control *control, struct kg_message *order)
{
	ssize_t n = recv(control->fd, (char *)&control->order + control->order_bytes,
		sizeof(control->order) - control->order_bytes, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		kg_control_drop(control);
		return false;
	}
	control->order_bytes += (size_t)n;
	if (control->order_bytes < sizeof(control->order))
		return false;
	control->order_bytes = 0;
	*order = control->order;
	return kg_order_valid(order); /* else a kraft of another version */
}

void
kg_control_mark_started(const struct kg_control *control)
{
	int fd = openat(control->folder, KG_STARTED_FILE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	else
		kg_say(2, "cannot write the started mark: ", kg_errno_text(errno), NULL);
}

void
kg_control_write_exit(const struct kg_control *control, const struct kg_result *result)
{
	char text[KG_RESULT_BYTES];
	size_t n = kg_result_text(result, text);
	int fd = openat(
		control->folder, KG_EXIT_FILE ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 && write(fd, text, n) == (ssize_t)n &&
		renameat(control->folder, KG_EXIT_FILE ".new", control->folder, KG_EXIT_FILE) == 0) {
		close(fd);
		return;
	}
	kg_say(2, "cannot write the exit file: ", kg_errno_text(errno), NULL);
	(void)unlinkat(control->folder, KG_EXIT_FILE ".new", 0); /* on a full disk it is there, and empty */
}
