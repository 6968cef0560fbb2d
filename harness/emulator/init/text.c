// SPDX-License-Identifier: GPL-2.0-or-later
/* Texts that grow, as JSON and as hex; words and numbers of a line. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

static void make_room(struct text *text, size_t more)
{
	size_t room = text->room ? text->room : 1024;

	while (room < text->length + more)
		room *= 2;
	if (room == text->room)
		return;
	text->data = realloc(text->data, room);
	if (!text->data)
		abort();
	text->room = room;
}

void text_clear(struct text *text)
{
	text->length = 0;
}

void text_bytes(struct text *text, const void *data, size_t length)
{
	make_room(text, length + 1);
	memcpy(text->data + text->length, data, length);
	text->length += length;
	text->data[text->length] = '\0';
}

static void text_vprintf(struct text *text, const char *format, va_list arguments)
{
	va_list again;
	int length;

	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (length < 0)
		abort();
	make_room(text, (size_t)length + 1);
	vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
	text->length += (size_t)length;
}

void text_printf(struct text *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	text_vprintf(text, format, arguments);
	va_end(arguments);
}

void text_json(struct text *text, const char *data, size_t length)
{
	text_bytes(text, "\"", 1);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c == '"' || c == '\\')
			text_printf(text, "\\%c", c);
		else if (c == '\n')
			text_bytes(text, "\\n", 2);
		else if (c < 0x20 || c >= 0x7f) /* of Latin-1: the answer is one line of ASCII */
			text_printf(text, "\\u%04x", c);
		else
			text_bytes(text, &data[i], 1);
	}
	text_bytes(text, "\"", 1);
}

void text_hex(struct text *text, const void *data, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = data;

	make_room(text, 2 * length + 1);
	for (size_t i = 0; i < length; i++) {
		text->data[text->length++] = digits[bytes[i] >> 4];
		text->data[text->length++] = digits[bytes[i] & 15];
	}
	text->data[text->length] = '\0';
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool from_hex(char *text, size_t *length)
{
	char *to = text, *start = text;

	for (; text[0]; text += 2) {
		if (digit(text[0]) < 0 || digit(text[1]) < 0)
			return false;
		*to++ = (char)(digit(text[0]) << 4 | digit(text[1]));
	}
	*to = '\0';
	if (length)
		*length = (size_t)(to - start);
	return true;
}

void refuse(struct answer *answer, int number, const char *format, ...)
{
	va_list arguments;

	if (answer->refused) /* the first reason is the cause of the others */
		return;
	answer->refused = true;
	answer->error_number = number;
	va_start(arguments, format);
	text_vprintf(&answer->error, format, arguments);
	va_end(arguments);
	if (number)
		text_printf(&answer->error, ": %s", strerror(number));
}

char *word(char **line)
{
	return strtok_r(NULL, " ", line);
}

bool number(const char *text, uint64_t most, uint64_t *value)
{
	uint64_t found = 0;

	if (!text || !*text)
		return false;
	for (; *text; text++) {
		unsigned digit = (unsigned)(*text - '0');

		if (digit > 9 || found > (most - digit) / 10)
			return false;
		found = 10 * found + digit;
	}
	*value = found;
	return true;
}
