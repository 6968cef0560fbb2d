// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs that were laid over the guest's root: run to their end, what they printed passed on. What a program leaves
 * running lives on, and is buried here when it ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

enum { MOST_WORDS = 64, MOST_OUTPUT = 1 << 20 };

struct program {
	char *words[MOST_WORDS + 1];
	pid_t process;
	int out, err; /* what it prints; -1 once nobody can print there any more */
	bool ended;
	int status;
};

static void on_child(int number)
{
	(void)number; /* it only has to interrupt ppoll() */
}

/* Everyone who has ended; a program's status is kept. */
static void bury(struct program *program)
{
	int status;
	pid_t process;

	while ((process = waitpid(-1, &status, WNOHANG)) > 0)
		if (program && process == program->process) {
			program->ended = true;
			program->status = status;
		}
}

void bury_the_dead(void)
{
	bury(NULL);
}

static void become(const struct program *program, int out, int err)
{
	static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", home[] = "HOME=/";
	static char *environment[] = { path, home, NULL };
	sigset_t none;
	int nothing = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(err, STDERR_FILENO) < 0)
		_exit(126);
	putenv(path);
	execvpe(program->words[0], program->words, environment);
	fprintf(stderr, "%s: %s\n", program->words[0], strerror(errno));
	_exit(127);
}

static bool start(struct answer *answer, struct program *program)
{
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0) {
		refuse(answer, errno, "run: pipe");
		return false;
	}
	program->process = fork();
	if (program->process == 0)
		become(program, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	program->out = out[0];
	program->err = err[0];
	if (program->process < 0) {
		refuse(answer, errno, "run: fork");
		close(out[0]);
		close(err[0]);
		return false;
	}
	return true;
}

static void take(int *fd, struct text *text)
{
	char chunk[4096];
	ssize_t length = read(*fd, chunk, sizeof(chunk));

	if (length < 0 && errno == EINTR)
		return;
	if (length > 0) {
		if (text->length < MOST_OUTPUT)
			text_bytes(text, chunk, (size_t)length);
		return;
	}
	close(*fd);
	*fd = -1;
}

/* Until it has ended and what it printed is read; what it left running may hold its output open. */
static bool attend(struct program *program, uint64_t until_ns, const sigset_t *open_to, struct text *out,
		   struct text *err)
{
	for (;;) {
		struct pollfd sources[] = { { .fd = program->out, .events = POLLIN },
					    { .fd = program->err, .events = POLLIN } };
		uint64_t now = now_ns(), left = now < until_ns ? until_ns - now : 0;
		struct timespec wait = { .tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u) };
		int ready;

		bury(program);
		if (program->ended)
			wait.tv_sec = wait.tv_nsec = 0;
		else if (!left)
			return false;
		ready = ppoll(sources, 2, &wait, open_to);
		if (program->ended && ready <= 0)
			return true;
		if (ready > 0 && sources[0].revents)
			take(&program->out, out);
		if (ready > 0 && sources[1].revents)
			take(&program->err, err);
	}
}

static bool parse(struct answer *answer, char *arguments, uint64_t *within_ns, struct program *program)
{
	size_t count = 0;
	char *each;

	if (!number(word(&arguments), UINT64_MAX / 2, within_ns)) {
		refuse(answer, 0, "run: expected NANOSECONDS HEX...");
		return false;
	}
	while ((each = word(&arguments))) {
		if (count == MOST_WORDS || !from_hex(each, NULL)) {
			refuse(answer, 0, "run: expected at most %d words in hex", MOST_WORDS);
			return false;
		}
		program->words[count++] = each;
	}
	program->words[count] = NULL;
	if (!count)
		refuse(answer, 0, "run: expected a program");
	return count;
}

void do_run(struct answer *answer, char *arguments)
{
	static struct text out, err;
	struct program program = { .process = -1 };
	struct sigaction action = { .sa_handler = on_child };
	sigset_t child, before;
	uint64_t within_ns;
	bool in_time;

	if (!parse(answer, arguments, &within_ns, &program))
		return;
	text_clear(&out);
	text_clear(&err);
	text_bytes(&out, "", 0);
	text_bytes(&err, "", 0);
	/* Heard while ppoll() waits and at no other time, so that no end of a program is missed. */
	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	if (start(answer, &program)) {
		in_time = attend(&program, now_ns() + within_ns, &before, &out, &err);
		if (!in_time) {
			kill(-program.process, SIGKILL);
			refuse(answer, ETIMEDOUT, "run: %s did not end within %" PRIu64 " ns", program.words[0], within_ns);
		}
		if (program.out >= 0)
			close(program.out);
		if (program.err >= 0)
			close(program.err);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (answer->refused)
		return;
	text_printf(&answer->fields, ",\"rc\":%d,\"out\":",
		    WIFEXITED(program.status) ? WEXITSTATUS(program.status) : 128 + WTERMSIG(program.status));
	text_json(&answer->fields, out.data, out.length);
	text_printf(&answer->fields, ",\"err\":");
	text_json(&answer->fields, err.data, err.length);
}
