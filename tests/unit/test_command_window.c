/* SPDX-License-Identifier: Apache-2.0 */
/* How much is sent before the actor has handled it: never more than the mailbox holds, and always something. Also:
 * lines. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/command/lines.h"
#include "client/command/window.h"
#include "tests/unit/suite.h"

/* An actor's mailbox, as the daemon counts it: messages and marks, in order. */
struct mailbox {
        uint64_t bytes[4096]; /* of each message; 0: a mark */
        unsigned int first, last;
        uint64_t held_bytes;
};

/* Asserts only what fails: an assertion that holds costs more than all the rest of the simulation. */
static void put(struct mailbox *mailbox, uint64_t messages_max, uint64_t bytes_max, uint64_t bytes) {
        if (mailbox->last - mailbox->first == messages_max || mailbox->held_bytes + bytes > bytes_max)
                ck_abort_msg("a mailbox of %lu messages and %lu bytes is overrun", (unsigned long)messages_max,
                             (unsigned long)bytes_max);
        mailbox->bytes[mailbox->last++ % 4096] = bytes;
        mailbox->held_bytes += bytes;
}

/* The actor handles the oldest; true where it was a mark. */
static bool handle(struct mailbox *mailbox) {
        uint64_t bytes = mailbox->bytes[mailbox->first++ % 4096];

        mailbox->held_bytes -= bytes;
        return !bytes;
}

/* Sends `count` messages to an actor that handles one now and then. */
static void simulate(uint64_t messages_max, uint64_t bytes_max, uint64_t message_max, unsigned int count) {
        static struct mailbox mailbox;
        struct tr_window window;
        unsigned int sent = 0, idle = 0;

        mailbox = (struct mailbox){ .first = 0 };
        tr_window_init(&window, messages_max, bytes_max);
        while (sent < count) {
                uint64_t bytes = 1 + lrand48() % message_max;
                bool is_admitted = tr_window_admits(&window, bytes);

                if (is_admitted) {
                        put(&mailbox, messages_max, bytes_max, bytes);
                        tr_window_sent(&window, bytes);
                        sent++;
                }
                if (tr_window_wants_mark(&window, !is_admitted)) {
                        put(&mailbox, messages_max, bytes_max, 0);
                        tr_window_marked(&window);
                }
                if (mailbox.first != mailbox.last && (!is_admitted || lrand48() % 3 == 0) && handle(&mailbox))
                        tr_window_handled(&window);
                idle = is_admitted ? 0 : idle + 1;
                if (idle == 5000)
                        ck_abort_msg("nothing goes on any more");
        }
}

START_TEST(no_mailbox_is_overrun) {
        static const uint64_t sizes[] = { 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17, 100, 1000, 4000 };

        srand48(7);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                simulate(sizes[i], UINT64_C(1) << 40, 100, 20000);
                simulate(sizes[i], 1000, 1000, 5000);
                simulate(sizes[i], 1000, 400, 5000);
        }
}
END_TEST

START_TEST(a_mailbox_of_one_and_one_that_is_not_known_take_one_at_a_time) {
        struct tr_window window;

        for (uint64_t size = 0; size <= 1; size++) {
                tr_window_init(&window, size, 0);
                ck_assert(tr_window_admits(&window, 1000000));
                tr_window_sent(&window, 1000000);
                ck_assert(!tr_window_admits(&window, 1));
                ck_assert(tr_window_wants_mark(&window, false));
                tr_window_marked(&window);
                ck_assert(!tr_window_wants_mark(&window, true));
                ck_assert(!tr_window_admits(&window, 1));
                tr_window_handled(&window);
                ck_assert(tr_window_admits(&window, 1));
        }
}
END_TEST

START_TEST(few_messages_need_no_mark) {
        struct tr_window window;

        tr_window_init(&window, 65536, 64 << 20);
        for (int i = 0; i < 10000; i++) {
                ck_assert(tr_window_admits(&window, 100));
                tr_window_sent(&window, 100);
                ck_assert(!tr_window_wants_mark(&window, false));
        }
        ck_assert(!tr_window_is_large(&window, 1 << 20));
        ck_assert(tr_window_is_large(&window, (1 << 20) + 1));
        ck_assert(!tr_window_admits(&window, 33 << 20));
        ck_assert(tr_window_wants_mark(&window, true));
}
END_TEST

START_TEST(an_answer_too_many_changes_nothing) {
        struct tr_window window;

        tr_window_init(&window, 10, 100);
        tr_window_handled(&window);
        ck_assert_uint_eq(window.waiting.messages, 0);
        ck_assert(tr_window_admits(&window, 1));
}
END_TEST

/* Reads what is written in these pieces, and joins the lines with `|`. */
static void lines_are(const char *const *pieces, const char *expected) {
        struct tr_lines lines = { 0 };
        char joined[256] = "";
        const char *line;
        size_t len;
        int fds[2];

        ck_assert_int_eq(pipe(fds), 0);
        for (;; pieces++) {
                if (!*pieces)
                        close(fds[1]);
                else
                        ck_assert_int_eq(write(fds[1], *pieces, strlen(*pieces)), (ssize_t)strlen(*pieces));
                ck_assert_int_eq(tr_lines_read(&lines, fds[0]), 0);
                while (tr_lines_peek(&lines, &line, &len)) {
                        strncat(joined, line, len);
                        strcat(joined, "|");
                        tr_lines_drop(&lines, len);
                }
                if (!*pieces)
                        break;
        }
        ck_assert(lines.is_over);
        ck_assert_str_eq(joined, expected);
        close(fds[0]);
        tr_lines_deinit(&lines);
}

START_TEST(lines_come_whole) {
        lines_are((const char *const[]){ "a\nb", "c\n", "\n\nd", "e", NULL }, "a|bc|||de|");
        lines_are((const char *const[]){ "a\n", NULL }, "a|");
        lines_are((const char *const[]){ NULL }, "");
        lines_are((const char *const[]){ "\n", NULL }, "|");
        lines_are((const char *const[]){ "x\r\n", NULL }, "x\r|");
}
END_TEST

START_TEST(a_long_line_grows) {
        size_t size = 3 << 20, len;
        char *text = malloc(size);
        struct tr_lines lines = { 0 };
        FILE *file = tmpfile();
        const char *line;

        memset(text, 'x', size);
        text[size - 1] = '\n';
        ck_assert_uint_eq(fwrite(text, 1, size, file), size);
        rewind(file);
        while (!tr_lines_peek(&lines, &line, &len))
                ck_assert_int_eq(tr_lines_read(&lines, fileno(file)), 0);
        ck_assert_uint_eq(len, size - 1);
        ck_assert_mem_eq(line, text, len);
        fclose(file);
        free(text);
        tr_lines_deinit(&lines);
}
END_TEST

suite_main("command_window", no_mailbox_is_overrun, a_mailbox_of_one_and_one_that_is_not_known_take_one_at_a_time,
           few_messages_need_no_mark, an_answer_too_many_changes_nothing, lines_come_whole, a_long_line_grows);
