/* SPDX-License-Identifier: Apache-2.0 */
#include "client/command/show.h"

#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/command/command.h"
#include "client/command/report.h"

static int show_json(const struct tr_invocation *invocation, const struct troupe_value *value) {
        char *text;
        int r = troupe_value_json(value, &text, NULL);

        if (r)
                return tr_report_errno(invocation, r);
        puts(text);
        free(text);
        return 0;
}

int tr_show_text(const struct tr_invocation *invocation, const char *text) {
        struct troupe_value value;
        int r;

        if (!invocation->json) {
                puts(text);
                return 0;
        }
        r = troupe_pack(&value, "s", text);
        if (r)
                return tr_report_errno(invocation, r);
        r = show_json(invocation, &value);
        troupe_value_free(&value);
        return r;
}

int tr_show_answer(const struct tr_invocation *invocation, const struct troupe_value *value, enum tr_show how) {
        int type = troupe_value_type(value);
        char handle[TROUPE_HANDLE_SIZE];
        const char *data;
        size_t len;

        if (type == TROUPE_HANDLE && !troupe_value_handle(value, handle))
                return tr_show_text(invocation, handle);
        if (!invocation->json && !troupe_value_string(value, &data, &len)) {
                bool is_raw = how & (TR_SHOW_RAW | TR_SHOW_RAW_LINES);

                if (is_raw || (type == TROUPE_STRING && isatty(STDOUT_FILENO))) {
                        fwrite(data, 1, len, stdout);
                        if (!(how & TR_SHOW_RAW))
                                putchar('\n');
                        return 0;
                }
        }
        return show_json(invocation, value);
}

int tr_show_end(const struct tr_invocation *invocation) {
        int r;

        errno = EIO; /* for what failed in an earlier write, whose own errno is gone */
        if (!fflush(stdout) && !ferror(stdout))
                return 0;
        r = tr_report_errno(invocation, -errno);
        /* told once: the program's end looks again */
        __fpurge(stdout);
        clearerr(stdout);
        return r;
}
