/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are held. Each says which daemon held it, so that those of one that was killed are told from those of this one. */
#include "daemon/store/database.h"
#include "daemon/store/jobs.h"

int tr_job_name_hold(struct tr_database *database, struct tr_store_job *job) {
        int r = 0;
        sqlite3_stmt *hold = tr_statement(database, TR_STATEMENT_NAME_HOLD, &r);
        if (!hold)
                return r;
        tr_bind_text(hold, 1, job->component);
        tr_bind_text(hold, 2, job->id);
        tr_bind_text(hold, 3, database->daemon);
        return tr_statement_run(database, hold);
}

int tr_job_name_release(struct tr_database *database, struct tr_store_job *job) {
        int r = 0;
        sqlite3_stmt *release = tr_statement(database, TR_STATEMENT_NAME_RELEASE, &r);
        if (!release)
                return r;
        tr_bind_text(release, 1, job->component);
        tr_bind_text(release, 2, job->id);
        return tr_statement_run(database, release);
}

/* The names of others, as an array. */
static int read_left(struct tr_database *database, struct tr_store_job *job, struct tr_writer *names, uint32_t *ret_count) {
        size_t len;
        int r = 0;
        sqlite3_stmt *left = tr_statement(database, TR_STATEMENT_NAMES_LEFT, &r);
        if (!left)
                return r;
        tr_bind_text(left, 1, job->component);
        tr_bind_text(left, 2, database->daemon);
        while ((r = tr_statement_row(database, left)) == 0) {
                const char *name = tr_column(left, 0, &len);
                tr_write_string(names, name, len);
                (*ret_count)++;
        }
        return r < 0 ? r : 0;
}

int tr_job_names_left(struct tr_database *database, struct tr_store_job *job) {
        struct tr_writer names = TR_WRITER_INIT, array = TR_WRITER_INIT;
        uint32_t count = 0;
        int r = read_left(database, job, &names, &count);
        if (r == 0 && tr_writer_error(&names))
                r = tr_error_origin(tr_writer_error(&names));
        if (r == 0) {
                tr_write_array(&array, count);
                tr_write_raw(&array, names.data, names.len);
                r = tr_job_answer(job, &array);
        }
        tr_writer_deinit(&names);
        return r;
}

int tr_job_names_forget(struct tr_database *database, struct tr_store_job *job) {
        int r = 0;
        sqlite3_stmt *forget = tr_statement(database, TR_STATEMENT_NAMES_FORGET, &r);
        if (!forget)
                return r;
        tr_bind_text(forget, 1, job->component);
        tr_bind_text(forget, 2, database->daemon);
        return tr_statement_run(database, forget);
}
