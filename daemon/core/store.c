/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs for the store have in common, whoever does them. */
#include "daemon/core/store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/random.h"
#include "daemon/contract/manifest.h"
#include "daemon/core/message.h"
#include "daemon/core/system.h"
#include "proto/utf8.h"
#include "proto/value.h"

void tr_store_job_deinit(struct tr_store_job *job) {
        tr_failure_unref(job->failure);
        job->failure = NULL;
        free(job->value);
        job->value = NULL;
        job->value_bytes = 0;
        free(job->task_component);
        job->task_component = NULL;
        free(job->task_operation);
        job->task_operation = NULL;
        for (uint32_t i = 0; i < job->tasks_count; i++)
                free(job->tasks[i].memory);
        free(job->tasks);
        job->tasks = NULL;
        job->tasks_count = 0;
}

int tr_store_new_id(char ret_id[static TR_STORE_ID_LEN + 1]) {
        uint64_t random[2];
        int r = tr_random_bytes(random, sizeof(random));
        if (r < 0)
                return tr_error_fold(r);
        snprintf(ret_id, TR_STORE_ID_LEN + 1, "%012llx%04llx%016llx",
                 (unsigned long long)tr_clock_wall_ms() & 0xffffffffffff, (unsigned long long)random[0] & 0xffff,
                 (unsigned long long)random[1]);
        return 0;
}

bool tr_store_text_is_valid(const char *text, size_t len) {
        if (len == 0 || len > TR_STORE_TEXT_MAX)
                return false;
        for (size_t at = 0; at < len;) {
                size_t bytes = tr_utf8_character(text + at, len - at);
                if (bytes == 0 || tr_utf8_is_control(text + at, bytes))
                        return false;
                at += bytes;
        }
        return true;
}

/* Asking */

/* A job of somebody who asks: all that it needs, in one piece. */
struct ask {
        struct tr_store_job job;
        struct tr_message *message;   /* strong */
        struct tr_manifest *manifest; /* strong, or NULL */
        uint8_t kept[];               /* what the job points to */
};

static size_t text_bytes(const char *text) {
        return text ? strlen(text) + 1 : 0;
}

/* Copies what is there to where there is room, and moves that on. NULL for nothing. */
static const void *keep(uint8_t **room, const void *data, size_t bytes) {
        uint8_t *at = *room;
        if (!data)
                return NULL;
        memcpy(at, data, bytes);
        *room = at + bytes;
        return at;
}

static void keep_text(uint8_t **room, const char **text) {
        *text = keep(room, *text, text_bytes(*text));
}

static struct ask *ask_new(const struct tr_store_job *job) {
        size_t bytes = text_bytes(job->component) + text_bytes(job->id) + text_bytes(job->state) + text_bytes(job->path) +
                       text_bytes(job->list.sort) + text_bytes(job->list.after) + (job->document ? job->document_bytes : 0) +
                       (job->list.where ? job->list.where_bytes : 0);
        struct ask *ask = malloc(sizeof(*ask) + bytes);
        if (!ask)
                return NULL;
        uint8_t *room = ask->kept;
        ask->job = *job;
        keep_text(&room, &ask->job.component);
        keep_text(&room, &ask->job.id);
        keep_text(&room, &ask->job.state);
        keep_text(&room, &ask->job.path);
        keep_text(&room, &ask->job.list.sort);
        keep_text(&room, &ask->job.list.after);
        ask->job.document = keep(&room, job->document, job->document_bytes);
        ask->job.list.where = keep(&room, job->list.where, job->list.where_bytes);
        return ask;
}

/* A conflict is found out by trying; what else is refused was not done. */
static enum tr_ran ran_of(const struct tr_failure *failure) {
        return failure->code == TR_CODE_CONFLICT ? TR_RAN_YES : TR_RAN_NO;
}

/* Whoever asked gets values plain. */
static void resolve_plain(struct tr_message *message, const struct tr_store_job *job) {
        struct tr_writer plain = TR_WRITER_INIT;
        struct tr_reader reader = tr_reader(job->value, job->value_bytes);
        int r = tr_write_plain(&plain, &reader);
        if (r == 0) {
                tr_message_resolve(message, plain.data, plain.len, false);
        } else {
                struct tr_failure *failure =
                        r < 0 ? tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the answer")
                              : tr_failure_new(TR_CODE_NOT_SENDABLE, "the answer has a map with two keys that are the same as text");
                tr_message_reject(message, failure, TR_RAN_YES);
                tr_failure_unref(failure);
        }
        tr_writer_deinit(&plain);
}

void tr_store_resolve(struct tr_message *message, const struct tr_store_job *job) {
        static const uint8_t nil[] = { 0xc0 };
        if (!job->value)
                tr_message_resolve(message, nil, sizeof(nil), false);
        else if (message->form == TR_FORM_PLAIN)
                resolve_plain(message, job);
        else
                tr_message_resolve(message, job->value, job->value_bytes, false);
}

static void on_asked(struct tr_store_job *job) {
        struct ask *ask = tr_container_of(job, struct ask, job);
        if (job->failure)
                tr_message_reject(ask->message, job->failure, ran_of(job->failure));
        else
                tr_store_resolve(ask->message, job);
        tr_message_unref(ask->message);
        tr_manifest_unref(ask->manifest);
        tr_store_job_deinit(job);
        free(ask);
}

struct tr_failure *tr_store_ask(struct tr_system *system, const struct tr_store_job *job, struct tr_manifest *manifest,
                                struct tr_message *take_message) {
        if (!system->store)
                return tr_store_none(system);
        struct ask *ask = ask_new(job);
        if (!ask)
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for a question to the store");
        ask->job.done = on_asked;
        ask->message = take_message;
        ask->manifest = manifest ? tr_manifest_ref(manifest) : NULL;
        /* From here on nobody can say that it was not done. Where it was settled before, it is done all the same. */
        if (!tr_message_begin(take_message))
                assert(tr_message_state(take_message) == TR_MESSAGE_SETTLED);
        tr_store_submit(system->store, &ask->job);
        return NULL;
}

struct tr_failure *tr_store_none(const struct tr_system *system) {
        return tr_failure_new(TR_CODE_STORE, "there is no store: %s", system->store_why ? system->store_why : "this program has none");
}
