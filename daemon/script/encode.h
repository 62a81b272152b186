/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TR_SCRIPT_ENCODE_H
#define TR_SCRIPT_ENCODE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/message.h"
#include "daemon/script/extension.h"
#include "daemon/script/held.h"
#include "daemon/script/path.h"
#include "daemon/script/seen.h"
#include "proto/value.h"

/* What the encoder's two files share: values (encode.c) and tables (encode_table.c). */

/* Stack slots for one level, beyond what is there when it begins. */
#define TR_ENCODE_SLOTS (12 + TR_HELD_SLOTS)

struct tr_encoder {
        lua_State *L;
        struct tr_writer *writer;
        enum tr_form form;
        bool shared; /* a reference was written */
        size_t end;  /* where the writer may at most get to */
        int root;    /* stack index of the value being written that is in no container */
        struct tr_path path;
        struct tr_seen seen; /* TR_FORM_INTERNAL */
};

/* The stack index of the open container that is `level` deep, from 1. */
static inline int tr_encode_container(const struct tr_encoder *e, int level) {
        return level == 1 ? e->root : e->path.steps[level - 2].value;
}

/* The value at the index, which for one in a container is where the innermost step of the path says. */
void tr_encode_value(struct tr_encoder *e, int index);
void tr_encode_table(struct tr_encoder *e, int index);
/* A string as a peer or a VM gets it: between VMs str holds any bytes. */
void tr_encode_string(struct tr_encoder *e, const char *string, size_t len);

/* Writes a reference and answers true where the container at the index was written already, or refuses the cycle. */
bool tr_encode_was_written(struct tr_encoder *e, int index);
/* An extension whose payload is a number of 4 bytes. */
void tr_encode_number(struct tr_encoder *e, enum tr_extension type, uint32_t number);
/* Refuses to write `bytes` more where that is more than any message may have. */
void tr_encode_check_room(struct tr_encoder *e, size_t bytes);
/* Refuses the present value, which is `kind`. */
_Noreturn void tr_encode_refuse(struct tr_encoder *e, const char *kind);
/* Puts bytes in front of what was written from `at` on. */
void tr_encode_insert(struct tr_writer *writer, size_t at, const uint8_t *bytes, size_t count);

#endif
