/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/jobs.h"

#include <errno.h>
#include <stdlib.h>

int tr_job_answer(struct tr_store_job *job, struct tr_writer *writer) {
        if (tr_writer_error(writer)) {
                tr_writer_deinit(writer);
                return tr_error_origin(-ENOMEM);
        }
        free(job->value);
        job->value = tr_writer_steal(writer, &job->value_bytes);
        return 0;
}

int tr_job_answer_array(struct tr_store_job *job, struct tr_writer *elements, uint32_t count) {
        struct tr_writer array = TR_WRITER_INIT;
        tr_write_array(&array, count);
        tr_write_raw(&array, elements->data, elements->len);
        if (tr_writer_error(elements))
                array.error = tr_writer_error(elements);
        tr_writer_deinit(elements);
        return tr_job_answer(job, &array);
}

bool tr_job_writes(const struct tr_store_job *job) {
        switch (job->kind) {
        case TR_STORE_GET:
        case TR_STORE_LIST:
        case TR_STORE_TASK_LIST:
        case TR_STORE_NAMES_LEFT:
        case TR_STORE_BACKUP:
                return false;
        default:
                return true;
        }
}

int tr_job_do(struct tr_database *database, struct tr_store_job *job) {
        switch (job->kind) {
        case TR_STORE_GET:
                return tr_job_get(database, job);
        case TR_STORE_LIST:
                return tr_job_list(database, job);
        case TR_STORE_WRITE:
                return tr_job_write(database, job);
        case TR_STORE_DELETE:
                return tr_job_delete(database, job);
        case TR_STORE_TASK_ADD:
                return tr_job_task_add(database, job);
        case TR_STORE_TASK_LOAD:
                return tr_job_task_load(database, job);
        case TR_STORE_TASK_BEGIN:
        case TR_STORE_TASK_END:
        case TR_STORE_TASK_AGAIN:
        case TR_STORE_TASK_PARK:
        case TR_STORE_TASK_RETRY:
        case TR_STORE_TASK_DROP:
                return tr_job_task_move(database, job);
        case TR_STORE_TASK_LIST:
                return tr_job_task_list(database, job);
        case TR_STORE_NAME_HOLD:
                return tr_job_name_hold(database, job);
        case TR_STORE_NAME_RELEASE:
                return tr_job_name_release(database, job);
        case TR_STORE_NAMES_LEFT:
                return tr_job_names_left(database, job);
        case TR_STORE_NAMES_FORGET:
                return tr_job_names_forget(database, job);
        case TR_STORE_BACKUP:
                break; /* the thread's, a piece at a time */
        }
        return tr_error_origin(-ENOTSUP);
}
