/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace of an error: one line of the log where it is born, one for each function it passes. The lines of one error
 * follow each other on one thread, innermost first, and read as a traceback. Nothing here allocates: ENOMEM is traced
 * too.
 */
#include "config.h"

#include "daemon/base/error.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/log.h"

/* "ENOMEM", or its number where the C library has no name for it. */
static void trace(const char *what, int r, const char *file, int line, const char *function) {
        const char *name = strerrorname_np(-r);

        if (name)
                tr_log(TR_LOG_WARNING, "%s %s in %s (%s:%d)", what, name, function, file, line);
        else
                tr_log(TR_LOG_WARNING, "%s %d in %s (%s:%d)", what, -r, function, file, line);
}

int tr_error_note_(int r, const char *file, int line, const char *function) {
        if (r < 0)
                trace("error", r, file, line, function);
        return r;
}

int tr_error_fold_(int r, const char *file, int line, const char *function) {
        if (r > 0) {
                tr_log(TR_LOG_ERROR, "outcome %d was not handled in %s (%s:%d)", r, function, file, line);
                return -ENOTRECOVERABLE;
        }
        if (r < 0)
                trace("  passed on as", r, file, line, function);
        return r;
}
