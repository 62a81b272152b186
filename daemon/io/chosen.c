/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chosen methods: what stands before the value is the same each time, and is written once.
 */
#include "config.h"

#include "daemon/io/chosen.h"

struct tr_failure *tr_chosen_init(struct tr_chosen *chosen, const struct tr_chosen_options *options,
                                  const char *method) {
        struct tr_writer head = TR_WRITER_INIT;
        if (options->params.bytes > TR_CHOSEN_PARAMS_MAX)
                return tr_failure_new(TR_CODE_BAD_REQUEST, "the option params has to be an array of at most %zu bytes",
                                      TR_CHOSEN_PARAMS_MAX);
        if (options->method.data)
                tr_write_string(&head, options->method.data, options->method.len);
        else
                tr_write_text(&head, method);
        if (options->params.data) {
                tr_write_array(&head, options->params.count + 1);
                tr_write_raw(&head, options->params.data, options->params.bytes);
        }
        if (tr_writer_error(&head)) {
                tr_writer_deinit(&head);
                return tr_failure_new(TR_CODE_NO_MEMORY, "out of memory for the method that was chosen");
        }
        chosen->head = head;
        return NULL;
}

void tr_chosen_deinit(struct tr_chosen *chosen) {
        tr_writer_deinit(&chosen->head);
}

void tr_chosen_write(const struct tr_chosen *chosen, struct tr_writer *writer) {
        tr_write_raw(writer, chosen->head.data, chosen->head.len);
}
