/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An error, as the program sees it.
 *
 * The daemon says errors in the form that the connection chose: a map, for which the library's hello asks. The other
 * two are understood as well, because an error may come before that hello is answered: a pair [kind, text], and a
 * text, which is "code: message (ran: no)". An error that is none of them is `internal`, with ran `maybe`: nothing
 * can be said of it.
 *
 * Everything is copied into one piece of memory: the details, then the code and the message with their NULs.
 */
#include "client/failure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/value.h"

/* Where the parts of an error are in the daemon's bytes. */
struct parts {
        const char *code;
        size_t code_len;
        const char *message;
        size_t message_len;
        enum tr_ran ran;
        bool has_ran;
};

static enum troupe_ran ran_of(enum tr_ran ran) {
        return ran == TR_RAN_NO ? TROUPE_RAN_NO : ran == TR_RAN_YES ? TROUPE_RAN_YES : TROUPE_RAN_MAYBE;
}

void tr_failure_clear(struct tr_failure *failure) {
        free(failure->memory);
        *failure = (struct tr_failure){ 0 };
}

void tr_failure_say(struct tr_failure *failure, enum tr_code code, const char *message) {
        tr_failure_clear(failure);
        failure->error.code = tr_code_text(code);
        failure->error.message = message;
        failure->error.ran = ran_of(tr_code_ran(code));
        failure->is_set = true;
}

static void read_text(struct parts *parts, const char *text, size_t len) {
        const char *colon = memchr(text, ':', len);
        enum tr_code code;

        parts->message = text;
        parts->message_len = len;
        if (!colon || !tr_code_parse(text, colon - text, &code))
                return;
        parts->code = text;
        parts->code_len = colon - text;
        parts->message = colon + 1;
        parts->message_len = text + len - parts->message;
        if (parts->message_len && *parts->message == ' ') {
                parts->message++;
                parts->message_len--;
        }

        for (enum tr_ran ran = TR_RAN_NO; ran <= TR_RAN_YES; ran++) {
                const char *word = tr_ran_text(ran);
                size_t word_len = strlen(word), tail_len = strlen(" (ran: )") + word_len;
                const char *tail = parts->message + parts->message_len - tail_len;

                if (parts->message_len < tail_len || memcmp(tail, " (ran: ", 7) || memcmp(tail + 7, word, word_len) ||
                    tail[7 + word_len] != ')')
                        continue;
                parts->message_len -= tail_len;
                parts->ran = ran;
                parts->has_ran = true;
                break;
        }
}

/* False where the bytes are not what they should be; what was read until then stands. */
static bool read_map(struct parts *parts, struct tr_reader *reader, uint32_t pairs) {
        struct tr_token key, value;

        for (; pairs; pairs--) {
                struct tr_reader before;

                if (tr_read(reader, &key))
                        return false;
                before = *reader;
                if (tr_read_skip(reader) || tr_read(&before, &value))
                        return false;
                if (!tr_token_is_text(&value))
                        continue;
                if (tr_token_equals(&key, "code")) {
                        parts->code = (const char *)value.data;
                        parts->code_len = value.len;
                } else if (tr_token_equals(&key, "message")) {
                        parts->message = (const char *)value.data;
                        parts->message_len = value.len;
                } else if (tr_token_equals(&key, "ran")) {
                        parts->has_ran = tr_ran_parse((const char *)value.data, value.len, &parts->ran);
                }
        }
        return true;
}

static void read_parts(struct parts *parts, const void *data, size_t size) {
        struct tr_reader reader = tr_reader(data, size);
        struct tr_token token;

        if (tr_read(&reader, &token))
                return;
        if (token.type == TR_MAP)
                (void)read_map(parts, &reader, token.count);
        else if (tr_token_is_text(&token))
                read_text(parts, (const char *)token.data, token.len);
        else if (token.type == TR_ARRAY && token.count == 2 && !tr_read_skip(&reader) && !tr_read(&reader, &token) &&
                 tr_token_is_text(&token))
                read_text(parts, (const char *)token.data, token.len);
}

static int set(struct tr_failure *failure, const struct parts *parts, enum troupe_ran ran, const void *details,
               size_t size) {
        char *memory = malloc(size + parts->code_len + 1 + parts->message_len + 1);
        char *code, *message;

        if (!memory)
                return -ENOMEM;
        code = memory + size;
        message = code + parts->code_len + 1;
        if (size)
                memcpy(memory, details, size);
        memcpy(code, parts->code, parts->code_len);
        code[parts->code_len] = '\0';
        memcpy(message, parts->message, parts->message_len);
        message[parts->message_len] = '\0';

        tr_failure_clear(failure);
        failure->memory = memory;
        failure->error = (struct troupe_error){
                .code = code,
                .message = message,
                .ran = ran,
                .details = { size ? memory : NULL, size },
        };
        failure->is_set = true;
        return 0;
}

int tr_failure_read(struct tr_failure *failure, const void *data, size_t size) {
        struct parts parts = { .message = "" };
        enum tr_code code;

        read_parts(&parts, data, size);
        if (!parts.code) {
                parts.code = tr_code_text(TR_CODE_INTERNAL);
                parts.code_len = strlen(parts.code);
        }
        if (!parts.has_ran)
                parts.ran = tr_code_parse(parts.code, parts.code_len, &code) ? tr_code_ran(code) : TR_RAN_MAYBE;
        return set(failure, &parts, ran_of(parts.ran), data, size);
}

int tr_failure_copy(struct tr_failure *failure, const struct tr_failure *from) {
        const struct troupe_error *error = &from->error;
        struct parts parts = {
                .code = error->code,
                .code_len = strlen(error->code),
                .message = error->message,
                .message_len = strlen(error->message),
        };

        return set(failure, &parts, error->ran, error->details.data, error->details.size);
}
