/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs for the store have in common, whoever does them. */
#include "daemon/core/store.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/random.h"
#include "daemon/core/system.h"
#include "proto/utf8.h"

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

struct tr_failure *tr_store_none(const struct tr_system *system) {
        return tr_failure_new(TR_CODE_STORE, "there is no store: %s", system->store_why ? system->store_why : "this program has none");
}
