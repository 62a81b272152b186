/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single values on any bytes: reading stays within them, skipping agrees with
 * reading, and the plain form is plain, and its own plain form.
 */
#include "config.h"

#include <string.h>

#include "proto/code.h"
#include "proto/frame.h"
#include "proto/name.h"
#include "proto/quantity.h"
#include "proto/utf8.h"
#include "proto/value.h"
#include "tests/fuzz/fuzz.h"

static void check_time(const uint8_t *payload, size_t bytes) {
        struct tr_writer writer = TR_WRITER_INIT;
        char text[TR_TIME_TEXT_MAX];
        struct tr_time time, back;
        struct tr_reader reader;
        struct tr_token token;

        if (!tr_time_decode(payload, bytes, &time))
                return;
        FUZZ_CHECK(tr_time_format(&time, text) == strlen(text));
        tr_write_time(&writer, &time);
        reader = tr_reader(writer.data, writer.len);
        FUZZ_CHECK(tr_read(&reader, &token) == 0 && tr_time_decode(token.data, token.len, &back));
        FUZZ_CHECK(back.sec == time.sec && back.nsec == time.nsec);
        tr_writer_deinit(&writer);
}

/* Payloads, tried on anything that has a length. */
static void check_payload(const uint8_t *data, size_t bytes) {
        struct tr_handle handle;
        struct tr_reader fields;
        const char *text;
        size_t len;
        uint32_t pairs;

        check_time(data, bytes);
        if (tr_message_decode(data, bytes, &handle, &text, &len))
                FUZZ_CHECK((const uint8_t *)text >= data && (const uint8_t *)text + len == data + bytes);
        if (tr_instance_decode(data, bytes, &text, &len, &fields, &pairs))
                FUZZ_CHECK(fields.at > data && fields.at <= fields.end && fields.end == data + bytes);
}

static void check_text(const char *text, size_t len) {
        char formatted[TR_HANDLE_TEXT_MAX + 1];
        struct tr_handle handle;
        enum tr_code code;
        size_t module_len;
        uint64_t quantity;

        if (tr_handle_parse(text, len, &handle)) {
                FUZZ_CHECK(tr_handle_format(&handle, formatted) == len);
                FUZZ_CHECK(memcmp(formatted, text, len) == 0);
        }
        if (tr_code_parse(text, len, &code))
                FUZZ_CHECK(strlen(tr_code_text(code)) == len);
        if (tr_actor_name_is_valid(text, len, &module_len))
                FUZZ_CHECK(tr_name_is_valid(text, module_len) && tr_utf8_is_valid(text, len));
        (void)tr_size_parse(text, len, &quantity);
        (void)tr_duration_parse(text, len, &quantity);
}

static void check_token(const struct tr_token *token, const uint8_t *data, size_t bytes) {
        int64_t integer;

        (void)tr_token_integer(token, &integer);
        if (!tr_token_is_text(token) && token->type != TR_EXT)
                return;
        FUZZ_CHECK(token->data > data && token->len <= bytes && token->data <= data + bytes - token->len);
        check_payload(token->data, token->len);
        check_text((const char *)token->data, token->len);
}

/* Reads one value token by token; as tr_read_skip() must, but for what it can tell early. */
static int walk(struct tr_reader *reader, const uint8_t *data, size_t bytes) {
        for (uint64_t values = 1; values > 0; values--) {
                struct tr_token token;
                int r;

                r = tr_read(reader, &token);
                if (r)
                        return r;
                check_token(&token, data, bytes);
                if (token.type == TR_ARRAY || token.type == TR_MAP)
                        values += token.type == TR_MAP ? 2 * (uint64_t)token.count : token.count;
        }
        return 0;
}

static void check_plain(const struct tr_writer *plain) {
        struct tr_writer again = TR_WRITER_INIT;
        struct tr_reader reader = tr_reader(plain->data, plain->len);

        while (reader.at < reader.end) {
                struct tr_token token;

                FUZZ_CHECK(tr_read(&reader, &token) == 0);
                FUZZ_CHECK(token.type != TR_EXT);
                FUZZ_CHECK(token.type != TR_STR || tr_utf8_is_valid(token.data, token.len));
        }
        reader = tr_reader(plain->data, plain->len);
        FUZZ_CHECK(tr_write_plain(&again, &reader) == 0);
        FUZZ_CHECK(reader.at == reader.end);
        FUZZ_CHECK(again.len == plain->len && memcmp(again.data, plain->data, plain->len) == 0);
        tr_writer_deinit(&again);
}

static void check_path(const uint8_t *data, size_t bytes) {
        char path[32];

        for (size_t offset = 0; offset <= bytes && offset < 64; offset++) {
                tr_frame_path(data, bytes, offset, path, sizeof(path));
                FUZZ_CHECK(strlen(path) < sizeof(path));
        }
}

void fuzz_seeds(void (*add)(const uint8_t *data, size_t bytes)) {
        fuzz_seeds_from_vectors(add);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
        struct tr_reader skipped = tr_reader(data, bytes), walked = skipped, copied = skipped;
        struct tr_writer plain = TR_WRITER_INIT;
        int skip = tr_read_skip(&skipped), way = walk(&walked, data, bytes), copy = tr_write_plain(&plain, &copied);

        FUZZ_CHECK((skip == 0) == (way == 0));
        FUZZ_CHECK(skip == 0 ? skipped.at == walked.at : skipped.at == data);
        if (copy == 0) {
                FUZZ_CHECK(skip == 0 && copied.at == skipped.at);
                check_plain(&plain);
        } else {
                FUZZ_CHECK((copied.at == data || copy == TR_PLAIN_SAME_KEY) && plain.len == 0);
        }
        check_payload(data, bytes);
        check_text((const char *)data, bytes);
        check_path(data, bytes);
        tr_writer_deinit(&plain);
        return 0;
}
