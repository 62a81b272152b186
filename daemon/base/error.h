/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_BASE_ERROR_H
#define TR_BASE_ERROR_H

/*
 * How functions answer (the convention is dbus-broker's, src/util/error.c).
 *
 *   0         done
 *   negative  an errno: fatal for this chain of calls. Never matched, only
 *             forwarded: through tr_error_origin() where it is born and
 *             tr_error_fold() where it passes, so that the log shows the way it took.
 *   positive  an outcome that the direct caller handles: an enum of that module.
 *
 * A function that forwards another's answer may not pass a positive one on by
 * accident: tr_error_fold() turns it into -ENOTRECOVERABLE and says where.
 */

#define TR_MUST_CHECK __attribute__((warn_unused_result))

/* An error is born here: `r` is a negative errno. Logs where; answers r. */
#define tr_error_origin(r) tr_error_note_((r), __FILE__, __LINE__, __func__)
/* An error passes here: logs where; answers r (0 stays silent and 0). */
#define tr_error_fold(r) tr_error_fold_((r), __FILE__, __LINE__, __func__)

int tr_error_note_(int r, const char *file, int line, const char *function);
int tr_error_fold_(int r, const char *file, int line, const char *function);

#endif
