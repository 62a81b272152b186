/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are held. Each says which daemon held it, so that those of one that was killed are told from those of this one. */
#include "daemon/store/database.h"
#include "daemon/store/jobs.h"

int tr_job_name_hold(struct tr_database *database, struct tr_store_job *job) {
        int r = 0;
        sqlite3_stmt *hold = tr_statement(database, TR_STATEMENT_NAME_HOLD, job->component, job->id, &r);
        if (!hold)
                return r;
        tr_bind_text(hold, 3, database->daemon);
        return tr_statement_run(database, hold);
}

int tr_job_name_release(struct tr_database *database, struct tr_store_job *job) {
        return tr_statement_do(database, TR_STATEMENT_NAME_RELEASE, job->component, job->id);
}

/* The names of others, one behind another. */
static int read_left(struct tr_database *database, struct tr_store_job *job, struct tr_writer *names, uint32_t *ret_count) {
        size_t len;
        int r = 0;
        sqlite3_stmt *left = tr_statement(database, TR_STATEMENT_NAMES_LEFT, job->component, database->daemon, &r);
        if (!left)
                return r;
        while ((r = tr_statement_row(database, left)) == 0) {
                const char *name = tr_column(left, 0, &len);
                tr_write_string(names, name ? name : "", len);
                (*ret_count)++;
        }
        return r < 0 ? r : 0;
}

int tr_job_names_left(struct tr_database *database, struct tr_store_job *job) {
        struct tr_writer names = TR_WRITER_INIT;
        uint32_t count = 0;
        int r = read_left(database, job, &names, &count);
        if (r == 0)
                r = tr_job_answer_array(job, &names, count);
        tr_writer_deinit(&names);
        return r;
}

int tr_job_names_forget(struct tr_database *database, struct tr_store_job *job) {
        return tr_statement_do(database, TR_STATEMENT_NAMES_FORGET, job->component, database->daemon);
}
