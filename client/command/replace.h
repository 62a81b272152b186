/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_COMMAND_REPLACE_H
#define TR_COMMAND_REPLACE_H

#include <stddef.h>

/*
 * Replaces a file in one step: who opens it has all of the old text or all of the new one, and so has the disk after a crash. A file
 * that was there gives the new one its mode. 0 or a negative errno, with the old file as it was.
 */
__attribute__((warn_unused_result)) int tr_replace_file(const char *path, const void *data, size_t bytes);

#endif
