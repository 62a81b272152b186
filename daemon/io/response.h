/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_IO_RESPONSE_H
#define TR_IO_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/failure.h"
#include "daemon/core/message.h"
#include "proto/value.h"

/* How a connection wants errors. */
enum tr_error_form {
        TR_ERRORS_PAIR, /* [kind, "code: message (ran: no)"] */
        TR_ERRORS_MAP,  /* {code, message, ran, ...} */
        TR_ERRORS_TEXT, /* "code: message (ran: no)" */
};

/* The forms that a request is answered in: those its connection had when it was received. */
struct tr_response_form {
        enum tr_error_form errors;
        enum tr_form values; /* typed or plain */
};

/* Appends the response with a value that is in its form already. */
void tr_response_write_result(struct tr_writer *writer, uint32_t id, const void *value, size_t bytes);
void tr_response_write_failure(struct tr_writer *writer, uint32_t id, const struct tr_response_form *form,
                               const struct tr_failure *failure, enum tr_ran ran);
void tr_response_write_handle_result(struct tr_writer *writer, uint32_t id, enum tr_form values,
                                     const struct tr_handle *handle);
/* The error alone. */
void tr_response_write_error(struct tr_writer *writer, const struct tr_response_form *form,
                             const struct tr_failure *failure, enum tr_ran ran);
/* A handle as the form has it. */
void tr_response_write_handle(struct tr_writer *writer, enum tr_form values, const struct tr_handle *handle);

#endif
