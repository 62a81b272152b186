/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that writes as fast as it can, and says what was acknowledged, is killed somewhere in it. What it said is in the file that it
 * leaves; and nothing is there that was not asked for.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/store_fixture.h"
#include "tests/unit/suite.h"

#ifndef STORE_KILLS
#define STORE_KILLS 25
#endif

enum { WRITERS = 16 };

/* What is said: which writer, and up to which of its numbers all is acknowledged. */
struct said {
        uint32_t writer;
        uint32_t number;
};

/* In the process that is killed */

static int pipe_to;
static char component[16]; /* of this one's entities and tasks */

struct writer {
        struct tr_store_job job;
        uint32_t index;
        uint32_t number;
        char id[32];
        uint8_t body[32];
        size_t body_bytes;
};

/* An entity, then the task of the same number. */
static void prepare(struct writer *writer) {
        struct tr_writer body = TR_WRITER_INIT;
        tr_write_map(&body, 1);
        tr_write_text(&body, "n");
        tr_write_uint(&body, writer->number);
        if (tr_writer_error(&body) || body.len > sizeof(writer->body))
                abort();
        memcpy(writer->body, body.data, body.len);
        writer->body_bytes = body.len;
        tr_writer_deinit(&body);
        snprintf(writer->id, sizeof(writer->id), "%u", writer->index);
}

static void submit_entity(struct writer *writer);

static void on_task(struct tr_store_job *job) {
        struct writer *writer = job->userdata;
        const struct said said = { writer->index, writer->number };
        if (job->failure)
                abort();
        tr_store_job_deinit(job);
        /* one piece: it is far shorter than a page */
        if (write(pipe_to, &said, sizeof(said)) != sizeof(said))
                abort();
        writer->number++;
        submit_entity(writer);
}

static void on_entity(struct tr_store_job *job) {
        struct writer *writer = job->userdata;
        if (job->failure || job->version != writer->number)
                abort();
        tr_store_job_deinit(job);
        *job = (struct tr_store_job){
                .kind = TR_STORE_TASK_ADD,
                .task = { .component = component, .operation = "go", .entity = writer->id, .input = writer->body, .input_bytes = writer->body_bytes,
                          .expires_ms = TR_STORE_NEVER, .due_ms = 1, .depth = writer->number },
                .done = on_task,
                .userdata = writer,
        };
        tr_store_submit(tr_sqlite_store_interface(store), job);
}

static void submit_entity(struct writer *writer) {
        prepare(writer);
        writer->job = (struct tr_store_job){
                .kind = TR_STORE_WRITE,
                .component = component,
                .id = writer->id,
                .document = writer->body,
                .document_bytes = writer->body_bytes,
                .expect = writer->number - 1,
                .done = on_entity,
                .userdata = writer,
        };
        tr_store_submit(tr_sqlite_store_interface(store), &writer->job);
}

static _Noreturn void run_child(void) {
        static struct writer writers[WRITERS];
        char *why;
        if (tr_sqlite_store_new(store_path, &store, &why) != 0)
                abort();
        for (uint32_t i = 0; i < WRITERS; i++) {
                writers[i].index = i;
                writers[i].number = 1;
                submit_entity(&writers[i]);
        }
        for (;;)
                pause();
}

/* In the one that looks */

/* Kills it when it has said so much, and reads what it said besides. */
static void run_and_kill(unsigned after, uint32_t *acknowledged) {
        int ends[2], status;
        struct said said;
        ck_assert_int_eq(pipe(ends), 0);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
                close(ends[0]);
                pipe_to = ends[1];
                run_child();
        }
        close(ends[1]);
        for (unsigned i = 0; read(ends[0], &said, sizeof(said)) == sizeof(said); i++) {
                ck_assert_uint_lt(said.writer, WRITERS);
                ck_assert_uint_eq(said.number, acknowledged[said.writer] + 1);
                acknowledged[said.writer] = said.number;
                if (i == after)
                        ck_assert_int_eq(kill(child, SIGKILL), 0);
        }
        close(ends[0]);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "it ended by itself: %x", (unsigned)status);
}

/* What a writer has left: of its entity, or of its tasks. */
static int64_t left_of(const char *what, const char *from, int round, uint32_t writer) {
        char sql[200];
        snprintf(sql, sizeof(sql), "SELECT coalesce(%s, 0) FROM %s = '%u' AND component = 'c%d'", what, from, writer, round);
        return store_number(sql);
}

/* What was acknowledged is there, and at most what was under way beside it. */
static void check_round(int round, const uint32_t *acknowledged) {
        for (uint32_t i = 0; i < WRITERS; i++) {
                int64_t version = left_of("max(version)", "entities WHERE id", round, i);
                int64_t body = left_of("max(body ->> 'n')", "entities WHERE id", round, i);
                int64_t tasks = left_of("count(*)", "tasks WHERE entity", round, i);
                int64_t last = left_of("max(depth)", "tasks WHERE entity", round, i);
                ck_assert_int_ge(version, acknowledged[i]);
                ck_assert_int_le(version, (int64_t)acknowledged[i] + 1);
                ck_assert_int_eq(body, version);
                ck_assert_int_ge(tasks, acknowledged[i]);
                ck_assert_int_eq(tasks, last);
                /* a task is asked for when its entity is acknowledged */
                ck_assert_int_ge(version, tasks);
        }
}

START_TEST(what_was_acknowledged_is_there_after_a_kill) {
        static uint32_t acknowledged[STORE_KILLS][WRITERS];
        unsigned seed = 7;
        for (int round = 0; round < STORE_KILLS; round++) {
                seed = seed * 1103515245 + 12345;
                snprintf(component, sizeof(component), "c%d", round);
                run_and_kill((seed >> 16) % 200, acknowledged[round]);
                store_open(); /* as the next daemon does */
                ck_assert_int_eq(store_number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
                check_round(round, acknowledged[round]);
                store_close();
        }
        /* also what was there before others were killed */
        store_open();
        for (int round = 0; round < STORE_KILLS; round++)
                check_round(round, acknowledged[round]);
}
END_TEST

suite_main_with("store_kills", store_make_folder, store_teardown, what_was_acknowledged_is_there_after_a_kill);
